// The little that the table's page does by itself.
"use strict";

// A link is /play/{campaign}#token: what comes after the # is sent once, as a form.
const door = document.getElementById("enter");
if (door && location.hash.length > 1) {
  door.elements.token.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  door.submit();
}

const log = document.getElementById("log");
if (log) {
  const follow = () => { log.scrollTop = log.scrollHeight; };
  follow();
  // What comes while somebody reads further up does not move it away.
  let atEnd = true;
  log.addEventListener("scroll", () => { atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80; });
  new MutationObserver(() => { if (atEnd) follow(); }).observe(log, { childList: true, subtree: true, characterData: true });

  // After a lost connection some messages may come again.
  document.body.addEventListener("htmx:sseBeforeMessage", (event) => {
    const known = /^<article id="(m-[^"]+)"/.exec(event.detail.data);
    if (known && document.getElementById(known[1])) event.preventDefault();
  });

  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.successful) return;
    document.getElementById("alert").replaceChildren();
    const text = event.target.querySelector("textarea");
    if (text) { text.value = ""; text.focus(); }
  });

  document.getElementById("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  });
}
