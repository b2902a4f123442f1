// A hidden Markov model at work: what it believes before a word (predict), after it (correct), and the best path.

import { ask, every, field, h, icon, later, latest, readable, select, shade, trouble } from "lab/dom";

const VIEWS = [["predicted", "Predict: before the word is seen"], ["corrected", "Correct: after the word"], ["smoothed", "With the words that follow"]];

export async function start(view) {
  const now = { model: null, text: "The old man read the book in the park .", word: 0, phase: "corrected", told: null };
  const asking = latest();
  const model = select("tags-model", [], (value) => { now.model = value; load(); });
  const text = h("input", { id: "tags-text", type: "text", value: now.text, maxlength: 400, autocomplete: "off", oninput: () => { now.text = text.value; fresh(); } });
  const phase = select("tags-phase", VIEWS, (value) => { now.phase = value; draw(); }, now.phase);
  const place = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Trellis", id: "tags-trellis" });
  const steps = h("div", { class: "grid two" });
  const others = h("div", {});
  const note = h("p", { class: "note", role: "status" });
  const buttons = h("div", { class: "buttons", role: "group", "aria-label": "Steps" },
    h("button", { type: "button", id: "tags-back", "aria-label": "Back", onclick: () => step(-1) }, icon("back")),
    h("button", { type: "button", id: "tags-next", "aria-label": "Next", onclick: () => step(1) }, icon("next")));
  const where = h("span", { class: "note", style: "margin:0" });
  buttons.append(where);

  const frame = h("section", { class: "card", style: "margin-bottom:1rem", hidden: true }, place);

  function step(by) {
    if (!now.told) return;
    const order = now.word * 2 + (now.phase === "predicted" ? 0 : 1) + by;
    const count = 2 * now.told.words.length;
    const to = ((order % count) + count) % count;
    now.word = to >> 1;
    now.phase = to % 2 ? "corrected" : "predicted";
    phase.value = now.phase;
    draw();
  }

  const load = () => now.model && asking(() => ask("/api/tags/trellis", { model: now.model, text: now.text }), async (told) => {
    now.told = told;
    frame.hidden = false;
    now.word = Math.min(now.word, told.words.length - 1);
    draw();
    await drawOthers();
  }, (error) => { now.told = null; frame.hidden = false; place.replaceChildren(trouble(error)); steps.replaceChildren(); });
  const fresh = later(load, 120);

  function draw() {
    const { told } = now;
    if (!told) return;
    const rows = told[now.phase];
    const shown = told.names.map((_, tag) => tag).filter((tag) => told.path.includes(tag) || told.predicted.some((row) => row[tag] > 0.05) || told.corrected.some((row) => row[tag] > 0.02));
    place.replaceChildren(h("table", { class: "trellis" },
      h("thead", {}, h("tr", {}, h("td", { style: "border:0" }), told.words.map((word, n) => h("th", { scope: "col" }, h("button", { type: "button", class: `chip${n === now.word ? " here" : ""}`, "aria-pressed": String(n === now.word), onclick: () => { now.word = n; draw(); } }, word))))),
      h("tbody", {}, shown.map((tag) => h("tr", {}, h("th", { scope: "row" }, told.names[tag]), rows.map((row, n) => h("td", {
        class: told.path[n] === tag ? "best" : "", style: shade(row[tag]), "data-word": n, "data-tag": told.names[tag], "data-p": row[tag], title: readable(row[tag], 4),
      }, row[tag] >= 0.0005 ? readable(100 * row[tag], row[tag] >= 0.0995 ? 0 : 1) : "")))),
      h("tr", { class: "path" }, h("th", { scope: "row" }, "Viterbi"), told.path.map((tag) => h("td", {}, told.names[tag].split(" ")[0]))))));
    where.textContent = `word ${now.word + 1} of ${told.words.length}: ${told.words[now.word]}`;
    steps.replaceChildren(...[["predicted", "Predict", "what the words before make likely"], ["corrected", "Correct", `multiplied by how likely each is to be written “${told.words[now.word]}”`]].map(([name, title, meaning]) => {
      const row = told[name][now.word];
      const best = row.map((p, tag) => [p, tag]).sort((a, b) => b[0] - a[0]).slice(0, 6);
      return h("section", { class: "card" }, h("h3", {}, `${title}: “${told.words[now.word]}”`), h("p", { class: "note", style: "margin:0 0 .6rem" }, meaning),
        h("ol", { class: "bars" }, best.map(([p, tag]) => h("li", {}, h("span", { class: "word" }, told.names[tag]), h("span", { class: "bar", "aria-hidden": "true" }, h("i", { style: `width:${100 * p}%` })), h("span", { class: "value" }, `${readable(100 * p, 1)} %`)))));
    }));
  }

  async function drawOthers() {
    const listed = now.others ?? [];
    const found = await Promise.all(listed.map(async (each) => ({ title: each.title, ...(await ask("/api/tags/predict", { model: each.name, text: now.text })) }))).catch(() => []);
    const rows = found.map((told) => h("tr", {}, h("th", { scope: "row" }, told.title), told.tags.map((tag, n) => h("td", { title: told.words[n] }, tag))));
    others.replaceChildren(...(rows.length ? [h("section", { class: "card", style: "margin-top:1rem" }, h("h3", {}, "Other taggers"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Other taggers" },
      h("table", { class: "beside" }, h("thead", {}, h("tr", {}, h("td", {}), found[0].words.map((word) => h("th", { scope: "col" }, word)))), h("tbody", {}, rows))))] : []));
  }

  async function look() {
    const told = await ask("/api/tags");
    const listed = told.trellis.map((each) => [each.name, each.title]);
    const news = listed.length !== model.options.length || told.others.length !== (now.others ?? []).length;
    now.others = told.others;
    if (news) model.fill(listed, now.model ?? undefined);
    note.textContent = listed.length ? "" : "There is no hidden Markov model yet: one is being trained, or name a tagger's folder when you start the lab.";
    if (listed.length && now.model === null) now.model = listed[0][0];
    if (news) await load();
  }
  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Tags"), h("p", {}, "A hidden Markov model predicts the next tag from the tags before, sees the word, and corrects itself. The framed boxes are the likeliest path of all, which need not go through each word's likeliest tag.")),
    h("div", { class: "controls" }, field("Model", model), field("Your sentence", text, { class: "wide" }), field("Shown", phase)), buttons, note,
    frame, steps, others);
  await look();
  every(2000, view, () => look().catch(() => {}));
}
