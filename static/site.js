// The site's small conveniences. Every page works without this file; nothing here holds state a server needs.
"use strict";

(() => {
  const root = document.documentElement;
  const stored = localStorage.getItem("theme");
  if (stored) root.dataset.theme = stored;

  const typing = (element) =>
    element && (element.isContentEditable || /^(input|textarea|select)$/i.test(element.tagName));
  const keysOff = () => localStorage.getItem("keys") === "off";

  const places = { h: "/hub/", r: "/runs/", m: "/models/", d: "/", v: "/review/", p: "/preferences/" };
  let waitingForPlace = false;

  const rows = () => [...document.querySelectorAll("[data-row] a[data-open], tr a[data-open]")];
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    const here = all.indexOf(document.activeElement);
    all[Math.min(Math.max(here + step, 0), all.length - 1)].focus();
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target) || keysOff()) return;
    if (waitingForPlace) {
      waitingForPlace = false;
      if (places[event.key]) window.location.assign(places[event.key]);
      return;
    }
    if (event.key === "/") {
      const search = document.querySelector("input[type=search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (event.key === "g") { waitingForPlace = true; setTimeout(() => { waitingForPlace = false; }, 1500); }
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "?") document.getElementById("keys")?.showModal();
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches("[data-theme-switch]")) {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
    } else if (button.matches("[data-copy]")) {
      const text = document.getElementById(button.dataset.copy)?.textContent ?? "";
      navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; });
    } else if (button.matches("[data-keys-switch]")) {
      localStorage.setItem("keys", keysOff() ? "on" : "off");
      button.textContent = keysOff() ? "Turn single keys on" : "Turn single keys off";
    } else if (button.matches("[data-open-dialog]")) {
      document.getElementById(button.dataset.openDialog)?.showModal();
    }
  });

  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });
})();
