// Keyboard shortcuts, dialogs, theme switch and announcements. Every page also works without this script.
"use strict";

(() => {
  const root = document.documentElement;
  const stored = localStorage.getItem("theme");
  if (stored) root.dataset.theme = stored;
  root.classList.add("scripted");

  const typing = (element) =>
    element && (element.isContentEditable || /^(input|textarea|select)$/i.test(element.tagName));
  const keysOff = () => localStorage.getItem("keys") === "off";
  const announce = (text) => {
    const place = document.getElementById("announce");
    if (place) place.textContent = text;
  };

  // ---- keys

  let goingSince = 0;
  const rows = () => [...document.querySelectorAll("a[data-open]")];
  const move = (step) => {
    const all = rows();
    if (all.length) all[Math.min(Math.max(all.indexOf(document.activeElement) + step, 0), all.length - 1)].focus();
  };
  const follow = (selector) => document.querySelector(selector)?.click();
  const keys = {
    "/": () => {
      const search = document.querySelector("main input[type=search]") ?? document.querySelector("input[type=search]");
      search?.focus();
      search?.select();
    },
    g: () => { goingSince = Date.now(); },
    j: () => move(1),
    k: () => move(-1),
    n: () => follow("[data-key-next]"),
    p: () => follow("[data-key-prev]"),
    "?": () => document.getElementById("keys")?.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target) || keysOff() || document.querySelector("dialog[open]")) return;
    if (Date.now() - goingSince < 1500) {
      goingSince = 0;
      const place = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (place) { event.preventDefault(); place.click(); }
    } else if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  // ---- menus: Escape and a click elsewhere close them

  document.addEventListener("click", (event) => {
    document.querySelectorAll("details.menu[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    document.querySelectorAll("details.menu[open]").forEach((menu) => {
      if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
      menu.open = false;
    });
  });

  // ---- buttons and forms

  const label = (button) => { button.textContent = `Turn single keys ${keysOff() ? "on" : "off"}`; };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches("[data-theme-switch]")) {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
    } else if (button.matches("[data-copy]")) {
      const source = button.dataset.copy ? document.getElementById(button.dataset.copy) : button.parentElement.querySelector("code");
      const text = (source?.content ?? source)?.textContent ?? "";
      navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; announce("Copied"); });
    } else if (button.matches("[data-keys-switch]")) {
      localStorage.setItem("keys", keysOff() ? "on" : "off");
      label(button);
    } else if (button.matches("[data-open-dialog]")) {
      document.getElementById(button.dataset.openDialog)?.showModal();
    }
  });

  // A second click while the server works would start another run or create another token. Other listeners and htmx may
  // still take the event over, so what happened to it is known afterwards. No button gets disabled: a browser may keep
  // that when the page is reloaded. The user may stop the request, so the form can be sent again after a while: a minute
  // if its button has data-busy, the label of what may take long.
  const submitted = new WeakSet();
  document.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    if (submitted.has(form) || (form.dataset.confirm && !window.confirm(form.dataset.confirm))) {
      event.preventDefault();
      return;
    }
    setTimeout(() => {
      if (event.defaultPrevented || form.method !== "post") return;
      submitted.add(form);
      const busy = submitter?.dataset.busy;
      const label = submitter?.textContent;
      submitter?.setAttribute("aria-disabled", "true");
      if (busy) submitter.textContent = busy;
      announce(busy ?? "Sending…");
      setTimeout(() => {
        submitted.delete(form);
        submitter?.removeAttribute("aria-disabled");
        if (busy) submitter.textContent = label;
      }, busy ? 60_000 : 10_000);
    }, 0);
  });
  // Reload a page restored from the back/forward cache: its form counts as sent, and its content may be old.
  window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });

  // Leaving a field of a filter reports a change that typing has already reported. The rows would be replaced between
  // press and release of the mouse, and a click on one of them would be lost.
  const asked = new WeakMap();
  const filters = (form) => new URLSearchParams(new FormData(form)).toString();
  document.addEventListener("htmx:beforeRequest", (event) => {
    const form = event.detail.elt;
    if (!form.matches("form.filters")) return;
    if (event.detail.requestConfig.triggeringEvent?.type === "change" && asked.get(form) === filters(form)) event.preventDefault();
    else asked.set(form, filters(form));
  });

  // A page in the background does not ask for the progress of its run.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.detail.elt.id === "progress") event.preventDefault();
  });

  // ---- forms with data-keep: the tab keeps what was entered and is not stored, because the run of the page may end, which
  // reloads it, and the session may end. The key names the user: another one may sign in next.

  const keptName = (form) => `kept:${form.dataset.keep}`;
  // Return what can be changed in the form: texts, boxes, and the options of each select.
  const keptParts = (form) => [...form.elements]
    .filter((field) => field.matches("textarea, select, input:not([type=hidden], [type=file], [type=password])"))
    .filter((field) => field.name && !field.closest("[data-in-address]"))
    .flatMap((field) => field.matches("select") ? [...field.options] : field)
    .map((element) => {
      const { name } = element.closest("select") ?? element;
      if (element.matches("option")) return { element, key: `${name}=${element.value}`, property: "selected", initial: element.defaultSelected };
      if (/^(checkbox|radio)$/.test(element.type)) return { element, key: `${name}=${element.value}`, property: "checked", initial: element.defaultChecked };
      return { element, key: name, property: "value", initial: element.defaultValue };
    });
  const keep = (form, submitted) => {
    const changed = keptParts(form).filter(({ element, property, initial }) => element[property] !== initial);
    if (!changed.length) return;
    const values = Object.fromEntries(changed.map(({ element, key, property }) => [key, element[property]]));
    sessionStorage.setItem(keptName(form), JSON.stringify({ submitted, values }));
  };
  let sent = null;
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || !event.target.matches("form[data-keep]")) return;
    sent = event.target;
    keep(sent, true);
  });
  window.addEventListener("pagehide", () => {
    document.querySelectorAll("form[data-keep]").forEach((form) => { if (form !== sent) keep(form, false); });
  });
  const restoreKept = () => {
    // The sign-in page and error pages show that a submitted form was not stored.
    const refused = document.querySelector(".sign-in, [data-reason]");
    for (const name of Object.keys(sessionStorage).filter((name) => name.startsWith("kept:"))) {
      const kept = JSON.parse(sessionStorage.getItem(name));
      if (refused) sessionStorage.setItem(name, JSON.stringify({ ...kept, submitted: false }));
      else if (kept.submitted) sessionStorage.removeItem(name);
    }
    for (const form of document.querySelectorAll("form[data-keep]")) {
      const kept = JSON.parse(sessionStorage.getItem(keptName(form)) ?? "null");
      sessionStorage.removeItem(keptName(form));
      const changed = kept ? keptParts(form).filter(({ element, key, property }) => (kept.values[key] ?? element[property]) !== element[property]) : [];
      changed.forEach(({ element, key, property }) => { element[property] = kept.values[key]; });
      if (!changed.length) continue;
      form.querySelector("[data-kept-note]").hidden = false;
      changed.map(({ element }) => element.closest("details")).filter(Boolean).forEach((fold) => { fold.open = true; });
    }
  };
  document.addEventListener("reset", (event) => {
    const note = event.target.querySelector("[data-kept-note]");
    if (note) note.hidden = true;
  });

  // ---- forms that come back with errors: focus the summary of the errors if there is one, otherwise the first invalid field

  const focusProblem = () => {
    if (document.activeElement !== document.body || document.querySelector("main [autofocus]")) return;
    const problem = document.querySelector("main [role=alert][tabindex], main form[method=post] [aria-invalid=true]");
    (problem?.matches("fieldset") ? problem.querySelector("input") : problem)?.focus();
  };

  // ---- after htmx replaced content: announce it to screen readers, and keep the focus near it

  document.addEventListener("htmx:afterSwap", (event) => {
    const part = document.getElementById(event.detail.target.id) ?? event.detail.target;
    const { elt, triggeringEvent } = event.detail.requestConfig;
    const asked = /^(change|input|submit|click)$/.test(triggeringEvent?.type); // by the user, not by a timer
    const announcement = part.querySelector("[data-announce], .empty");
    const rowCount = part.querySelectorAll("tbody tr").length;
    if (asked && announcement) announce(announcement.textContent.trim().replace(/\s+/g, " "));
    else if (asked && rowCount) announce(`${rowCount} row${rowCount === 1 ? " is" : "s are"} shown.`);
    if (document.activeElement !== document.body) return;
    const wanted = document.getElementById(elt.dataset.focus ?? triggeringEvent?.submitter?.id);
    if (wanted) wanted.focus({ preventScroll: true });
    else if (elt.matches(".pager a")) {
      part.tabIndex = -1;
      part.focus({ preventScroll: true });
    }
  });

  // ---- requests of htmx that failed: htmx itself reports them only on the console

  const report = (text) => {
    document.getElementById("problem")?.remove();
    if (!text) return;
    const note = Object.assign(document.createElement("p"), { id: "problem", className: "note bad", textContent: text });
    note.setAttribute("role", "alert");
    document.getElementById("main").prepend(note);
    note.scrollIntoView({ block: "nearest" });
  };
  const reasonOf = (xhr) => { // pages of a proxy have none
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    return page.querySelector("[data-reason]")?.textContent.trim();
  };
  document.addEventListener("htmx:sendError", () => {
    report("The server did not answer. Check your connection and try again.");
  });
  document.addEventListener("htmx:responseError", (event) => {
    const { xhr } = event.detail;
    report(`The server responded with an error (status ${xhr.status}). ${reasonOf(xhr) ?? "Try again later."}`);
  });
  document.addEventListener("htmx:beforeSwap", (event) => { if (event.detail.shouldSwap) report(""); });

  // ---- texts of models: buttons that copy code, and the choice between rendered and source, kept in a cookie

  const prepareTexts = () => {
    document.querySelectorAll(".needs-script[hidden]").forEach((element) => { element.hidden = false; });
    document.querySelectorAll(".code-block:not(:has(> .copy))").forEach((block) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "copy small", textContent: "Copy" });
      button.dataset.copy = "";
      button.setAttribute("aria-label", "Copy this code");
      block.append(button);
    });
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-view-switch] a");
    if (link) document.cookie = `view=${link.dataset.view}; path=/; max-age=31536000; samesite=lax`;
  });
  // Select the line of the problem that was opened, in the text field of a draft.
  const selectLine = () => {
    const field = document.querySelector("textarea[data-line]");
    if (!field) return;
    const lines = field.value.split("\n");
    const line = Math.min(Number(field.dataset.line), lines.length);
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    field.focus();
    field.setSelectionRange(start, start + lines[line - 1].length);
    field.scrollTop = field.scrollHeight * (line - 1) / lines.length - field.clientHeight / 3;
    field.removeAttribute("data-line");
  };
  document.addEventListener("htmx:afterSettle", (event) => {
    prepareTexts();
    selectLine();
    if (event.detail.target.id === "main") focusProblem();
  });

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-keys-switch]").forEach(label);
    prepareTexts();
    selectLine();
    restoreKept();
    focusProblem();
    // The page is the response to a form. Without this, reloading it would send the form again, and create another secret.
    if (document.querySelector("[data-shown-once]")) history.replaceState(history.state, "", location.href);
  });
})();
