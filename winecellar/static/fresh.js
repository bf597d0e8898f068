"use strict";
// An alert that is being checked: asks for that part of its page again until the result is there. Without this script
// the page says to load it again.
(() => {
  const TRIES = 40;
  const ask = async (left) => {
    const part = document.getElementById("standing");
    if (!part || !part.dataset.fresh || left === 0) return;
    try {
      const answer = await fetch(part.dataset.fresh, { credentials: "same-origin", redirect: "error" });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById("standing");
        if (fresh && !fresh.dataset.fresh) {
          part.replaceWith(document.adoptNode(fresh));
          return;
        }
      }
    } catch {
      // The network is away for a moment; the next try may reach it.
    }
    setTimeout(ask, 1500, left - 1);
  };
  setTimeout(ask, 1000, TRIES);
})();
