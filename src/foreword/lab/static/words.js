// Words as vectors: a map, neighbours, an analogy, CBOW against skip-gram, an axis, a cloud.

import { ask, every, field, h, latest, later, picture, readable, s, select, trouble } from "lab/dom";

export async function start(view) {
  const { sentence: example } = await ask("/api/examples");
  const now = { model: null, method: "pca", around: "", word: "", sentence: example, centre: 3 };
  const model = select("words-model", [], (value) => { now.model = value; begin(); });
  const method = select("words-method", [["pca", "principal components"], ["t-sne", "t-SNE"]], (value) => { now.method = value; drawMap(); });
  const text = (id, value, change, more = {}) => {
    const control = h("input", { id, type: "text", value, maxlength: 200, autocomplete: "off", oninput: () => change(control.value), ...more });
    return control;
  };
  const around = text("words-around", "", later((value) => { now.around = value; drawMap(); }, 400), { placeholder: "all, or: list file error" });
  const word = text("words-word", now.word, later((value) => { now.word = value; drawNear(); }, 200));
  const places = Object.fromEntries(["map", "near", "analogy", "axis", "window", "cloud"].map((name) => [name, h("div", { id: `words-${name}-place` })]));
  const asking = Object.fromEntries(Object.keys(places).map((name) => [name, latest()]));
  const note = h("p", { class: "note", role: "status" });
  const put = (name, make) => (told) => places[name].replaceChildren(...[make(told)].flat());
  const failed = (name) => (error) => places[name].replaceChildren(trouble(error));
  const list = (line) => line.split(/[\s,]+/).filter(Boolean);

  const drawMap = () => now.model && asking.map(() => ask("/api/words/map", { model: now.model, method: now.method, around: list(now.around), count: 90 }), put("map", drawnMap), failed("map"));
  function drawnMap({ points }) {
    const WIDE = Math.max(300, places.map.clientWidth), HIGH = Math.min(520, Math.max(420, WIDE * 0.45));
    const svg = s("svg", { class: "map", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "group", "aria-label": `A map of ${points.length} words` });
    const taken = [];
    const free = (box) => !taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
    for (const point of [...points].sort((a, b) => b.asked - a.asked)) {
      const x = 14 + point.x * (WIDE - 90), y = 16 + point.y * (HIGH - 32), wide = 7 * point.word.length;
      const choices = [[x + 7, "start"], [x - 7 - wide, "end"]].flatMap(([left, anchor]) => [0, -9, 9].map((down) => ({ box: [left, y - 7 + down, left + wide, y + 6 + down], anchor, down })));
      const fits = choices.find(({ box }) => box[0] > 0 && box[2] < WIDE && free(box));
      if (fits) taken.push(fits.box);
      taken.push([x - 4, y - 4, x + 4, y + 4]);
      const choose = () => { now.word = point.word; word.value = point.word; drawNear(); };
      svg.append(s("g", { class: point.asked ? "asked" : "", tabindex: "0", role: "button", "aria-label": `${point.word}: show its neighbours`, onclick: choose,
        onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } } },
      s("title", {}, point.word), s("circle", { cx: x, cy: y, r: 4 }),
      fits ? s("text", { x: fits.anchor === "start" ? x + 8 : x - 8, y: y + 4 + fits.down, "text-anchor": fits.anchor }, point.word) : ""));
    }
    return svg;
  }

  const bars = (words, key) => h("ol", { class: "bars" }, words.map((each) => h("li", { "data-word": each.word },
    h("span", { class: "word" }, each.word), h("span", { class: "bar", "aria-hidden": "true" }, h("i", { style: `width:${Math.max(0, 100 * each[key])}%` })),
    h("span", { class: "value" }, readable(each[key])))));
  const drawNear = () => now.model && asking.near(() => ask("/api/nearest", { model: now.model, word: now.word, k: 12 }), put("near", ({ results }) => bars(results[0].words, "cosine")), failed("near"));

  const three = ["a", "b", "c"].map((place) => text(`words-analogy-${place}`, "", later(() => drawAnalogy(), 250)));
  const drawAnalogy = () => now.model && asking.analogy(() => ask("/api/words/analogy", { model: now.model, a: three[0].value, b: three[1].value, c: three[2].value }),
    put("analogy", ({ answers, picture: drawn }) => [picture(drawn), h("p", { class: "note" }, "Best answers: ", answers.map((each) => `${each.word} ${readable(each.cosine)}`).join(" · "))]), failed("analogy"));

  const poles = [0, 1].map((place) => text(`words-pole-${place}`, "", later(() => drawAxis(), 250)));
  const others = text("words-others", "", later(() => drawAxis(), 250), { placeholder: "their neighbours" });
  const drawAxis = () => now.model && asking.axis(() => ask("/api/words/axis", { model: now.model, one: poles[0].value, other: poles[1].value, words: list(others.value) }), put("axis", drawnAxis), failed("axis"));
  function drawnAxis({ words }) {
    const largest = Math.max(0.05, ...words.map((each) => Math.abs(each.lean)));
    return h("ol", { class: "bars" }, words.map((each) => h("li", { "data-word": each.word, "data-lean": each.lean }, h("span", { class: "word" }, each.word),
      h("span", { class: "lean", "aria-hidden": "true" },
        h("span", { class: "bar", style: "direction:rtl;border:0" }, each.lean > 0 ? h("i", { style: `width:${(100 * each.lean) / largest}%` }) : ""),
        h("span", { class: "bar" }, each.lean < 0 ? h("i", { class: "minus", style: `width:${(-100 * each.lean) / largest}%` }) : "")),
      h("span", { class: "value" }, readable(each.lean)))));
  }

  const sentence = text("words-sentence", now.sentence, later((value) => { now.sentence = value; drawWindow(); }, 250));
  const centres = h("div", { class: "chips", role: "group", "aria-label": "Which word is in the middle" });
  const drawWindow = () => {
    const said = now.sentence.split(/\s+/).filter(Boolean);
    now.centre = Math.min(now.centre, Math.max(0, said.length - 1));
    centres.replaceChildren(...said.map((each, n) => h("button", { type: "button", class: `chip${n === now.centre ? " here" : ""}`, "aria-pressed": String(n === now.centre), onclick: () => { now.centre = n; drawWindow(); } }, each)));
    if (said.length) asking.window(() => ask("/api/words/window", { sentence: said.join(" "), centre: now.centre }), put("window", picture), failed("window"));
  };

  const own = h("textarea", { id: "words-cloud", rows: 2, maxlength: 200000, placeholder: "Paste a text here, or see the lab's own", oninput: later(() => drawCloud(), 400) });
  const drawCloud = () => { if (!places.cloud.firstChild) places.cloud.textContent = "Counting…"; return asking.cloud(() => ask("/api/words/cloud", { text: own.value }), put("cloud", picture), failed("cloud")); };

  // Words that these vectors have, where nothing was typed yet.
  async function begin() {
    const told = await ask("/api/words/suggested", { model: now.model });
    if (!now.word) { now.word = told.word; word.value = told.word; }
    if (three.every((each) => !each.value)) three.forEach((each, n) => { each.value = told.analogy[n]; });
    if (poles.every((each) => !each.value)) poles.forEach((each, n) => { each.value = told.axis[n]; });
    all();
  }
  function all() { drawMap(); drawNear(); drawAnalogy(); drawAxis(); }
  const card = (title, lead, controls, place, more = "") => h("section", { class: `card ${more}` }, h("h3", {}, title), lead ? h("p", { class: "note", style: "margin:0 0 .8rem" }, lead) : "", controls, place);
  const box = h("div", { class: "grid two", hidden: true },
    card("Map", "The closer two words, the more alike their surroundings.", h("div", { class: "controls" }, field("Laid out by", method), field("Around these words", around, { class: "wide" })), places.map, "full"),
    card("Neighbours", "", h("div", { class: "controls" }, field("Word", word, { class: "wide" })), places.near),
    card("Axis between two words", "Left leans to the first, right to the second: the cosine with the direction between them.", h("div", { class: "controls analogy" }, field("One end", poles[0]), field("Other end", poles[1]), field("Words", others, { class: "wide" })), places.axis),
    card("Analogy", "", h("div", { class: "controls analogy" }, field("As", three[0]), field("is to", three[1]), field("so is", three[2]), h("span", { class: "between" }, "to ?")), places.analogy, "full"),
    card("CBOW and skip-gram", "", h("div", {}, h("div", { class: "controls" }, field("Sentence", sentence, { class: "wide" })), centres), places.window, "full"),
    card("Word cloud", "", h("div", { class: "controls" }, field("Text", own, { class: "wide" })), places.cloud, "full"));

  async function look() {
    const found = (await ask("/api/models")).filter((each) => each.task === "vectors");
    const listed = found.map((each) => [each.name, each.title]);
    if (listed.length !== model.options.length) model.fill(listed);
    note.textContent = found.length ? "" : "There are no word vectors yet: they appear here once trained, or name a file of them when you start the lab.";
    if (found.length && now.model === null) { now.model = found[0].name; box.hidden = false; await begin(); drawCloud(); }
    if (found.length > 1 && !now.windowed) { now.windowed = true; drawWindow(); }
  }
  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Words"), h("p", {}, "A word is known by the company it keeps: each has a vector, learnt from the words around it.")),
    h("div", { class: "controls" }, field("Vectors", model)), note, box);
  await look();
  every(2000, view, () => look().catch(() => {}));
}
