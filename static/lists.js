// Lists and fields that offer something: ticks that outlive a page, names that are offered, single keys switched on and off.
// Everything works without it.
"use strict";

// Ticks are kept while one goes from page to page of a list, and forgotten with the tab or once they were used.
const TICKS_MAX = 5000;
const ticksOf = () => `tavernkeep-ticks ${location.pathname}`;
const ticked = () => new Set(JSON.parse(sessionStorage.getItem(ticksOf()) ?? "[]"));
const keepTicks = (ids) => sessionStorage.setItem(ticksOf(), JSON.stringify([...ids].slice(0, TICKS_MAX)));
const boxes = (form) => [...form.querySelectorAll("input[type=checkbox][name=ids]")];

const showTicks = () => {
  const form = document.querySelector("form[data-keeps-ticks]");
  if (!form) return;
  const ids = ticked();
  for (const box of boxes(form)) box.checked = ids.has(box.value);
  const edit = form.querySelector("button[name=chosen]");
  if (edit) edit.textContent = ids.size > 0 ? `Edit ${ids.size} selected` : "Edit selected";
  const untick = form.querySelector("[data-untick]");
  if (untick) untick.hidden = ids.size === 0;
};
document.addEventListener("change", (event) => {
  const form = event.target.closest?.("form[data-keeps-ticks]");
  if (!form) return;
  const ids = ticked();
  for (const box of boxes(form)) {
    if (box.checked) ids.add(box.value);
    else ids.delete(box.value);
  }
  keepTicks(ids);
  showTicks();
  if (ids.size > TICKS_MAX) tell(`At most ${TICKS_MAX} entries can be selected. Find them with a filter and edit all.`);
});
document.addEventListener("click", (event) => {
  if (!event.target.closest?.("[data-untick]")) return;
  sessionStorage.removeItem(ticksOf());
  showTicks();
});
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-keeps-ticks]");
  if (!form) return;
  const here = new Set(boxes(form).map((box) => box.value));
  if (event.submitter?.name === "chosen") {
    const field = document.createElement("input");
    field.type = "hidden";
    field.name = "ids";
    field.value = [...ticked()].filter((id) => !here.has(id)).join(" ");
    form.append(field);
  }
  sessionStorage.removeItem(ticksOf());
});
document.body.addEventListener("htmx:afterSwap", showTicks);
addEventListener("pageshow", showTicks);

// A name that is none of those offered may be a slip, or the first of its kind.
const about = document.getElementById("associated_id");
about?.addEventListener("change", () => {
  about.parentElement.querySelector("[data-unknown]")?.remove();
  const offered = [...document.querySelectorAll("#names option")].map((option) => option.value.toLowerCase());
  const name = about.value.trim().toLowerCase();
  if (name === "" || offered.length === 0 || offered.includes(name)) return;
  const hint = document.createElement("p");
  hint.className = "hint";
  hint.dataset.unknown = "";
  hint.setAttribute("role", "status");
  hint.textContent = "Nothing here has this name yet.";
  about.after(hint);
});

// Who knows a secret is chosen from those who are there.
const knownBy = document.getElementById("known_by");
if (knownBy && !knownBy.readOnly && document.getElementById("actors")) {
  const row = document.createElement("p");
  row.className = "adder";
  const field = document.createElement("input");
  field.id = "known_by-add";
  field.dir = "auto";
  field.setAttribute("list", "actors");
  field.setAttribute("aria-label", "Somebody else who knows it");
  field.autocomplete = "off";
  const add = document.createElement("button");
  add.type = "button";
  add.className = "quiet";
  add.textContent = "Add";
  const take = () => {
    const name = field.value.trim();
    if (name === "") return;
    const before = knownBy.value.trimEnd().replace(/,$/, "");
    const between = knownBy.tagName === "TEXTAREA" ? "\n" : ", ";
    knownBy.value = before === "" ? name : before + between + name;
    field.value = "";
    knownBy.dispatchEvent(new Event("input", { bubbles: true }));
  };
  add.addEventListener("click", take);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    take();
  });
  row.append(field, add);
  knownBy.after(row);
}

// Keys without Ctrl can be switched off, for this browser: whoever speaks to it, or rests a hand on it, presses them unasked.
const keysSwitch = document.getElementById("single-keys");
if (keysSwitch) {
  keysSwitch.closest("[hidden]").hidden = false;
  keysSwitch.checked = localStorage.getItem("tavernkeep-keys") !== "off";
  keysSwitch.addEventListener("change", () => {
    if (keysSwitch.checked) localStorage.removeItem("tavernkeep-keys");
    else localStorage.setItem("tavernkeep-keys", "off");
  });
}
