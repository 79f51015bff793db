// Review page: keyboard shortcuts, marks on selected text, drafts saved automatically. The form also works without it.
"use strict";

(() => {
  const form = () => document.getElementById("decision");
  const typing = (e) => e && (e.isContentEditable || /^(textarea|select)$/i.test(e.tagName) ||
    (e.tagName === "INPUT" && !/^(radio|checkbox)$/.test(e.type)));
  const keysOff = () => localStorage.getItem("keys") === "off";
  const LISTED = 80; // characters of a quote in the list of marks
  const BLOCKS = "p, li, th, td, pre, h1, h2, h3, h4, h5, h6, .line, .answer"; // their texts are separated by a space
  const points = (text) => Array.from(text).length; // code points, as the server counts

  // ---- marks: kept in the form's hidden field, shown as a list and with the CSS highlight API

  const marks = () => { try { return JSON.parse(form().elements.issues.value || "[]"); } catch { return []; } };
  const answers = () => [...document.querySelectorAll(".answer[data-side]")];
  const callOf = (data) => (data.call === undefined ? null : Number(data.call)); // null: in the message's own text
  const answerOf = (mark) => answers().find((e) => e.dataset.side === mark.side &&
    Number(e.dataset.message) === mark.message && callOf(e.dataset) === (mark.call ?? null));

  // Rendered text differs from its source. Each element with data-at has text that is in the source from that code
  // point on; with data-size, its source is written differently and has that length.
  const parts = (element) => [...element.querySelectorAll("[data-at]")].map((e) => {
    const at = Number(e.dataset.at);
    return { e, at, special: e.dataset.size !== undefined, end: at + Number(e.dataset.size ?? points(e.textContent)) };
  }).filter((part) => part.end > part.at);

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
    const inside = parts(element).filter((part) => part.at < mark.end && mark.start < part.end);
    if (!inside.length) return null;
    const first = inside[0], last = inside[inside.length - 1];
    const start = place(first.e, first.special ? 0 : Math.max(0, mark.start - first.at));
    const end = place(last.e, last.special ? points(last.e.textContent) : Math.min(last.end, mark.end) - last.at);
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
      words.textContent = `${mark.side.toUpperCase()} ${mark.category} (${mark.severity}) “${(mark.quote || "").slice(0, LISTED)}” ${mark.note}`;
      const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "Remove" });
      remove.setAttribute("aria-label", `Remove mark ${index + 1}`);
      remove.addEventListener("click", () => {
        keep(marks().filter((_, i) => i !== index));
        const left = list.querySelectorAll("button"); // this button is gone: keep the focus near it
        (left[Math.min(index, left.length - 1)] ?? document.querySelector("[data-mark]")).focus();
      });
      item.append(words, remove);
      return item;
    }));
    if (window.CSS && CSS.highlights) {
      CSS.highlights.set("own-marks", new Highlight(...marks().map(rangeOf).filter(Boolean)));
    }
    document.getElementById("mark-count").textContent = marks().length ? ` (${marks().length})` : "";
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
    let start = null, end = null, quote = "", shown = "", block = null;
    for (const part of parts(element).filter((one) => range.intersectsNode(one.e))) {
      const piece = new Range();
      piece.selectNodeContents(part.e);
      const before = piece.cloneRange();
      if (range.compareBoundaryPoints(Range.START_TO_START, piece) > 0) piece.setStart(range.startContainer, range.startOffset);
      if (range.compareBoundaryPoints(Range.END_TO_END, piece) < 0) piece.setEnd(range.endContainer, range.endOffset);
      const words = piece.toString();
      if (!words) continue;
      before.setEnd(piece.startContainer, piece.startOffset);
      const from = part.special ? part.at : part.at + points(before.toString());
      if (start === null) start = from;
      end = part.special ? part.end : from + points(words);
      quote += words;
      const inside = part.e.closest(BLOCKS);
      shown += block && inside !== block && !/\s$/.test(shown) ? ` ${words}` : words;
      block = inside;
    }
    const kept = quote.replace(/\n+$/, ""); // selecting a line includes its line break
    return kept ? { element, start, end: end - (quote.length - kept.length), quote: shown.replace(/\n+$/, "") } : null;
  };
  const written = (side, words) => { // find text typed into the dialog in the response; white space is ignored
    const wanted = words.replace(/\s+/g, "");
    for (const element of wanted ? answers().filter((e) => e.dataset.side === side) : []) {
      let text = "";
      const places = []; // of each UTF-16 unit of text: where its character begins and ends in the source
      for (const part of parts(element)) {
        Array.from(part.e.textContent).forEach((character, index) => {
          if (/\s/.test(character)) return;
          const begin = part.special ? part.at : part.at + index;
          for (let unit = 0; unit < character.length; unit++) places.push([begin, part.special ? part.end : begin + 1]);
          text += character;
        });
      }
      const at = text.indexOf(wanted);
      if (at >= 0) return { element, start: places[at][0], end: places[at + wanted.length - 1][1], quote: words };
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
        text_hash: found ? data.hash : "", quote: found ? found.quote.slice(0, LISTED) : "", // the server stores the whole quote
      }]);
    };
  };

  // ---- drafts: saved shortly after the last change, and every three minutes to renew the lease

  let timer = 0, unsaved = false;
  let sent = null; // the form whose decision is being sent: the server refuses drafts of a decided pair
  const deciding = () => sent !== null && sent === form();
  const report = (here, problem) => { // the panel that has the state may be folded: a problem unfolds it
    if (form() !== here || deciding()) return;
    const state = document.getElementById("draft-state");
    state.textContent = problem || "Draft saved.";
    if (problem) state.closest("details").open = true;
  };
  const save = async (leaving = false) => { // keepalive requests are limited to 64 KB by browsers
    const here = form();
    clearTimeout(timer);
    timer = 0;
    if (!here || deciding()) return;
    try {
      const answer = await fetch(here.dataset.draft, { method: "POST", body: new FormData(here), keepalive: leaving });
      const problem = answer.redirected
        ? "The draft was not saved: you are signed out. This tab keeps what you entered until you have signed in again."
        : answer.ok ? ""
        : answer.headers.get("Content-Type")?.startsWith("text/plain") ? await answer.text()
        : `The draft was not saved: the server responded with an error (status ${answer.status}). Copy your words, then reload the page.`;
      if (!problem && !timer) unsaved = false;
      report(here, problem);
    } catch { report(here, "The draft was not saved: no connection to the server."); }
  };
  const saveSoon = () => { unsaved = true; clearTimeout(timer); timer = setTimeout(() => save(), 600); };
  // Changes that the server does not have are kept by the tab: a page that is reloaded is requested before pagehide, and
  // the session may have ended.
  const values = () => [...new FormData(form())].filter(([name]) => !["csrfmiddlewaretoken", "run"].includes(name));
  window.addEventListener("pagehide", () => {
    if (!unsaved || !form()) return;
    sessionStorage.setItem("unsaved", JSON.stringify({ assignment: form().dataset.assignment, values: values() }));
    if (timer) save(true);
  });
  const restore = () => {
    const kept = form() && JSON.parse(sessionStorage.getItem("unsaved") ?? "null");
    if (!kept) return; // without a form, its pair has to be claimed first
    sessionStorage.removeItem("unsaved");
    if (form().dataset.assignment !== kept.assignment) return; // of another pair, or of another reviewer
    for (const field of form().elements) {
      const entered = kept.values.filter(([name]) => name === field.name).map(([, value]) => value);
      if (/^(radio|checkbox)$/.test(field.type)) field.checked = entered.includes(field.value);
      else if (entered.length) field.value = entered[0];
    }
    saveSoon();
  };
  setInterval(() => { if (!document.hidden) save(); }, 180000);

  document.addEventListener("input", (event) => { if (event.target.form && event.target.form === form()) saveSoon(); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) sessionStorage.removeItem("unsaved"); });
  let leaving = false; // a form waits until the draft is saved
  document.addEventListener("submit", async (event) => { // a search leaves the page, and the draft is saved as for a link
    const { target, submitter } = event;
    if (target.method !== "post") return;
    if (target === form()) {
      clearTimeout(timer);
      timer = 0;
    } else if (timer || leaving) { // skipping and undoing keep the draft, so its last words are saved first
      event.preventDefault();
      if (leaving) return;
      leaving = true;
      await save();
      leaving = false;
      target.requestSubmit(submitter);
    } else if (target.matches("[data-sign-out]")) unsaved = false; // after skipping and undoing, the session may have ended
  });
  // What is typed while a decision is sent would be lost with the form.
  const lock = (locked) => document.querySelectorAll("#decision textarea").forEach((e) => { e.readOnly = locked; });
  document.addEventListener("htmx:beforeSend", (event) => {
    if (event.detail.elt !== form()) return;
    sent = form();
    lock(true);
  });
  document.addEventListener("htmx:afterRequest", (event) => { // a decision that failed is still to be saved as a draft
    if (event.detail.successful || !form() || event.detail.elt !== form()) return;
    sent = null;
    lock(false);
    saveSoon();
  });

  // ---- the desk: folds remembered for each environment, linked scrolling, jumps between marks

  const folds = () => document.querySelectorAll("details[data-remember]");
  const unfold = () => folds().forEach((fold) => {
    const kept = localStorage.getItem(fold.dataset.remember);
    if (kept || matchMedia("(max-width: 760px)").matches) fold.open = kept === "open";
  });
  document.addEventListener("click", (event) => { // before the fold changes
    const fold = event.target.closest("details[data-remember] > summary")?.parentElement;
    if (fold) localStorage.setItem(fold.dataset.remember, fold.open ? "folded" : "open");
  });

  const linked = () => localStorage.getItem("link-scrolling") !== "off";
  const showLink = () => document.querySelector("[data-link-scroll]")?.setAttribute("aria-pressed", String(linked()));
  let leader = null, idle = 0; // the side that the reader scrolls; the other one follows
  document.addEventListener("scroll", (event) => {
    const side = event.target;
    if (!side.classList?.contains("side") || !linked() || (leader && leader !== side)) return;
    leader = side;
    clearTimeout(idle);
    idle = setTimeout(() => { leader = null; }, 150);
    const reach = side.scrollHeight - side.clientHeight;
    document.querySelectorAll(".side").forEach((other) => {
      if (other !== side && reach > 0) other.scrollTop = (side.scrollTop / reach) * (other.scrollHeight - other.clientHeight);
    });
  }, true);

  let reached = -1;
  const jump = (step) => {
    const shown = [...document.querySelectorAll("#responses mark")].filter((e) => e.previousElementSibling?.tagName !== "MARK");
    const own = form() ? marks().map((m) => rangeOf(m)?.startContainer.parentElement).filter(Boolean) : [];
    const all = [...shown, ...own].sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
    if (!all.length) return;
    reached = (reached + step + all.length) % all.length;
    const target = all[reached];
    const tab = document.querySelector(`.tabs [value="${target.closest(".side-b") ? "b" : "a"}"]`);
    if (tab) tab.checked = true;
    document.querySelectorAll(".reached").forEach((e) => e.classList.remove("reached"));
    target.closest("details.reasoning")?.setAttribute("open", "");
    target.classList.add("reached");
    leader = target.closest(".side"); // the other side stays where it is
    clearTimeout(idle);
    idle = setTimeout(() => { leader = null; }, 300);
    target.scrollIntoView({ block: "center" });
    document.getElementById("announce").textContent = `Mark ${reached + 1} of ${all.length}: ${target.title}`;
  };

  // ---- keys

  // A key that is held down repeats: it would act on the next pairs as well, before anybody has seen them.
  const press = (key, repeated) => {
    const target = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!target || target.hidden) return false;
    if (repeated) return true;
    if (target.tagName === "TEXTAREA") {
      target.focus();
      target.setSelectionRange(target.value.length, target.value.length); // browsers begin before the text of a draft
    } else target.click();
    if (target.type === "radio") target.focus();
    return true;
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form() && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      if (!event.repeat) form().querySelector("[data-decide]").click();
      return;
    }
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    // Enter decides, unless something has the focus that Enter acts on.
    const acts = event.target.closest && event.target.closest("a, button, summary, input:not([name=verdict]), select, textarea, [contenteditable]");
    if (event.key === "Enter" && form() && !acts && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      if (!event.repeat) form().querySelector("[data-decide]").click();
      return;
    }
    if (event.key === "Escape" && event.target.id === "critique") event.target.blur();
    if (typing(event.target) || keysOff() || document.querySelector("dialog[open]") || !document.getElementById("responses")) return;
    if (event.key === "]" || event.key === "[") {
      jump(event.key === "]" ? 1 : -1);
      event.preventDefault();
    } else if (event.key.length === 1 && press(event.key, event.repeat)) event.preventDefault();
  });
  document.addEventListener("click", (event) => { // the second click of a double click would, too
    if (event.detail > 1 && event.target.closest("main button")?.type === "submit") event.preventDefault();
  });
  // The panel of marks is higher while the critique has the focus. If the press took it, the release would miss the button.
  document.addEventListener("mousedown", (event) => {
    const pressed = document.activeElement?.id === "critique" && event.target.closest(".notes-panel :is(button, label, input)");
    if (pressed && !typing(pressed)) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-link-scroll]")) return;
    localStorage.setItem("link-scrolling", linked() ? "off" : "on");
    showLink();
  });
  document.addEventListener("click", (event) => { if (event.target.closest("[data-mark]")) mark(); });
  document.addEventListener("htmx:afterSwap", (event) => {
    reached = -1;
    showLink();
    if (event.detail.target.id !== "main") return;
    unsaved = false;
    unfold();
  });
  document.addEventListener("htmx:afterSettle", () => {
    show();
    // The focused button was replaced with its pair: move the focus to the start of the new one.
    if (document.activeElement === document.body) document.getElementById("main").focus({ preventScroll: true });
  });
  unfold();
  showLink();
  restore();
  show(); // the script is deferred, so the page is parsed
})();
