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
