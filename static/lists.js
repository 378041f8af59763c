// Lists and fields: selections that last over several pages, names to choose from, the switch for keyboard shortcuts.
// Everything works without it.
"use strict";

// The selected rows of a list are kept from page to page, until they are used or the tab is closed.
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

// A name that is not in the list of suggestions may be a typing error, so the page says that it is new.
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

// A field to choose who knows a secret, from those who exist.
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

// Shortcuts without Ctrl can be switched off in this browser: speech input and resting hands press keys by accident.
const keysSwitch = document.getElementById("single-keys");
if (keysSwitch) {
  keysSwitch.closest("[hidden]").hidden = false;
  keysSwitch.checked = localStorage.getItem("tavernkeep-keys") !== "off";
  keysSwitch.addEventListener("change", () => {
    if (keysSwitch.checked) localStorage.removeItem("tavernkeep-keys");
    else localStorage.setItem("tavernkeep-keys", "off");
  });
}
