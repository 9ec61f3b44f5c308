"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");

  // Show the description of the item that is selected by pointer, touch or arrow keys.
  for (const figure of document.querySelectorAll("figure.interactive")) {
    const inspector = figure.querySelector(".inspector");
    let selected = null;
    const show = (item) => {
      if (item === selected) return;
      if (selected) selected.classList.remove("on");
      selected = item;
      item.classList.add("on");
      const name = document.createElement("b");
      name.textContent = item.dataset.name;
      inspector.replaceChildren(name, item.dataset.text ? ": " + item.dataset.text : "");
    };
    const items = (svg) => [...svg.querySelectorAll(".item")];
    const reach = (item) => {
      for (const other of items(item.ownerSVGElement)) other.setAttribute("tabindex", "-1");
      item.setAttribute("tabindex", "0");
      item.focus({ preventScroll: false });
    };
    figure.addEventListener("pointerover", (event) => {
      const item = event.target.closest(".item");
      if (item) show(item);
    });
    figure.addEventListener("click", (event) => {
      const item = event.target.closest(".item");
      if (item) { reach(item); show(item); }
    });
    figure.addEventListener("focusin", (event) => {
      const item = event.target.closest(".item");
      if (item) show(item);
    });
    figure.addEventListener("keydown", (event) => {
      const item = event.target.closest(".item");
      if (!item) return;
      const all = items(item.ownerSVGElement);
      const at = all.indexOf(item);
      const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      reach(all[Math.max(0, Math.min(all.length - 1, to))]);
    });
  }

  // Select the colour scheme instead of the system's.
  const button = document.getElementById("theme");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();

  // Open all details before printing.
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
})();
