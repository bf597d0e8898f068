"use strict";
// The operators' page follows by itself: asks for its changing part every five seconds, and puts it there when it has
// changed. Without this script the page loads again. Focus stays: nothing is replaced while somebody is in it.
(() => {
  const SECONDS = 5;
  const part = document.getElementById("operations");
  const said = document.getElementById("operations-said");
  if (!part) return;
  const ask = async () => {
    if (!document.hidden && !part.contains(document.activeElement)) {
      try {
        const headers = { "If-None-Match": part.dataset.etag };
        const answer = await fetch(part.dataset.part, { headers, credentials: "same-origin", redirect: "error", cache: "no-store" });
        if (answer.ok) {
          const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
          part.replaceChildren(...fresh.body.childNodes);
          part.dataset.etag = answer.headers.get("ETag") || "";
        }
        const well = answer.ok || answer.status === 304;
        said.textContent = well ? "" : `The server answered ${answer.status}. What is shown may be old.`;
      } catch {
        said.textContent = "The server cannot be reached. What is shown may be old.";
      }
    }
    setTimeout(ask, SECONDS * 1000);
  };
  setTimeout(ask, SECONDS * 1000);
})();
