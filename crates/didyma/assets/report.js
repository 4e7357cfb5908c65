"use strict";
// The theme: what the reader's system asks for, until the button is used.
const root = document.documentElement;
const button = document.getElementById("theme");
function show(theme) {
  root.dataset.theme = theme;
  button.textContent = theme === "dark" ? "light" : "dark";
  button.setAttribute("aria-pressed", String(theme === "dark"));
  button.setAttribute("aria-label", "switch to the " + button.textContent + " theme");
}
show(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
button.addEventListener("click", () => show(root.dataset.theme === "dark" ? "light" : "dark"));

// On paper nothing stays folded.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});

// What marks tell: the browser's own bubbles come late and small.
const tip = document.getElementById("tip");
for (const mark of document.querySelectorAll("g.tip")) {
  const title = mark.querySelector("title");
  mark.dataset.tip = title.textContent;
  title.remove();
}
function place(event) {
  const mark = event.target.closest ? event.target.closest("g.tip") : null;
  if (!mark) { tip.hidden = true; return; }
  tip.textContent = mark.dataset.tip;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - box.width - 8);
  const above = event.clientY - box.height - 12;
  tip.style.left = Math.max(8, x) + "px";
  tip.style.top = (above < 8 ? event.clientY + 18 : above) + "px";
}
document.addEventListener("pointermove", place);
document.addEventListener("pointerdown", place);
document.addEventListener("scroll", () => { tip.hidden = true; }, true);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
