// What the editor's pages do with a script. Everything works without it.
"use strict";

const alerts = document.getElementById("alert");
const tell = (text) => {
  const alert = document.createElement("p");
  alert.className = "alert";
  alert.textContent = text;
  alerts?.replaceChildren(alert);
};

// After a request that succeeded, the messages about earlier failures are removed. What a page reads by itself says nothing about them.
document.body.addEventListener("htmx:afterRequest", (event) => {
  const byItself = event.detail.requestConfig.triggeringEvent?.type.startsWith("sse:");
  if (event.detail.successful && !byItself) alerts?.replaceChildren();
});
document.body.addEventListener("htmx:sendError", () => {
  // A form that saves itself shows failures in its own bar.
  if (!document.querySelector("form[hx-post] #saved")) tell("The server cannot be reached. Try again in a moment.");
});

// When a part of a page is replaced because something changed, what is open in it stays open, and what is typed or chosen stays.
document.body.addEventListener("htmx:beforeSwap", ({ target, detail }) => {
  if (!detail.requestConfig.triggeringEvent?.type.startsWith("sse:")) return;
  const open = [...target.querySelectorAll("details[open][id]")].map(({ id }) => id);
  const fields = [...target.querySelectorAll(":is(input, textarea, select)[id]:not([type=hidden])")];
  const written = fields.map(({ id, value, checked }) => [id, value, checked]);
  const settled = (event) => {
    if (event.target.id !== target.id) return;
    document.body.removeEventListener("htmx:afterSettle", settled);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    for (const [id, value, checked] of written) {
      const field = document.getElementById(id);
      if (field) [field.value, field.checked] = [value, checked];
    }
  };
  document.body.addEventListener("htmx:afterSettle", settled);
});

// A browser holds few connections to a server, so a page that follows what changes rests while nobody looks at it. Then it is read anew,
// again and again if it cannot be read.
let following;
htmx.createEventSource = (url) => {
  following = new EventSource(url);
  if (document.hidden && document.querySelector("[data-follows]")) following.close();
  return following;
};
const readAnew = () => {
  const part = document.querySelector("[data-follows]");
  if (part && !document.hidden) htmx.trigger(part, part.dataset.follows);
};
document.addEventListener("visibilitychange", () => {
  if (document.hidden && document.querySelector("[data-follows]")) following?.close();
  readAnew();
});
addEventListener("online", readAnew);
for (const failed of ["htmx:sendError", "htmx:responseError"]) {
  document.body.addEventListener(failed, ({ target }) => {
    if (target.matches?.("[data-follows]")) setTimeout(readAnew, 5000);
  });
}

// While a form is being sent, its button shows that it is busy.
document.addEventListener("submit", (event) => {
  // After a download the page stays, and nothing would end the busy state.
  if (!event.defaultPrevented && !event.target.hasAttribute("data-download")) event.submitter?.setAttribute("aria-busy", "true");
});
addEventListener("pageshow", () => {
  for (const busy of document.querySelectorAll("button[aria-busy]")) busy.removeAttribute("aria-busy");
});

// Buttons that copy a link. Where the browser lets nobody write to the clipboard, the link can be selected.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const copied = await navigator.clipboard.writeText(button.dataset.copy).then(() => true, () => false);
    button.textContent = copied ? "Copied" : "The browser did not allow it";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// If a form was rejected, the list of its problems gets the focus.
document.getElementById("problems")?.focus();

// Somebody who writes into the last row of a list gets another empty row.
const ROWS_MAX = 40;
document.addEventListener("input", ({ target }) => {
  const things = target.closest?.(".things[data-grows]");
  const rows = [...(things?.querySelectorAll(".thing") ?? [])];
  const last = rows.at(-1);
  const number = rows.length;
  if (!last?.contains(target) || number >= ROWS_MAX) return;
  const next = last.cloneNode(true);
  next.setAttribute("aria-label", next.getAttribute("aria-label").replace(/\d+$/, number + 1));
  for (const field of next.querySelectorAll("input, select, textarea")) {
    field.name = field.name.replace(`${things.id}-${number - 1}-`, `${things.id}-${number}-`);
    field.value = "";
  }
  last.after(next);
  things.querySelector("input[name$='-rows']").value = number + 1;
});

// After a sign-in in another tab, the forms of this page get the token of that session. Returns whether there is a session.
const renewForms = async () => {
  const answer = await fetch(location.href, { redirect: "manual" }).catch(() => undefined);
  if (!answer?.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const token = page.querySelector("input[name=form_token]")?.value;
  if (!token) return false;
  document.body.setAttribute("hx-headers", page.body.getAttribute("hx-headers"));
  for (const field of document.querySelectorAll("input[name=form_token]")) field.value = token;
  return true;
};

// A form that saves itself after a pause or by its button, with one request at a time. Its bar shows the result of the last request, so
// that it never says "Saved" of text that is not saved.
const AGAIN_MS = 5000;
const savesItself = (form, written, isStored) => {
  const bar = form.querySelector("#saved");
  const path = form.getAttribute("hx-post");
  const isOurs = (detail) => detail.pathInfo.requestPath === path;
  const passes = (status) => status === 0 || status === 429 || status >= 500;
  let sent;
  let status;
  let timer;
  let isRenewed = false;
  let isOnItsWay = false;
  let leaving;
  const again = () => htmx.trigger(form, "again");
  const renew = async () => {
    isRenewed = true;
    if (await renewForms()) again();
  };
  // The server checks the form. Its answer is shown in the bar.
  form.noValidate = true;
  // htmx would take the address of a button that has the focus, although nobody pressed it.
  form.addEventListener("htmx:configRequest", (event) => {
    if (event.target === form) event.detail.path = path;
  });
  form.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (!isOurs(detail)) return;
    sent = written();
    isOnItsWay = true;
  });
  // A button that sends the form elsewhere waits for the save in progress, because the version rises with it.
  form.addEventListener("submit", (event) => {
    if (!isOnItsWay || !event.submitter?.hasAttribute("formaction")) return;
    event.preventDefault();
    leaving = event.submitter;
  });
  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (!form.contains(detail.requestConfig.elt)) return;
    if (isOurs(detail) && passes(detail.xhr.status)) detail.shouldSwap = false;
    else if (detail.isError) detail.target = bar;
  });
  form.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (!isOurs(detail)) return;
    clearTimeout(timer);
    isOnItsWay = false;
    if (leaving) {
      const by = leaving;
      leaving = undefined;
      // htmx sends a request that was queued behind this one first.
      setTimeout(() => form.requestSubmit(by));
    }
    status = detail.xhr.status;
    if (status === 200) {
      isRenewed = false;
      isStored(sent);
    } else if (passes(status)) {
      const why = status === 0 ? "The server cannot be reached." : "The server cannot save it now.";
      const text = `Not saved: your text exists only on this page. ${why} The page keeps trying.`;
      if (bar.textContent !== text) {
        const error = document.createElement("span");
        error.className = "error";
        error.textContent = text;
        bar.replaceChildren(error);
      }
      timer = setTimeout(again, AGAIN_MS);
    } else if ((status === 401 || status === 403) && !isRenewed) {
      renew();
    }
  });
  addEventListener("online", () => {
    if (passes(status)) again();
  });
  addEventListener("focus", () => {
    if (status === 401 || status === 403) renew();
  });
};

// Somebody who leaves the page with unsaved text is asked first.
for (const form of document.querySelectorAll("form.world")) {
  const notWritten = ["version", "form_token"];
  const written = () => JSON.stringify([...new FormData(form)].filter(([name]) => !notWritten.includes(name)));
  let stored = written();
  let isSent = false;
  form.addEventListener("submit", () => { isSent = true; });
  addEventListener("beforeunload", (event) => {
    if (!isSent && written() !== stored) event.preventDefault();
  });
  if (form.hasAttribute("hx-post")) savesItself(form, written, (sent) => { stored = sent; });
}

// Keys. A page adds its own with data-key="x" on a link, button or field, which is then followed, pressed or focused; the help
// shows its data-key-help, or else its text.
const hasKeys = () => localStorage.getItem("tavernkeep-keys") !== "off";
const isWriting = (target) => target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

const help = () => {
  const known = [["Ctrl S", "save the form"], ["?", "show this help"], ["/", "go to the search"], ["g h", "go to the campaign's overview"], ["g c", "go to the campaigns"]];
  if (document.querySelector("table[data-keys=rows]")) known.push(["j", "go to the next row"], ["k", "go to the previous row"], ["e", "open the row"], ["x", "select the row"]);
  for (const element of document.querySelectorAll("[data-key]")) {
    known.push([element.dataset.key, element.dataset.keyHelp ?? element.textContent.trim()]);
  }
  const dialog = document.createElement("dialog");
  dialog.className = "keys";
  dialog.setAttribute("aria-labelledby", "keys-title");
  const title = document.createElement("h2");
  title.id = "keys-title";
  title.textContent = "Keyboard shortcuts";
  const list = document.createElement("dl");
  for (const [key, meaning] of known) {
    const term = document.createElement("dt");
    for (const part of key.split(" ")) {
      const kbd = document.createElement("kbd");
      kbd.textContent = part;
      term.append(kbd, " ");
    }
    const description = document.createElement("dd");
    description.textContent = meaning;
    list.append(term, description);
  }
  const off = document.createElement("p");
  const account = document.createElement("a");
  account.href = "/admin/account";
  account.textContent = "Your account";
  off.append(account, hasKeys() ? " has a switch that turns off all shortcuts except Ctrl S." : " has a switch that turns the shortcuts on again. Only Ctrl S works now.");
  const close = document.createElement("button");
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.append(title, list, off, close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
};

const button = document.getElementById("keys-button");
if (button) {
  button.hidden = false;
  button.addEventListener("click", help);
}

const act = (element) => {
  if (element.matches("a, button, summary")) element.click();
  else element.focus();
};

let isGoing = false;
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
    const form = event.target.closest?.("form[data-keys~=save]") ?? document.querySelector("form[data-keys~=save]");
    if (!form) return;
    event.preventDefault();
    const save = form.querySelector("[data-save]");
    if (save) save.click();
    else form.requestSubmit();
    return;
  }
  if (!hasKeys() || event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target) || document.querySelector("dialog[open]")) return;
  if (isGoing) {
    isGoing = false;
    const to = { h: ".rail h2 a", c: ".brand" }[event.key];
    if (to) document.querySelector(to)?.click();
    return;
  }
  if (event.key === "g") {
    isGoing = true;
    return;
  }
  if (event.key === "?") {
    event.preventDefault();
    help();
    return;
  }
  const wanted = event.key === "/" ? document.querySelector("input[type=search]") : document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!wanted) return;
  event.preventDefault();
  act(wanted);
});

// Rows of a list marked `data-keys="rows"`: j and k go from one to the next, x ticks one.
const step = (by) => {
  const rows = [...document.querySelectorAll("table[data-keys=rows] tbody tr")];
  const now = rows.findIndex((row) => row.hasAttribute("aria-current"));
  const next = rows[Math.min(Math.max(now + by, 0), rows.length - 1)];
  if (!next) return;
  rows.forEach((row) => row.removeAttribute("aria-current"));
  next.setAttribute("aria-current", "true");
  next.querySelector("a")?.focus();
  next.scrollIntoView({ block: "nearest" });
};
addEventListener("keydown", (event) => {
  if (!hasKeys() || event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target) || document.querySelector("dialog[open]")) return;
  const row = document.querySelector("table[data-keys=rows] tr[aria-current]");
  const done = {
    j: () => step(1),
    k: () => step(-1),
    e: () => row?.querySelector("a")?.click(),
    x: () => row?.querySelector("input[type=checkbox]")?.click(),
  }[event.key];
  if (!done || !document.querySelector("table[data-keys=rows]")) return;
  event.preventDefault();
  done();
});

// A box with data-ticks selects or clears all boxes of that name.
document.addEventListener("change", (event) => {
  const name = event.target.dataset?.ticks;
  if (!name) return;
  for (const box of event.target.closest("form").querySelectorAll(`input[name="${name}"]`)) box.checked = event.target.checked;
});
