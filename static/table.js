// What the tables of players and game masters do with a script.
"use strict";

// A player's table has pages and forms below it.
const table = location.pathname.startsWith("/play/") ? location.pathname.split("/").slice(0, 3).join("/") : location.pathname;

// What this browser keeps.
const kept = {
  get(name) {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  },
  set(name, text) {
    try {
      if (text) localStorage.setItem(name, text);
      else localStorage.removeItem(name);
    } catch { /* It keeps nothing. */ }
  },
};

// What is typed and not sent is kept in this browser until it is sent, for the case that the visit ends meanwhile. It is for the character
// that it was written as; the page of somebody without a visit does not know which one.
const draft = {
  name: `unsent ${table}`,
  player: document.querySelector("[data-player]")?.dataset.player ?? null,
  get() {
    try {
      const { player, text } = JSON.parse(kept.get(this.name)) ?? {};
      return !player || player === this.player ? text ?? "" : "";
    } catch {
      return "";
    }
  },
  set(text) {
    kept.set(this.name, text && JSON.stringify({ player: this.player, text }));
  },
};
const unsent = document.getElementById("unsent");
if (unsent) draft.set(unsent.value);
document.getElementById("leave")?.addEventListener("submit", () => draft.set(""));

// A link is /play/{campaign}#secret. The secret is sent once, as a form. Opening another link on the same page changes only the hash, so
// that is watched too.
const enter = () => {
  if (location.hash.length < 2) return;
  const form = document.createElement("form");
  form.method = "post";
  form.action = `${table}/enter`;
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
  if (words.value === "") words.value = draft.get();
  words.addEventListener("input", () => draft.set(words.value));
  // New messages scroll the log only if its end is visible.
  let atEnd = true;
  log.addEventListener("scroll", () => { atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80; });

  // A reply arrives twice: while the model writes it, and as a message. The message replaces the other, whichever came first.
  const tidy = () => {
    for (const coming of document.querySelectorAll("[data-pending]")) {
      if (said.querySelector(`[data-turn="${coming.dataset.pending}"]`)) coming.remove();
    }
    for (const aside of document.querySelectorAll("#pending > .aside")) aside.dataset.since ??= Date.now();
    if (atEnd) follow();
  };
  new MutationObserver(tidy).observe(log, { childList: true, subtree: true, characterData: true });
  new ResizeObserver(() => { if (atEnd) follow(); }).observe(log);

  // After a lost connection some messages may come again, and are skipped. When an answer is tried again, it stays, pale, until the other
  // attempt takes its place, or until it is there again itself. Htmx alone shows other new messages, and changes of old ones.
  document.body.addEventListener("htmx:sseBeforeMessage", (event) => {
    if (event.detail.type !== "message") return;
    const piece = document.createRange().createContextualFragment(event.detail.data).firstElementChild;
    if (!piece || piece.hasAttribute("hx-swap-oob")) return;
    const known = document.getElementById(piece.dataset.aside ?? piece.id);
    if (known || piece.dataset.aside) {
      event.preventDefault();
      known?.classList.toggle("pale", Boolean(piece.dataset.aside));
      return;
    }
    const attempts = piece.dataset.first ? [...said.querySelectorAll(`[data-first="${piece.dataset.first}"]`)] : [];
    const pale = attempts.filter((article) => article.matches(".pale"));
    const isAlike = (article) => article.matches(".player") === piece.matches(".player");
    const place = pale.find(isAlike) ?? attempts.findLast((article) => article.dataset.placed);
    if (!place) {
      // What was said to its reader alone stays where it was said, above what happens later. The words that it answers may come after it.
      const answers = [...document.querySelectorAll("#pending > .aside")];
      said.append(...answers.filter((aside) => Date.now() - aside.dataset.since > 2000));
      return;
    }
    event.preventDefault();
    piece.dataset.placed = "1";
    if (pale.includes(place)) place.replaceWith(piece);
    else place.after(piece);
    htmx.process(piece);
    // What belonged to the former answer goes with it.
    if (piece.matches(".ai")) pale.forEach((article) => article.remove());
  });
  // The buttons of an answer are there while it is the last of its conversation.
  const latest = () => {
    const conversations = new Set();
    for (const article of [...said.querySelectorAll("[data-talk]")].reverse()) {
      const buttons = article.querySelector(":scope > .retry");
      if (buttons) buttons.hidden = conversations.has(article.dataset.talk);
      conversations.add(article.dataset.talk);
    }
  };
  new MutationObserver(latest).observe(said, { childList: true });
  latest();

  // Scrolling to the first line loads the lines before it. The view stays where it was. If that fails, the link remains.
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      const fromEnd = log.scrollHeight - log.scrollTop;
      const lines = { target, swap: "outerHTML" };
      htmx.ajax("GET", target.querySelector("a").dataset.lines, lines).then(() => {
        if (target.isConnected) return;
        log.scrollTop = log.scrollHeight - fromEnd;
        watch();
      }, () => {});
    }
  }, { root: log });
  const watch = () => { for (const older of said.querySelectorAll(".older")) seen.observe(older); };
  watch();

  // A connection that is lost for more than a moment is said at the top, and no longer when it is back. A visit that is over stays said.
  const connection = document.getElementById("connection");
  const alerts = document.getElementById("alert");
  const isTable = (event) => event.target.matches(".table");
  let isOver = false;
  let lost;
  document.body.addEventListener("htmx:sseError", (event) => {
    if (isTable(event) && !isOver) lost ??= setTimeout(() => { connection.hidden = false; }, 3000);
  });
  const found = () => {
    clearTimeout(lost);
    lost = undefined;
    connection.hidden = true;
  };
  document.body.addEventListener("htmx:sseOpen", (event) => { if (isTable(event)) found(); });
  document.body.addEventListener("htmx:sseClose", (event) => {
    if (!isTable(event)) return;
    isOver = true;
    found();
  });
  // Other messages about something that failed are gone when something else is tried, or when the fight goes on without it.
  const settled = () => { if (!isOver) alerts.replaceChildren(); };
  words.addEventListener("input", settled);
  const fights = document.getElementById("fights");
  fights.addEventListener("htmx:sseMessage", settled);

  // On a phone, the view of a fight that is over gives way to the talk.
  new MutationObserver(() => {
    const view = document.getElementById("view-fights");
    if (view.checked && !fights.querySelector("h2")) document.getElementById("view-talk").checked = true;
  }).observe(fights, { childList: true });
  // What a fight did that was ended here is shown.
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "change" && event.target.querySelector(".ended")) document.getElementById("view-here").checked = true;
  });
  // Whose turn it is stands in the title, and can be heard. A player's page alone says so: a game master acts for many.
  const sound = document.getElementById("sound");
  if (draft.player) {
    const untitled = document.title.replace(/^Your turn · /, "");
    const isMine = () => fights.querySelector(".is-mine") !== null;
    let wasMine = isMine();
    const told = "sound at my turn";
    let audio;
    // A browser lets a page be heard once its reader has done something on it. What could not be heard then is not heard later.
    const tune = () => {
      audio ??= new AudioContext();
      return audio.resume();
    };
    const chime = () => {
      if (audio?.state !== "running") return;
      for (const [n, pitch] of [587, 880].entries()) {
        const [tone, volume] = [audio.createOscillator(), audio.createGain()];
        const begin = audio.currentTime + n * 0.18;
        tone.frequency.value = pitch;
        volume.gain.setValueAtTime(0.15, begin);
        volume.gain.exponentialRampToValueAtTime(0.001, begin + 0.5);
        tone.connect(volume).connect(audio.destination);
        tone.start(begin);
        tone.stop(begin + 0.5);
      }
    };
    sound.checked = kept.get(told) !== null;
    sound.closest("[hidden]").hidden = false;
    sound.addEventListener("change", () => {
      kept.set(told, sound.checked ? "1" : "");
      if (sound.checked) tune().then(chime);
    });
    for (const done of ["pointerdown", "keydown"]) addEventListener(done, () => { if (sound.checked) tune(); }, { once: true });
    new MutationObserver(() => {
      const mine = isMine();
      document.title = (mine ? "Your turn · " : "") + untitled;
      if (mine && !wasMine && sound.checked) chime();
      wasMine = mine;
    }).observe(fights, { childList: true, subtree: true });
  }

  // Who sees rolls by click is one choice, kept in this browser: a roll that was to be hidden cannot be taken back.
  const readers = [...document.querySelectorAll("[name=readers]")];
  const chosenReaders = `rolls seen ${table}`;
  const showReaders = (value) => { for (const list of readers) list.value = value; };
  if (readers.length > 0) showReaders(kept.get(chosenReaders) ?? "everybody");
  for (const list of readers) {
    list.addEventListener("change", () => {
      showReaders(list.value);
      kept.set(chosenReaders, list.value);
    });
  }

  // The description of a location is open where somebody comes to, and closed in a fight.
  const place = document.getElementById("location");
  if (place) {
    const name = () => place.querySelector("b").textContent;
    let last = name();
    new MutationObserver(() => {
      if (place.querySelector("[data-fights]")) place.open = false;
      else if (name() !== last) place.open = true;
      last = name();
    }).observe(place, { childList: true });
  }
  // What is already there is not shown again, so that the focus stays where it is and nothing is read aloud twice.
  document.body.addEventListener("htmx:sseBeforeMessage", (event) => {
    if (!["location", "here", "people", "paused"].includes(event.detail.type)) return;
    const shown = document.createElement("div");
    shown.innerHTML = event.detail.data;
    if (shown.innerHTML === event.target.innerHTML) event.preventDefault();
  });

  // Each connection sends the reply from its first word, so what is there is removed.
  document.body.addEventListener("htmx:sseOpen", (event) => {
    if (event.target.matches(".coming")) event.target.replaceChildren();
  });

  // When a reply has ended, it stops looking unfinished. If it failed or was stopped, the player's words are put back into the field.
  document.body.addEventListener("htmx:sseClose", (event) => {
    const coming = event.target.closest("[data-pending]");
    if (!coming) return;
    coming.querySelector(".coming")?.classList.remove("coming");
    coming.querySelector(".stop")?.remove();
    const isStopped = coming.querySelector(".aside");
    if (!isStopped && !coming.querySelector(".alert")) return;
    coming.dataset.failed = "1";
    const unheard = coming.querySelector(".words")?.dataset.words ?? "";
    if (words.value === "" && unheard) {
      words.value = unheard;
      draft.set(unheard);
    }
    if (isStopped && (!unheard || words.value === unheard)) coming.remove();
  });
  // What failed is gone when it is tried once more.
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.closest(".retry")) said.querySelectorAll("[data-failed]").forEach((failed) => failed.remove());
  });

  // What was said to this reader alone is gone after the next words, roll or action.
  const doesMore = (form) => form.contains(words) || form.matches(".rolls, .dice-tray, .fight");
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (!doesMore(event.target)) return;
    for (const aside of document.querySelectorAll(".aside")) aside.dataset.old = "";
  });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.successful || event.detail.requestConfig.triggeringEvent?.type.startsWith("sse:")) return;
    settled();
    if (event.target.dataset.done === "close") event.target.closest(".mending")?.remove();
    if (!event.target.closest(".composer, .rolls, #fights, .asked")) return;
    // The result of a roll is among the messages, so their view is shown. Actions of a fight leave the fight's view open. Advantage is for
    // one roll; who sees the rolls stays chosen.
    if (event.target.matches(".rolls")) {
      document.getElementById("view-talk").checked = true;
      const isDamage = event.detail.requestConfig.parameters.of?.startsWith("damage ");
      if (!isDamage) event.target.elements.advantage.value = "none";
    }
    if (doesMore(event.target)) for (const aside of document.querySelectorAll(".aside[data-old]")) aside.remove();
    event.target.closest(".more-ways")?.removeAttribute("open");
    if (event.target.contains(words) && event.target.matches("form")) {
      words.value = "";
      draft.set("");
      words.focus();
      // Whoever speaks has looked around, and is here again.
      document.getElementById("location")?.removeAttribute("open");
      document.getElementById("missed")?.remove();
      // What an NPC remembers is chosen for each sentence.
      if (lists.has("remember")) choose("remember", "");
      // The words of failed replies were just sent again.
      for (const failed of document.querySelectorAll("[data-failed]")) failed.remove();
    }
    atEnd = true;
    follow();
  });

  // The message when the server cannot be reached.
  document.body.addEventListener("htmx:sendError", () => {
    const alert = document.createElement("p");
    alert.className = "alert";
    alert.textContent = "The table cannot be reached. What you wrote is still here: send it again in a moment.";
    alerts.replaceChildren(alert);
  });

  // Who speaks and the recipient stay selected while others come and go.
  const chosen = new Map();
  const lists = new Map(["as", "to", "who", "remember"].map((id) => [id, document.getElementById(id)]).filter(([, list]) => list));
  // The button to meet somebody is shown for those with a greeting for this player.
  const meet = document.getElementById("meet");
  const greets = () => {
    if (!meet) return;
    const to = lists.get("to");
    meet.hidden = !to.selectedOptions[0]?.dataset.greets;
    meet.elements.to.value = to.value;
  };
  meet?.addEventListener("submit", () => { delete lists.get("to").selectedOptions[0]?.dataset.greets; });
  meet?.addEventListener("htmx:afterRequest", greets);
  const choose = (id, slug) => {
    const list = lists.get(id);
    if ([...list.options].some((option) => option.value === slug)) list.value = slug;
    chosen.set(id, list.value);
    greets();
  };
  for (const [id, list] of lists) {
    // When a fight begins, the game becomes a player's recipient.
    const fights = () => list.querySelector('option[value="*"][selected]') !== null;
    let fought = fights();
    choose(id, list.value);
    list.addEventListener("change", () => choose(id, list.value));
    new MutationObserver(() => {
      if (fights() && !fought) chosen.set(id, "*");
      fought = fights();
      choose(id, chosen.get(id));
    }).observe(list, { childList: true });
  }

  // A click on somebody who is here selects the recipient or the speaker, or begins a whisper. Without a script the links do the same.
  document.querySelector(".table").addEventListener("click", (event) => {
    const link = event.target.closest("a[data-to], a[data-as], a[data-whisper]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const { to, as, whisper, text: offered } = link.dataset;
    event.preventDefault();
    document.getElementById("view-talk").checked = true;
    // The text in the field stays, without the beginning of a whisper to somebody else. One offer takes the place of another.
    const isOffered = [...document.querySelectorAll("a[data-text]")].some((other) => other.dataset.text === words.value);
    const text = isOffered && offered ? "" : words.value.replace(/^\/w(hisper)?\s+("[^"]*"|\S+)\s*/i, "");
    if (to !== undefined) choose("to", to);
    if (as) choose("as", as);
    words.value = whisper ? `/w ${whisper} ${text}` : text || (offered ?? "");
    draft.set(words.value);
    words.focus();
    words.setSelectionRange(words.value.length, words.value.length);
  });
  // The form for a line is there once.
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const open = event.target.matches(".mend") && document.getElementById(`mending-${event.target.closest("article").id.slice(2)}`);
    if (!open) return;
    event.preventDefault();
    open.querySelector("textarea, button")?.focus();
  });
  // In the field of the formula, Enter rolls.
  document.getElementById("formula")?.addEventListener("keydown", (event) => {
    const roll = document.getElementById("roll");
    if (event.key !== "Enter" || !roll) return;
    event.preventDefault();
    roll.click();
  });
  // A form that came into the page by a click is put away again.
  document.querySelector(".table").addEventListener("click", (event) => {
    if (!event.target.closest("[data-close]") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const form = event.target.closest(".mending");
    if (form) form.remove();
    else document.getElementById("change").replaceChildren();
  });

  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      words.form.requestSubmit();
    }
  });
}
