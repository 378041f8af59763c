// The little that the editor's pages do by themselves. Everything works without it.
"use strict";

// A message about what was asked for goes when something else is asked for and comes.
document.body.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) document.getElementById("alert")?.replaceChildren();
});
document.body.addEventListener("htmx:sendError", () => {
  const alert = document.createElement("p");
  alert.className = "alert";
  alert.textContent = "The server cannot be reached. Try again in a moment.";
  document.getElementById("alert")?.replaceChildren(alert);
});

// Keys: `/` looks for something, `j` and `k` go through a list, `e` or Enter opens, `x` ticks, Ctrl+S saves, `?` tells.
const KEYS = [
  ["/", "look for something"], ["j, k", "the next row, the one before"], ["e", "open the row"], ["x", "tick the row"],
  ["Ctrl+S", "save"], ["?", "these keys"],
];

function step(by) {
  const rows = [...document.querySelectorAll("table.list[data-keys=rows] tbody tr")];
  if (rows.length === 0) return;
  const now = rows.findIndex((row) => row.contains(document.activeElement) || row.hasAttribute("aria-current"));
  const next = rows[Math.min(Math.max(now + by, 0), rows.length - 1)];
  rows.forEach((row) => row.removeAttribute("aria-current"));
  next.setAttribute("aria-current", "true");
  next.querySelector("a")?.focus();
  next.scrollIntoView({ block: "nearest" });
}

function tell() {
  let box = document.getElementById("keys");
  if (!box) {
    box = document.createElement("dialog");
    box.id = "keys";
    box.setAttribute("aria-label", "Keys");
    const list = document.createElement("dl");
    for (const [key, what] of KEYS) {
      const dt = document.createElement("dt");
      const dd = document.createElement("dd");
      dt.textContent = key;
      dd.textContent = what;
      list.append(dt, dd);
    }
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => box.close());
    box.append(list, close);
    document.body.append(box);
  }
  if (!box.open) box.showModal();
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "s") {
    const form = document.querySelector("form[data-keys=save]");
    if (form) {
      event.preventDefault();
      form.requestSubmit();
    }
    return;
  }
  const writes = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (writes || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const row = document.querySelector("table.list[data-keys=rows] tr[aria-current]");
  const done = {
    "/": () => document.querySelector("form[role=search] input[type=search]")?.focus(),
    "j": () => step(1),
    "k": () => step(-1),
    "e": () => (row?.querySelector("a") ?? document.querySelector("form[data-keys=save] textarea"))?.click() ?? null,
    "x": () => row?.querySelector("input[type=checkbox]")?.click(),
    "?": tell,
  }[event.key];
  if (done) {
    event.preventDefault();
    done();
  }
});

// One box ticks all of a name.
document.addEventListener("change", (event) => {
  const name = event.target.dataset?.ticks;
  if (!name) return;
  for (const box of event.target.closest("form").querySelectorAll(`input[name="${name}"]`)) box.checked = event.target.checked;
});

// What was written and is not kept yet is not left without a question.
let unsaved = false;
document.addEventListener("input", (event) => {
  if (event.target.closest("form[data-guard]")) unsaved = true;
});
document.addEventListener("submit", () => { unsaved = false; });
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.querySelector?.("[data-saved]")) unsaved = false;
});
window.addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});
