// Review page: keyboard shortcuts, marks on selected text, drafts saved automatically. The form also works without it.
"use strict";

(() => {
  const form = () => document.getElementById("decision");
  const typing = (e) => e && (e.isContentEditable || /^(textarea|select)$/i.test(e.tagName) ||
    (e.tagName === "INPUT" && !/^(radio|checkbox)$/.test(e.type)));
  const keysOff = () => localStorage.getItem("keys") === "off";
  const points = (text) => Array.from(text).length; // code points, as the server counts

  // ---- marks: kept in the form's hidden field, shown as a list and with the CSS highlight API

  const marks = () => { try { return JSON.parse(form().elements.issues.value || "[]"); } catch { return []; } };
  const answers = () => [...document.querySelectorAll("pre.answer[data-side]")];
  const callOf = (data) => (data.call === undefined ? null : Number(data.call)); // null: in the message's own text
  const answerOf = (mark) => answers().find((e) => e.dataset.side === mark.side &&
    Number(e.dataset.message) === mark.message && callOf(e.dataset) === (mark.call ?? null));

  const place = (element, at) => { // the text node and offset of a code point
    const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let left = at;
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      const size = points(node.data);
      if (left <= size) return [node, Array.from(node.data).slice(0, left).join("").length];
      left -= size;
    }
    return null;
  };
  const rangeOf = (mark) => {
    const element = answerOf(mark);
    if (!element || mark.start === null || mark.start === undefined) return null;
    const [start, end] = [place(element, mark.start), place(element, mark.end)];
    if (!start || !end) return null;
    const range = new Range();
    range.setStart(...start); range.setEnd(...end);
    return range;
  };
  const show = () => {
    const list = document.getElementById("marks");
    if (!form() || !list) return;
    list.replaceChildren(...marks().map((mark, index) => {
      const item = document.createElement("li");
      const words = document.createElement("span");
      words.textContent = `${mark.side.toUpperCase()} ${mark.category} (${mark.severity}) “${(mark.quote || "").slice(0, 80)}” ${mark.note}`;
      const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "Remove" });
      remove.setAttribute("aria-label", `Remove mark ${index + 1}`);
      remove.addEventListener("click", () => keep(marks().filter((_, i) => i !== index)));
      item.append(words, remove);
      return item;
    }));
    if (window.CSS && CSS.highlights) {
      CSS.highlights.set("own-marks", new Highlight(...marks().map(rangeOf).filter(Boolean)));
    }
    document.querySelectorAll(".needs-script[hidden]").forEach((e) => { e.hidden = false; });
  };
  const keep = (all) => { form().elements.issues.value = JSON.stringify(all); show(); saveSoon(); };

  const selected = () => {
    const selection = window.getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0).cloneRange();
    // A triple click or a drag may end outside the response in which it began: cut the range at its end.
    const around = (node) => answers().find((e) => e.contains(node));
    const element = around(selection.anchorNode) || around(selection.focusNode);
    if (!element) return null;
    if (!element.contains(range.startContainer)) range.setStart(element, 0);
    if (!element.contains(range.endContainer)) range.setEnd(element, element.childNodes.length);
    const before = new Range();
    before.selectNodeContents(element);
    before.setEnd(range.startContainer, range.startOffset);
    const start = points(before.toString());
    const quote = range.toString().replace(/\n+$/, ""); // selecting a line includes its line break
    return quote ? { element, start, end: start + points(quote), quote } : null;
  };
  const written = (side, words) => { // find text typed into the dialog in the response
    for (const element of answers().filter((e) => e.dataset.side === side)) {
      const at = element.textContent.indexOf(words);
      if (words && at >= 0) {
        const start = points(element.textContent.slice(0, at));
        return { element, start, end: start + points(words), quote: words };
      }
    }
    return null;
  };

  const mark = () => {
    const dialog = document.getElementById("mark-dialog");
    if (!dialog) return;
    const chosen = selected();
    const by = (id) => document.getElementById(id);
    by("mark-quote").value = chosen ? chosen.quote : "";
    by("mark-quote").readOnly = Boolean(chosen);
    by("mark-side").disabled = Boolean(chosen);
    if (chosen) by("mark-side").value = chosen.element.dataset.side;
    by("mark-note").value = "";
    dialog.returnValue = "";
    dialog.showModal();
    (chosen ? by("mark-category") : by("mark-quote")).focus();
    const words = by("mark-quote"), fields = dialog.querySelector("form");
    words.setCustomValidity("");
    fields.oninput = () => words.setCustomValidity("");
    fields.onsubmit = (event) => {
      const side = by("mark-side").value;
      if (event.submitter?.value !== "add" || chosen || !words.value || written(side, words.value)) return;
      event.preventDefault();
      words.setCustomValidity(`Response ${side.toUpperCase()} does not contain this text. Copy it exactly, or leave the field empty to mark the whole response.`);
      words.reportValidity();
    };
    dialog.onclose = () => {
      if (dialog.returnValue !== "add") return;
      const side = by("mark-side").value;
      const found = chosen || written(side, by("mark-quote").value);
      const data = found ? found.element.dataset : {};
      keep([...marks(), {
        side, category: by("mark-category").value, severity: by("mark-severity").value, note: by("mark-note").value,
        message: found ? Number(data.message) : 0, call: found ? callOf(data) : null, start: found ? found.start : null, end: found ? found.end : null,
        text_hash: found ? data.hash : "", quote: found ? found.quote : "",
      }]);
    };
  };

  // ---- drafts: saved shortly after the last change, and every three minutes to renew the lease

  let timer = 0;
  const save = async (leaving = false) => { // keepalive requests are limited to 64 KB by browsers
    const here = form();
    clearTimeout(timer);
    timer = 0;
    if (!here) return;
    const state = document.getElementById("draft-state");
    try {
      const answer = await fetch(here.dataset.draft, { method: "POST", body: new FormData(here), keepalive: leaving });
      if (form() === here) state.textContent = answer.ok ? "Draft saved." : await answer.text();
    } catch { if (form() === here) state.textContent = "The draft was not saved: no connection to the server."; }
  };
  const saveSoon = () => { clearTimeout(timer); timer = setTimeout(() => save(), 600); };
  window.addEventListener("pagehide", () => { if (timer) save(true); }); // save changes that the timer has not saved yet
  setInterval(() => { if (!document.hidden) save(); }, 180000);

  document.addEventListener("input", (event) => { if (event.target.form && event.target.form === form()) saveSoon(); });
  document.addEventListener("submit", () => { clearTimeout(timer); timer = 0; });

  // ---- keys

  const press = (key) => {
    const target = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!target || target.hidden) return false;
    target.click();
    if (target.type === "radio") target.focus();
    return true;
  };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !form()) return;
    if (event.key === "Enter" && event.target.closest && event.target.closest("#decision [name=verdict]")) {
      event.preventDefault();
      form().querySelector("[data-decide]").click();
      return;
    }
    if (typing(event.target) || keysOff() || document.querySelector("dialog[open]")) return;
    if (event.key === "v") {
      const diff = document.getElementById("diff");
      diff.open = !diff.open;
      if (diff.open) diff.scrollIntoView({ block: "nearest" });
      event.preventDefault();
    } else if (event.key.length === 1 && press(event.key)) event.preventDefault();
  });
  document.addEventListener("click", (event) => { if (event.target.closest("[data-mark]")) mark(); });
  document.addEventListener("htmx:afterSettle", () => {
    show();
    // The focused button was replaced with its pair: move the focus to the start of the new one.
    if (document.activeElement === document.body) document.getElementById("main").focus({ preventScroll: true });
  });
  show(); // the script is deferred, so the page is parsed
})();
