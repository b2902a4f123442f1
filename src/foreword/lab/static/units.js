// Hidden units of a character model: which of them follow a pattern, which react alike, and where.

import { ask, every, field, h, isSaved, later, latest, readable, say, select, trouble } from "lab/dom";

const SHOWN = 10, ALIKE = 6, PLACES = 5;

// [name, title, expression whose matches count]; those without one are numbers of their own
const PATTERNS = [
  ["quotes", "inside quotes", /"[^"\n]*"|“[^”\n]*”|«[^»\n]*»|`[^`\n]*`|「[^」\n]*」/gu],
  ["digits", "digits", /\p{N}/gu],
  ["capitals", "capitals", /\p{Lu}/gu],
  ["brackets", "inside brackets", /\([^)\n]*\)|\[[^\]\n]*\]/gu],
  ["blanks", "blanks", /\s/gu],
  ["marks", "punctuation", /\p{P}/gu],
  ["line", "length of the line so far", null],
  ["word", "length of the word so far", null],
  ["own", "an expression of your own", null],
  ["marked", "the passage that is marked", null],
];

/** One number per character: 1 where the expression matches, else 0; or how long the line or word is so far. */
export function series(signs, name, expression, marked = [0, 0]) {
  if (name === "line" || name === "word") {
    let length = 0;
    return signs.map((sign) => (length = (name === "line" ? sign === "\n" : /[^\p{L}\p{M}]/u.test(sign)) ? 0 : length + 1));
  }
  if (name === "marked") return signs.map((_, at) => Number(at >= marked[0] && at < marked[1]));
  const found = signs.map(() => 0), starts = new Map();
  let unit = 0;
  signs.forEach((sign, at) => { starts.set(unit, at); unit += sign.length; });
  starts.set(unit, signs.length);
  for (const match of signs.join("").matchAll(expression)) {
    if (match[0]) found.fill(1, starts.get(match.index) ?? 0, starts.get(match.index + match[0].length) ?? signs.length);
  }
  return found;
}

/** Pearson's correlation, in one pass; 0 where one of the two does not vary. */
export function correlation(a, b) {
  const n = a.length;
  let p = 0, q = 0, both = 0, one = 0, other = 0;
  for (let at = 0; at < n; at++) {
    const x = a[at], y = b[at];
    p += x;
    q += y;
    both += x * y;
    one += x * x;
    other += y * y;
  }
  const spread = (one - (p * p) / n) * (other - (q * q) / n);
  return spread > 1e-12 ? (both - (p * q) / n) / Math.sqrt(spread) : 0;
}

export async function start(view) {
  const now = { pattern: "quotes", own: "ing\\b", unit: null, marked: [0, 0] };
  let data = null, units = [], signs = [], wanted = [];
  const asking = latest();

  const pattern = select("units-pattern", PATTERNS.slice(0, -1).map(([name, title]) => [name, title]), (value) => { now.pattern = value; now.unit = null; refresh(); }, now.pattern);
  const own = h("input", { id: "units-own", type: "text", value: now.own, maxlength: 100, spellcheck: "false", autocomplete: "off",
    oninput: () => { now.own = own.value; now.pattern = "own"; now.unit = null; pattern.value = "own"; refresh(); } });
  const text = h("textarea", { id: "units-text", rows: 2, maxlength: 2000, placeholder: "A text of your own, or nothing, for one that the model has not learnt from",
    oninput: later(() => load(), 300) });
  const mark = h("button", { type: "button", class: "plain", id: "units-mark", onclick: search }, "Search for what is marked in the text");
  const list = h("ol", { class: "bars units", "aria-label": "Units that follow the pattern best" });
  const alike = h("ol", { class: "bars units", "aria-label": "Units that react like the chosen one" });
  const read = h("div", { class: "activity", tabindex: "0", role: "region", "aria-label": "The text, coloured by the chosen unit" });
  const places = h("ul", { class: "peaks" });
  const note = h("p", { class: "note", role: "status" }), wrong = h("div", {}), title = h("h3", {});
  const results = h("div", { class: "grid two", hidden: true }, h("section", { class: "card" }, h("h3", {}, "Units that follow it"), list, wrong),
    h("section", { class: "card" }, h("h3", {}, "Units that react alike"), alike, h("h3", { class: "second" }, "Where it reacts most"), places),
    h("section", { class: "card full" }, title, read));

  const load = () => asking(() => ask("/api/units", { text: text.value }), (told) => {
    if (told.text === null) { note.textContent = "The character model is being trained: it appears here when it is done."; return; }
    note.textContent = "";
    results.hidden = false;
    data = told;
    signs = [...data.text];
    const levels = new Int8Array(Uint8Array.from(atob(data.states), (sign) => sign.charCodeAt(0)).buffer);
    units = Array.from({ length: data.units }, (_, unit) => Float64Array.from(signs, (_, at) => levels[at * data.units + unit] / 127));
    now.unit = null;
    read.replaceChildren(...signs.map((sign) => h("span", {}, sign === "\n" ? "⏎\n" : sign)));
    refresh();
  }, (error) => note.replaceChildren(trouble(error)));

  function refresh() {
    if (!data) return;
    let expression = PATTERNS.find(([name]) => name === now.pattern)[2];
    wrong.replaceChildren();
    if (now.pattern === "own") {
      try { expression = new RegExp(now.own, "gu"); } catch (error) { wrong.replaceChildren(trouble(error)); return; }
    }
    wanted = Float64Array.from(series(signs, now.pattern, expression, now.marked));
    const found = ranked((unit) => correlation(units[unit], wanted)).slice(0, SHOWN);
    if (now.unit === null) now.unit = found[0][0];
    if (!wanted.some((value) => value !== wanted[0])) wrong.replaceChildren(trouble(new Error("the text has nothing of that kind: choose another pattern, or another text")));
    list.replaceChildren(...found.map(bar));
    alike.replaceChildren(...ranked((unit) => correlation(units[unit], units[now.unit])).filter(([unit]) => unit !== now.unit).slice(0, ALIKE).map(bar));
    drawText();
    say(`unit ${found[0][0] + 1} follows it best: ${readable(found[0][1])}`);
  }
  const ranked = (score) => units.map((_, unit) => [unit, score(unit)]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const bar = ([unit, r]) => h("li", { "data-unit": unit, "data-r": r, class: unit === now.unit ? "here" : "" },
    h("button", { type: "button", class: "word", "aria-pressed": String(unit === now.unit), onclick: () => { now.unit = unit; refresh(); } }, `unit ${unit + 1}`),
    h("span", { class: "bar", "aria-hidden": "true" }, h("i", { class: r < 0 ? "minus" : "", style: `width:${100 * Math.abs(r)}%` })), h("span", { class: "value" }, `r = ${readable(r)}`));

  function drawText() {
    const active = units[now.unit], matched = !["line", "word"].includes(now.pattern);
    title.textContent = `Unit ${now.unit + 1} at each character${matched ? "; what matches is underlined" : ""}`;
    const letters = read.children;
    for (let at = 0; at < letters.length; at++) {
      letters[at].style.background = `color-mix(in srgb, var(--${active[at] < 0 ? "minus" : "plus"}) ${Math.round(62 * Math.abs(active[at]))}%, var(--card))`;
      letters[at].className = matched && wanted[at] ? "matched" : "";
    }
    const turned = correlation(active, wanted) < 0 ? -1 : 1, taken = new Set();
    const order = Array.from(active, (value, at) => [turned * value, at]).sort((a, b) => b[0] - a[0]);
    const best = order.filter(([, at]) => { const free = ![...taken].some((other) => Math.abs(other - at) < 15); if (free && taken.size < PLACES) { taken.add(at); return true; } return false; });
    places.replaceChildren(...best.map(([, at]) => h("li", {}, signs.slice(Math.max(0, at - 24), at).join("").replaceAll("\n", "⏎"), h("b", {}, signs[at].replace("\n", "⏎")), signs.slice(at + 1, at + 18).join("").replaceAll("\n", "⏎"))));
  }

  function search() {
    const marked = document.getSelection(), at = [...read.children];
    const range = marked.rangeCount ? marked.getRangeAt(0) : null, inside = at.map((_, n) => n).filter((n) => range?.intersectsNode(at[n]));
    if (!inside.length || range.collapsed) { wrong.replaceChildren(trouble(new Error("nothing is marked: draw over a passage of the coloured text first"))); return; }
    now.marked = [inside[0], inside.at(-1) + 1];
    now.pattern = "marked";
    now.unit = null;
    pattern.fill(PATTERNS.map(([name, label]) => [name, label]), "marked");
    refresh();
  }

  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Hidden units"), h("p", {}, "An LSTM of 64 units has learnt to write this kind of text, character by character. Choose a pattern, and see which units follow it and how closely: blanks are learnt in seconds, quotes that close take longer.")),
    h("div", { class: "controls" }, field("Pattern", pattern), field("Expression of your own", own), field("Text", text, { class: "wide" })), h("div", { class: "buttons" }, mark), note, results);
  await load();
  if (!isSaved && !data) every(3000, view, () => { if (!data) load(); });
  globalThis.labUnits = { series, correlation, of: () => ({ signs, units, now }) };
}
