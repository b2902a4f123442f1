// Translation: what each word of the answer attends to, and the beam as a tree; models with and without attention.

import { ask, every, field, h, later, latest, readable, s, shade, slider, trouble } from "lab/dom";

const ROW = 30;

export async function start(view) {
  const now = { text: "the 3rd of march 1998", width: 4 };
  const cards = new Map();
  const place = h("div", { class: "grid two" });
  const note = h("p", { class: "note", role: "status" });
  const text = h("input", { id: "translate-text", type: "text", value: now.text, maxlength: 400, autocomplete: "off", oninput: () => { now.text = text.value; refresh(); } });
  const width = slider({ id: "translate-width", label: "Beam", min: 1, max: 8, step: 1, value: 4, show: (value) => `${value} wide`, change: (value) => { now.width = value; refresh(); } });
  const refresh = later(() => cards.forEach((card) => card.load()), 120);

  function cardOf(model) {
    const said = h("p", { class: "merge" }), map = h("div", {}), tree = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${model.title}: beam` });
    const asking = latest();
    const element = h("article", { class: "card translation", "data-model": model.name }, h("h3", {}, model.title), said, map, h("h4", {}, "The beam: every text that was kept, and the one that won"), tree);
    return { element, load: () => now.text.trim() && asking(() => ask("/api/translate/tree", { model: model.name, text: now.text, width: now.width }), (told) => {
      said.textContent = told.translation || "(nothing)";
      map.replaceChildren(told.weights ? attention(told) : h("p", { class: "note", style: "margin:0 0 1rem" }, "It has no attention: all it knows of the source is one vector."));
      tree.replaceChildren(drawnTree(told.tree, tree.clientWidth));
    }, (error) => { said.replaceChildren(trouble(error)); map.replaceChildren(); tree.replaceChildren(); }) };
  }

  /** A row a target token, a column a source token, as in the papers. */
  function attention({ source, target, weights }) {
    const seen = (token) => (token === " " ? "␣" : token);
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Attention" }, h("table", { class: "looks", style: `min-width:${3 + 1.15 * source.length}rem` }, h("colgroup", {}, h("col"), source.map(() => h("col"))),
      h("caption", { class: "sr" }, "Where each token of the translation looks"),
      h("thead", {}, h("tr", {}, h("td", {}), source.map((token) => h("th", { scope: "col" }, seen(token))))),
      h("tbody", {}, target.map((token, row) => h("tr", {}, h("th", { scope: "row" }, seen(token)), weights[row].map((share, column) => h("td", {
        style: shade(share), "data-share": share, title: `${seen(token)} ← ${seen(source[column])}: ${readable(share)}`,
      }, share >= 0.25 ? readable(100 * share, 0) : "")))))));
  }

  function drawnTree({ nodes, best }, room) {
    const last = Math.max(...nodes.map((node) => node.step));
    const widest = Math.max(...nodes.filter((node) => !node.finished).map((node) => node.token.length), 1);
    const STEP = Math.max(8 * widest + 22, Math.min(64, (room - 70) / last));
    const rows = new Map(), inBest = new Set(best);
    const at = nodes.map((node) => { const row = rows.get(node.step) ?? 0; rows.set(node.step, row + 1); return { x: 30 + node.step * STEP, y: 24 + row * ROW }; });
    const high = 24 + Math.max(...rows.values()) * ROW;
    const svg = s("svg", { class: "beam", width: 60 + (last + 0.5) * STEP, height: high, role: "img", "aria-label": `A beam of ${nodes.length} texts; the best: ${best.map((n) => nodes[n].token).join("")}` });
    nodes.forEach((node, n) => {
      const from = node.parent < 0 ? { x: 30, y: 24 } : at[node.parent];
      svg.append(s("path", { class: inBest.has(n) ? "edge best" : "edge", d: `M${from.x + (node.parent < 0 ? 6 : 13)},${from.y}C${from.x + 32},${from.y} ${at[n].x - 32},${at[n].y} ${at[n].x - 13},${at[n].y}` }));
    });
    svg.append(s("circle", { class: "root", cx: 30, cy: 24, r: 6 }));
    nodes.forEach((node, n) => {
      const wide = Math.max(22, 8 * node.token.length + 8);
      svg.append(s("g", { class: `node${inBest.has(n) ? " best" : ""}${node.finished ? " finished" : ""}` }, s("title", {}, `log p = ${readable(node.logprob)}`),
        s("rect", { x: at[n].x - wide / 2, y: at[n].y - 11, width: wide, height: 22, rx: 6 }), s("text", { x: at[n].x, y: at[n].y + 4, "text-anchor": "middle" }, node.token === " " ? "␣" : node.token)));
    });
    return svg;
  }

  async function look() {
    const models = (await ask("/api/models")).filter((model) => model.task === "translate");
    for (const model of models) {
      if (cards.has(model.name)) continue;
      const card = cardOf(model);
      cards.set(model.name, card);
      place.append(card.element);
      card.load();
    }
    note.textContent = models.length ? "" : "The translators are being trained: they appear here as they are done.";
  }
  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Translate"), h("p", {}, "An encoder reads, a decoder writes. With attention it looks back at the source for each sign it writes: a row below is one sign, the dark squares are where it looked. Without, everything must fit into one vector. The lab's own translators turn dates into their ISO form.")),
    h("div", { class: "controls" }, field("Source", text, { class: "wide" }), width), note, place);
  await look();
  every(2000, view, () => look().catch(() => {}));
}
