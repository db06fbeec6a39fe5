// Refreshes the page and keeps the scroll position, the focus and the open details. Without
// JavaScript the browser reloads the page, by <noscript>.
"use strict";
(() => {
  const every = 1000 * Number(document.documentElement.dataset.refresh || 0);
  if (!every) return;

  async function renew() {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!next.querySelector("main")) throw new Error("no page");
    if (String(getSelection())) return; // keep the selection
    for (const old of document.querySelectorAll("details[id]")) {
      const same = next.getElementById(old.id);
      if (same) same.open = old.open;
    }
    const at = document.activeElement?.getAttribute("href");
    document.title = next.title;
    document.body.replaceChildren(...next.body.children);
    if (at) document.querySelector(`[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
  }

  async function loop() {
    let well = true;
    if (!document.hidden) {
      try { await renew(); } catch { well = false; }
    }
    document.documentElement.classList.toggle("stale", !well);
    setTimeout(loop, every);
  }
  setTimeout(loop, every);
})();
