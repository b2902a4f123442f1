// The next word: every language model side by side, its distribution, what surprised it, and what it would write.

import { ask, every, field, h, latest, later, readable, slider, trouble } from "lab/dom";

const SHOWN = 8, HOTTEST = 14;

export async function start(view) {
  const { prompt } = await ask("/api/examples");
  const now = { text: prompt, temperature: 1, seed: 0 };
  const cards = new Map();
  const grid = h("div", { class: "grid", id: "next-models" });
  const note = h("p", { class: "note", role: "status" });

  const text = h("textarea", { id: "next-text", rows: 2, maxlength: 4000, spellcheck: "false", oninput: () => { now.text = text.value; refresh(); } });
  text.value = now.text;
  const temperature = slider({ id: "next-temperature", label: "Temperature", min: 0.1, max: 3, step: 0.05, value: 1,
    change: (value) => { now.temperature = value; refresh(); } });
  const again = h("button", { type: "button", class: "main", id: "next-write", onclick: () => { now.seed += 1; cards.forEach((card) => card.write()); } }, "Write on");

  function cardOf(model) {
    const bars = h("ol", { class: "bars", "aria-label": `${model.title}: likeliest next words` });
    const about = h("small", {});
    const read = h("div", { class: "read", role: "group", "aria-label": `${model.title}: surprise at each word` });
    const sample = h("p", { class: "sample" }, h("b", {}, "Press Write on."));
    const [asking, reading, writing] = [latest(), latest(), latest()];
    const element = h("article", { class: "card model", "data-model": model.name },
      h("h3", {}, model.title, about), bars, read, sample);
    const failed = (place) => (error) => place.replaceChildren(trouble(error));
    return {
      element,
      ask: () => {
        asking(() => ask("/api/next", { model: model.name, text: now.text, k: SHOWN, temperature: now.temperature }), (told) => {
          about.textContent = `${readable(told.entropy, 1)} bits open`;
          const largest = Math.max(told.tokens[0].p, 0.02);
          bars.replaceChildren(...told.tokens.map(({ token, p }) => h("li", { "data-token": token, "data-p": p },
            h("button", { type: "button", class: "word", title: "Put it into the text", onclick: () => append(token) }, token),
            h("span", { class: "bar", "aria-hidden": "true" }, h("i", { style: `width:${(100 * p) / largest}%` })),
            h("span", { class: "value" }, `${readable(100 * p, 1)} %`))),
          h("li", { class: "rest" }, h("span", { class: "word" }, "all others"), h("span", {}), h("span", { class: "value" }, `${readable(100 * told.rest, 1)} %`)));
        }, failed(bars));
        if (!now.text.trim()) { read.replaceChildren(); return; }
        reading(() => ask("/api/surprisal", { model: model.name, text: now.text }), (told) => {
          const words = told.tokens.slice(0, -1);
          const sum = words.reduce((total, { bits }) => total + (bits ?? Infinity), 0);
          read.replaceChildren(...words.flatMap(({ token, bits }) => [h("span", { title: `${readable(bits, 1)} bits`, "data-bits": bits,
            style: `--a:${Math.min(0.6, (0.6 * (bits ?? 99)) / HOTTEST).toFixed(3)}` }, token), " "]),
          h("small", {}, `${readable(sum / Math.max(1, words.length), 1)} bits a word`));
        }, failed(read));
      },
      write: () => writing(() => ask("/api/generate", { model: model.name, prompt: now.text, max_tokens: 30, temperature: now.temperature, seed: now.seed }),
        (told) => sample.replaceChildren(h("b", {}, "… "), told.text.trim() || "(the text ends here)"), failed(sample)),
    };
  }

  function append(token) {
    if (token === "</s>") return;
    now.text = `${now.text.trimEnd()} ${token.trim()}`.trimStart();
    text.value = now.text;
    refresh();
    text.focus();
  }
  const refresh = later(() => cards.forEach((card) => card.ask()), 80);

  async function look() {
    const models = (await ask("/api/models")).filter((model) => model.task === "text");
    for (const model of models) {
      if (cards.has(model.name)) continue;
      const card = cardOf(model);
      cards.set(model.name, card);
      grid.append(card.element);
      card.ask();
    }
    note.textContent = models.length ? "" : "The first models are being trained: they appear here as they are done.";
  }

  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Next word"),
      h("p", {}, "Type, and every model says what comes next. The darker a word of your text, the more it surprised the model; a click on a word puts it into the text.")),
    h("div", { class: "controls" }, field("Your text", text, { class: "wide" }), temperature, again), note, grid);
  await look();
  every(2000, view, () => look().catch(() => {}));
}
