// Byte-pair encoding replayed: one merge at a time on the user's own text, and how each shortens it.

import { lineChart } from "lab/chart";
import { ask, field, h, later, latest, say, select, slider, stepper, trouble } from "lab/dom";

const TINTS = ["var(--c1)", "var(--c2)", "var(--c3)", "var(--plus)", "var(--minus)"];

export async function start(view) {
  const { merges: example } = await ask("/api/examples");
  const now = { text: example, source: "text", step: 0, told: null };
  const asking = latest();

  const text = h("textarea", { id: "tokens-text", rows: 2, maxlength: 2000, spellcheck: "false", oninput: () => { now.text = text.value; fresh(); } });
  text.value = example;
  const source = select("tokens-source", [["text", "this text alone"], ["corpus", "the lab's whole text"]], (value) => { now.source = value; load(); });
  const at = slider({ id: "tokens-step", label: "Merges done", min: 0, max: 1, step: 1, value: 0, show: (value) => `${value}`, change: (value) => { buttons.pause(); show(value); } });
  const buttons = stepper("tokens", view, { first: () => show(0), move: (by) => show(now.step + by), tick: 700,
    over: () => !now.told || now.step >= now.told.steps.length - 1 });
  const merge = h("p", { class: "merge" });
  const row = h("div", { class: "tokens", id: "tokens-row", role: "img", "aria-label": "no tokens yet" });
  const list = h("ol", { class: "merges", "aria-label": "Merges" });
  const chart = h("div", { class: "chart-place" });
  const note = h("p", { class: "told" });

  const load = () => asking(() => ask("/api/merges", { text: now.text, source: now.source, merges: 200 }), (told) => {
    now.told = told;
    at.limits(0, told.steps.length - 1);
    list.replaceChildren(...told.steps.slice(1).map((step, n) => h("li", {}, h("button", { type: "button", onclick: () => { buttons.pause(); show(n + 1); } },
      h("span", {}, n + 1), h("code", {}, seen(step.merge[0]), " + ", seen(step.merge[1])), h("small", {}, step.count === null ? "" : `${step.count} ×`)))));
    show(0);
  }, (error) => { now.told = null; row.replaceChildren(trouble(error)); });
  const fresh = later(load, 150);
  const seen = (token) => token.replaceAll(" ", "␣").replaceAll("\n", "⏎");

  function show(wanted) {
    if (!now.told) return;
    const steps = now.told.steps;
    now.step = Math.max(0, Math.min(steps.length - 1, wanted));
    const step = steps[now.step], made = step.merge ? step.merge.join("") : null;
    at.set(now.step);
    merge.replaceChildren(...(step.merge
      ? [h("mark", {}, seen(step.merge[0])), " + ", h("mark", {}, seen(step.merge[1])), " → ", h("mark", {}, seen(made)), step.count === null ? "" : h("small", {}, `  stood there ${step.count} times`)]
      : ["Before any merge: characters"]));
    row.replaceChildren(...step.tokens.map((token) => h("span", { class: token === made ? "new" : "", style: `--tint:${TINTS[tint(token)]}` }, seen(token))));
    row.setAttribute("aria-label", `${step.tokens.length} tokens: ${step.tokens.map(seen).join(" | ")}`);
    [...list.children].forEach((item, n) => {
      const here = n + 1 === now.step;
      if (here) { item.firstChild.setAttribute("aria-current", "step"); list.scrollTop = item.offsetTop - list.offsetTop - 120; } else item.firstChild.removeAttribute("aria-current");
    });
    drawCurve();
    note.textContent = `${now.told.characters} characters are ${step.tokens.length} tokens after ${now.step} merge${now.step === 1 ? "" : "s"}, ${(now.told.characters / Math.max(1, step.tokens.length)).toFixed(2)} characters a token; the vocabulary has ${step.vocabulary} entries by then.`;
    if (!buttons.isPlaying()) say(note.textContent);
  }
  function drawCurve() {
    if (!now.told) return;
    lineChart(chart, { title: "Tokens of the text by size of the vocabulary", xName: "entries", yName: "tokens", height: 230, mark: now.told.steps[now.step].vocabulary,
      lines: [{ name: "tokens", colour: "var(--c2)", values: now.told.steps.map((step) => [step.vocabulary, step.tokens.length]) }] });
  }
  const tint = (token) => [...token].reduce((sum, sign) => (sum * 31 + sign.codePointAt(0)) % 9973, 7) % TINTS.length;

  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Tokens"),
      h("p", {}, "Byte-pair encoding begins with characters and joins, again and again, the two neighbours that stand together most often. Each joint becomes a token.")),
    h("div", { class: "controls" }, field("Your text", text, { class: "wide" }), field("Merges are learnt from", source), at), buttons,
    h("div", { class: "grid two" }, h("section", { class: "card full" }, merge, row, note),
      h("section", { class: "card" }, h("h3", {}, "Vocabulary and length"), chart), h("section", { class: "card" }, h("h3", {}, "Merges, in the order learnt"), list)));
  await load();
  new ResizeObserver(drawCurve).observe(chart);
}
