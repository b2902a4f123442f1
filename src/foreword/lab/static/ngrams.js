// N-grams, order by order: what was counted after each context, what is taken away, and how the rest adds up.

import { ask, field, h, maths, readable, say, slider, stepper } from "lab/dom";
import { Counter, METHODS, levels, likeliest, steps } from "lab/smoothing";

const TITLES = { "modified-kneser-ney": "Modified Kneser-Ney", "witten-bell": "Witten-Bell", "stupid-backoff": "Stupid back-off" };
const FORMULAS = {
  "modified-kneser-ney": "p(w | c) = (n(c w) − D(n)) / (N(c)) + b(c) p(w | c′)",
  "witten-bell": "p(w | c) = (n(c w)) / (N(c) + T(c)) + b(c) p(w | c′)",
  "stupid-backoff": "S(w | c) = (n(c w)) / (N(c)) or 0.4 S(w | c′)",
};
const ABOUT = {
  "modified-kneser-ney": "Below the highest order, n counts the different words before, not occurrences. What the discounts D take away is what b(c) gives to the shorter context c′.",
  "witten-bell": "Every different word T(c) that followed a context is counted once more, for something new: b(c) is T / (N + T).",
  "stupid-backoff": "The longest n-gram that was seen, as it was seen; each order that has not seen it costs a factor of 0.4. The scores do not add up to one.",
};
const ORDERS = ["uniform", "1-gram", "2-gram", "3-gram", "4-gram", "5-gram"];
const SHOWN = 7;

export async function start(view) {
  const data = await ask("/api/ngrams");
  const bytes = Uint8Array.from(atob(data.ids), (sign) => sign.charCodeAt(0)), size = data.words.length;
  const counter = new Counter(size > 0xfffe ? new Uint32Array(bytes.buffer) : new Uint16Array(bytes.buffer), size);
  const numbers = new Map(data.words.map((word, id) => [word, id]));
  const now = { text: data.prompt, order: 4, word: null, step: 0 };
  let found = {};

  const idsOf = (text) => {
    const pieces = data.characters ? [...text] : text.toLowerCase().match(/[\p{L}\p{M}\p{N}_]+|[^\p{L}\p{M}\p{N}_\s]/gu) ?? [];
    return [size, ...pieces.map((piece) => numbers.get(piece) ?? data.unknown ?? 0)];
  };
  const name = (id) => (id === size ? "<s>" : data.words[id]);
  const phrase = (ids) => ids.map(name).join(data.characters ? "" : " ");

  function compute() {
    const context = idsOf(now.text), discounts = data.discounts[now.order - 1];
    found = { context, methods: {} };
    for (const method of METHODS) {
      const all = levels(counter, method, context, discounts);
      found.methods[method] = { levels: all, best: likeliest(method, all, SHOWN) };
    }
    if (now.word === null || !found.methods[METHODS[0]].levels.some(({ seen }) => seen?.has(now.word))) now.word = found.methods[METHODS[0]].best[0][0];
    found.count = found.methods[METHODS[0]].levels.length;
  }

  const text = h("input", { id: "ngrams-text", type: "text", value: now.text, maxlength: 400, autocomplete: "off", spellcheck: "false",
    oninput: () => { now.text = text.value; now.word = null; refresh(); } });
  const order = slider({ id: "ngrams-order", label: "Order", min: 1, max: data.discounts.length, step: 1, value: now.order, show: (value) => `${value}`,
    change: (value) => { now.order = value; refresh(); } });
  const buttons = stepper("ngrams", view, {
    first: () => { now.step = 0; draw(); }, move, over: () => now.step >= found.count - 1, tick: 1300,
  });
  const where = h("p", { class: "told", id: "ngrams-where" });
  const counts = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Counts of each order" });
  const cards = Object.fromEntries(METHODS.map((method) => [method, h("article", { class: "card", "data-method": method, "aria-label": TITLES[method] })]));

  function move(by) {
    now.step = Math.max(0, Math.min(found.count - 1, now.step + by));
    draw();
  }
  function choose(id) {
    now.word = id;
    draw();
  }
  function append(id) {
    if (id === data.end) return;
    now.text = `${now.text.trimEnd()}${data.characters ? "" : " "}${data.words[id]}`.trimStart();
    text.value = now.text;
    now.word = null;
    now.step = 0;
    refresh();
  }

  function draw() {
    const shown = found.methods[METHODS[0]].levels;
    const level = shown[now.step];
    where.replaceChildren(level.order ? `Step ${now.step + 1} of ${found.count}: what was counted after ` : `Step ${now.step + 1} of ${found.count}: every one of ${size} words alike`,
      level.order ? h("b", {}, level.words.length ? `“${phrase(level.words)}”` : "nothing: words by themselves") : "", ".");
    counts.replaceChildren(table(shown));
    for (const method of METHODS) cards[method].replaceChildren(...card(method));
    if (!buttons.isPlaying()) say(`${where.textContent} ${METHODS.map((method) => `${TITLES[method]} ${readable(100 * upTo(method, now.word), 2)} percent`).join(", ")}`);
  }
  const upTo = (method, word) => steps(method, found.methods[method].levels, word).slice(0, now.step + 1).reduce((sum, { part }) => sum + part, 0);

  function table(shown) {
    const raw = found.methods["witten-bell"].levels;
    return h("table", { class: "orders" },
      h("caption", {}, "What the text has, for “", h("b", {}, name(now.word)), "” after each context"),
      h("thead", {}, h("tr", {}, ["Order", "Context c", "n(c w)", "N(c)", "T(c)", "Words before", "D"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, shown.slice(0, -1).map((level, n) => h("tr", { class: n > now.step ? "ahead" : n === now.step ? "here" : "", "aria-current": n === now.step ? "step" : null },
        h("th", { scope: "row" }, h("i", { class: `order-${level.order}` }), ORDERS[level.order]),
        h("td", { class: "context" }, level.words.length ? phrase(level.words) : "–"),
        h("td", { "data-seen": raw[n].counts.get(now.word) ?? 0 }, raw[n].counts.get(now.word) ?? 0), h("td", {}, raw[n].total), h("td", {}, raw[n].types),
        h("td", {}, level.counts === level.seen ? "not used" : level.counts.get(now.word) ?? 0),
        h("td", {}, readable(level.discount(level.counts.get(now.word) ?? 0), 3))))));
  }

  function card(method) {
    const { levels: all, best } = found.methods[method], rows = steps(method, all, now.word), total = rows.reduce((sum, { part }) => sum + part, 0);
    const largest = Math.max(best[0][1], total, 1e-9);
    const words = best.some(([id]) => id === now.word) ? best : [...best.slice(0, SHOWN - 1), [now.word, total]];
    return [h("h3", {}, TITLES[method]), maths(FORMULAS[method]), h("p", { class: "about" }, ABOUT[method]),
      h("ol", { class: "bars stacked", "aria-label": `${TITLES[method]}: likeliest next words` }, words.map(([id, p]) => h("li", { class: id === now.word ? "here" : "", "data-token": name(id), "data-p": p },
        h("button", { type: "button", class: "word", "aria-pressed": String(id === now.word), onclick: () => choose(id), ondblclick: () => append(id) }, name(id)),
        h("span", { class: "bar", "aria-hidden": "true" }, steps(method, all, id).slice(0, now.step + 1).map(({ order: level, part }) => h("i", { class: `order-${level}`, style: `width:${(100 * part) / largest}%` }))),
        h("span", { class: "value" }, `${readable(100 * upTo(method, id), 2)} %`)))),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${TITLES[method]}: the sum` }, h("table", { class: "orders" },
        h("thead", {}, h("tr", {}, ["Order", "own share", "weight", "product"].map((title) => h("th", { scope: "col" }, title)))),
        h("tbody", {}, rows.map((row, n) => h("tr", { class: n > now.step ? "ahead" : n === now.step ? "here" : "", "data-order": row.order, "data-part": row.part },
          h("th", { scope: "row" }, h("i", { class: `order-${row.order}` }), ORDERS[row.order]),
          n > now.step ? [1, 2, 3].map(() => h("td", {}, "·")) : [
            h("td", {}, own(method, all[n], row)), h("td", {}, row.weight ? readable(row.weight, 4) : "not used"), h("td", {}, readable(row.part, 5))]))),
        h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, method === "stupid-backoff" ? "S" : "p"), h("td", {}), h("td", {}), h("td", { class: "sum" }, h("b", {}, readable(upTo(method, now.word), 5)))))))];
  }
  function own(method, level, row) {
    if (!level.order) return `1 / ${size}`;
    if (!level.total) return "not seen";
    const top = row.taken ? `(${row.count} − ${readable(row.taken, 2)})` : row.count;
    return `${top} / ${method === "witten-bell" ? `(${level.total} + ${level.types})` : level.total}`;
  }

  function refresh() {
    compute();
    now.step = found.count - 1; // the whole sum; Play begins with the longest context
    draw();
  }

  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "N-grams"),
      h("p", {}, "Three ways to make a probability of the same counts. Type a context, choose a word, and play: from the longest context to none, each order adds its share to the sum.")),
    h("div", { class: "controls" }, field("Context", text, { class: "wide" }), order,
      h("button", { type: "button", class: "plain", id: "ngrams-append", onclick: () => append(now.word) }, "Append the chosen word")),
    buttons, where, h("section", { class: "card" }, counts, h("p", { class: "note" }, `Counted in ${data.tokens.toLocaleString("en")} of ${data.all_tokens.toLocaleString("en")} tokens of the lab’s text. “Words before” is in how many different words' company the n-gram stands, which Kneser-Ney counts below the highest order.`)),
    h("div", { class: "grid three" }, METHODS.map((method) => cards[method])));
  refresh();
  globalThis.labNgrams = { // for whoever wants to hold it to other numbers
    of: (words, wanted, method, id) => steps(method, levels(counter, method, idsOf(words), data.discounts[wanted - 1]), id),
  };
}
