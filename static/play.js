// The little that the table's page does by itself.
"use strict";

// A link is /play/{campaign}#token: what comes after the # is sent once, as a form. Somebody who opens one at a table, perhaps
// another's, changes nothing but the hash.
const enter = () => {
  if (location.hash.length < 2) return;
  const form = document.createElement("form");
  form.method = "post";
  form.action = `${location.pathname.replace(/\/enter$/, "")}/enter`;
  form.hidden = true;
  const token = document.createElement("input");
  token.name = "token";
  token.value = location.hash.slice(1);
  form.append(token);
  document.body.append(form);
  history.replaceState(null, "", location.pathname);
  form.submit();
};
addEventListener("hashchange", enter);
enter();

const log = document.getElementById("log");
if (log) {
  const said = document.getElementById("said");
  const words = document.getElementById("text");
  const follow = () => { log.scrollTop = log.scrollHeight; };
  follow();
  // What comes while somebody reads further up does not move it away.
  let atEnd = true;
  log.addEventListener("scroll", () => { atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80; });

  // A reply arrives twice: as it is made, and as what was said. The second takes the first's place, whichever came first.
  const tidy = () => {
    for (const coming of document.querySelectorAll("[data-pending]")) {
      if (said.querySelector(`[data-turn="${coming.dataset.pending}"]`)) coming.remove();
    }
    if (atEnd) follow();
  };
  new MutationObserver(tidy).observe(log, { childList: true, subtree: true, characterData: true });
  new ResizeObserver(() => { if (atEnd) follow(); }).observe(log);

  // After a lost connection some messages may come again. A corrected one begins differently, so it is swapped in.
  document.body.addEventListener("htmx:sseBeforeMessage", (event) => {
    const known = /^<article id="(m-[^"]+)"/.exec(event.detail.data);
    if (known && document.getElementById(known[1])) event.preventDefault();
  });

  // A connection that is opened anew begins with the reply's first word.
  document.body.addEventListener("htmx:sseError", (event) => {
    const lost = event.detail.source.readyState === EventSource.CLOSED;
    if (lost && event.target.matches(".coming")) event.target.replaceChildren();
  });

  // A reply that is over says nothing more; if none came, the words are there to be sent again.
  document.body.addEventListener("htmx:sseClose", (event) => {
    const coming = event.target.closest("[data-pending]");
    if (!coming) return;
    coming.querySelector(".coming")?.classList.remove("coming");
    if (coming.querySelector(".alert") && words.value === "") words.value = coming.querySelector(".words").textContent;
  });

  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.successful) return;
    document.getElementById("alert").replaceChildren();
    // What was rolled or done is told in the talk. In a fight one stays with the fight.
    if (event.target.matches(".rolls")) document.getElementById("view-talk").checked = true;
    if (event.target.contains(words)) {
      words.value = "";
      words.focus();
      // What failed has been said again.
      for (const failed of document.querySelectorAll("[data-pending] .alert")) failed.closest("[data-pending]").remove();
    }
    atEnd = true;
    follow();
  });

  // Without a connection nothing can be sent.
  document.body.addEventListener("htmx:sendError", () => {
    const alert = document.createElement("p");
    alert.className = "alert";
    alert.textContent = "The table cannot be reached. Try again in a moment.";
    document.getElementById("alert").replaceChildren(alert);
  });

  // Whom one writes to stays chosen while others come and go; when a fight begins, it is the game.
  const to = document.getElementById("to");
  const fights = () => to.querySelector('option[value="*"][selected]') !== null;
  let chosen = to.value;
  let fought = fights();
  // Who has a greeting for this player can be met.
  const meet = document.getElementById("meet");
  const greets = () => {
    meet.hidden = !to.selectedOptions[0]?.dataset.greets;
    meet.elements.to.value = to.value;
  };
  greets();
  meet.addEventListener("submit", () => { delete to.selectedOptions[0]?.dataset.greets; });
  meet.addEventListener("htmx:afterRequest", greets);
  const choose = (slug) => {
    if ([...to.options].some((option) => option.value === slug)) to.value = slug;
    chosen = to.value;
    greets();
  };
  to.addEventListener("change", () => choose(to.value));

  // Who is here: a click chooses whom one writes to, or begins a whisper. Without a script the links do the same.
  document.getElementById("here").addEventListener("click", (event) => {
    const person = event.target.closest("a");
    if (!person || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    document.getElementById("view-talk").checked = true;
    // The words stay. A whisper that was begun to somebody else does not.
    const said = words.value.replace(/^\/w(hisper)?\s+("[^"]*"|\S+)\s*/i, "");
    if (person.dataset.to) choose(person.dataset.to);
    words.value = person.dataset.whisper ? `/w ${person.dataset.whisper} ${said}` : said;
    words.focus();
    words.setSelectionRange(words.value.length, words.value.length);
  });
  new MutationObserver(() => {
    if (fights() && !fought) chosen = "*";
    fought = fights();
    choose(chosen);
  }).observe(to, { childList: true });

  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      words.form.requestSubmit();
    }
  });
}
