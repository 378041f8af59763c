// Shows times as the reader's clock has them. The server writes them in UTC.
"use strict";

const format = (options) => new Intl.DateTimeFormat(undefined, options);
const hour = format({ hour: "2-digit", minute: "2-digit" });
const dayAndHour = format({ month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const yearToHour = format({ year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const whole = format({ dateStyle: "full", timeStyle: "short" });
const day = format({ dateStyle: "full" });

const localize = (time) => {
  const at = new Date(time.dateTime);
  if (time.title || Number.isNaN(at.valueOf())) return;
  const now = new Date();
  const isOfADay = at.toDateString() === now.toDateString() || time.matches(".line > time");
  const shown = isOfADay ? hour : at.getFullYear() === now.getFullYear() ? dayAndHour : yearToHour;
  time.textContent = shown.format(at);
  time.title = whole.format(at);
};
const localizeAll = (root) => root.querySelectorAll("time[datetime]").forEach(localize);
localizeAll(document);
new MutationObserver((changes) => {
  for (const { addedNodes } of changes) {
    for (const node of addedNodes) if (node instanceof Element) localizeAll(node);
  }
}).observe(document.body, { childList: true, subtree: true });

// The days of the story begin at the reader's midnight.
const told = document.querySelector(".lines-told");
if (told) {
  for (const heading of told.querySelectorAll("h2")) heading.remove();
  let last = "";
  for (const time of told.querySelectorAll(".line > time")) {
    const at = new Date(time.dateTime);
    if (at.toDateString() === last) continue;
    last = at.toDateString();
    const heading = document.createElement("h2");
    heading.textContent = day.format(at);
    time.parentElement.before(heading);
  }
  document.getElementById("zone").textContent = "Times are those of your clock; in the files they are UTC.";
}
