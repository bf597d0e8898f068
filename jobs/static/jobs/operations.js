"use strict";
// The operators' page follows by itself: asks for its changing part every five seconds, and puts it there when it has
// changed. What was unfolded stays unfolded, and focus stays where it was. Without this script the page loads again.
(() => {
  const SECONDS = 5;
  const part = document.getElementById("operations");
  const said = document.getElementById("operations-said");
  if (!part) return;
  const put = (nodes) => {
    const open = [...part.querySelectorAll("details[open]")].map((each) => each.id);
    const at = part.contains(document.activeElement) ? document.activeElement : null;
    part.replaceChildren(...nodes);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (!at) return;
    const same = at.id ? document.getElementById(at.id) : part.querySelector(`a[href="${CSS.escape(at.getAttribute("href") || "")}"]`);
    same?.focus({ preventScroll: true });
  };
  const ask = async () => {
    if (!document.hidden) {
      try {
        const headers = { "If-None-Match": part.dataset.etag };
        const answer = await fetch(part.dataset.part, { headers, credentials: "same-origin", redirect: "error", cache: "no-store" });
        if (answer.ok) {
          const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
          put(fresh.body.childNodes);
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
