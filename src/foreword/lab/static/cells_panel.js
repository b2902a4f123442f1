// Recurrent cells side by side, stepping through a sentence: every gate and state, gradients by lag.

import { KINDS, adjusted, backward, gradientByLag, gradientByWord, made, partSum, run, value, wordInput } from "lab/cells";
import { lineChart } from "lab/chart";
import { ask, field, fixed, h, isSaved, maths, readable, s, say, select, shade, slider, stepper } from "lab/dom";

const TITLES = { rnn: "RNN", lstm: "LSTM", gru: "GRU" };
const COLOURS = { rnn: "var(--c1)", lstm: "var(--c2)", gru: "var(--c3)" };
const LONGEST = 60;

// What a cell computes at one word, in four operations. [name in cells.js, sign, what it is]
const OPERATIONS = {
  rnn: [
    ["Read the word", [["from_x", "Wₓx", "what the word says"]]],
    ["Read the memory", [["from_h", "Wₕh", "what the state before says"]]],
    ["Add", [["a", "a", "Wₓx + Wₕh + b"]]],
    ["Squash", [["h", "h", "tanh(a): the new state"]]],
  ],
  lstm: [
    ["Forget", [["f", "f", "how much of the cell is kept"], ["kept", "f·c", "what is kept of it"]]],
    ["Input", [["i", "i", "how much is written"], ["g", "g", "the candidate"], ["written", "i·g", "what is written"]]],
    ["Update", [["c", "c", "f·c + i·g: the new cell"]]],
    ["Output", [["o", "o", "how much is shown"], ["h", "h", "o·tanh(c): the new state"]]],
  ],
  gru: [
    ["Reset", [["r", "r", "how much of the past the candidate sees"]]],
    ["Candidate", [["n", "n", "tanh(Wₓx + r·Wₕh): the candidate"]]],
    ["Update", [["z", "z", "how much of the state is kept"], ["kept", "z·h", "what is kept of it"],
      ["written", "(1−z)·n", "what is written"]]],
    ["Mix", [["h", "h", "z·h + (1−z)·n: the new state"]]],
  ],
};

// The GRU as the sources print it.
const SOURCES = [
  ["Reset", [["r", "r", "how much of the past the candidate sees"]]],
  ["Candidate", [["n", "n", "tanh(Wₓx + Wₕ(r·h)): the candidate"]]],
  ["Update", [["z", "z", "how much of the state is replaced"], ["kept", "(1−z)·h", "what is kept of it"],
    ["written", "z·n", "what is written"]]],
  ["Mix", [["h", "h", "(1−z)·h + z·n: the new state"]]],
];

// The way back, in four operations too: what arrives at a word, and what becomes of it.
const TO_THE_WORD = ["To the word", [["d_x", "∂L/∂x", "what this word is taught: Wₓᵀ ∂L/∂a"]]];
const BACKWARD = {
  rnn: [
    ["Arrives", [["d_h", "∂L/∂h", "what the words after it send back"]]],
    ["Through tanh", [["d_a", "∂L/∂a", "times 1 − h²"]]],
    TO_THE_WORD, ["To the word before", [["d_before", "∂L/∂h", "of the state before: Wₕᵀ ∂L/∂a"]]],
  ],
  lstm: [
    ["Arrives", [["d_h", "∂L/∂h", "what the words after it send back"], ["d_later", "∂L/∂c", "and along the cell"], ["d_c", "∂L/∂c", "all that reaches the cell"]]],
    ["To the gates", [["d_i", "∂L/∂i", "input, before its σ"], ["d_f", "∂L/∂f", "forget"], ["d_g", "∂L/∂g", "candidate"], ["d_o", "∂L/∂o", "output"]]],
    TO_THE_WORD, ["To the word before", [["d_before", "∂L/∂h", "of the state before: Wₕᵀ ∂L/∂a"], ["d_kept", "∂L/∂c", "of the cell before: times f"]]],
  ],
  gru: [
    ["Arrives", [["d_h", "∂L/∂h", "what the words after it send back"]]],
    ["To the gates", [["d_z", "∂L/∂z", "update, before its σ"], ["d_n", "∂L/∂n", "candidate"], ["d_r", "∂L/∂r", "reset"]]],
    TO_THE_WORD, ["To the word before", [["d_before", "∂L/∂h", "of the state before"]]],
  ],
};

const EQUATIONS = {
  rnn: "h = tanh(Wₓx + Wₕh + b)",
  lstm: "c = f·c + i·g,   h = o·tanh(c)",
  gru: "h = z·h + (1 − z)·n",
};

export async function start(view) {
  let data = await ask("/api/cells");
  const now = {
    sentence: data.sentence, source: "drawn", word: 0, operation: 4, slow: false, back: false, length: 0,
    scale: { recurrent: 1, input: 1, forget: 1, sources: false }, hand: null, edited: "lstm", matrix: "W_h",
  };
  let found = {};

  // Computing

  const words = () => {
    const said = now.sentence.trim().split(/\s+/).filter(Boolean).slice(0, LONGEST);
    const own = said.length ? said : ["…"];
    const length = now.length || own.length;
    return Array.from({ length }, (_, n) => own[n % own.length]);
  };
  const rowOf = (word) => {
    const places = data.places ??= new Map(data.trained.words.map((each, n) => [each, n]));
    return places.get(word) ?? places.get(word.toLowerCase()) ?? 0;
  };
  const inputsOf = (kind, list) => list.map((word) =>
    now.source === "trained" ? data.trained[kind].embedding[rowOf(word)] : wordInput(word, data.units));
  const printed = () => now.scale.sources && now.source !== "trained"; // it was trained as PyTorch's
  const weightsOf = (kind) => {
    const from = now.source === "trained" ? data.trained[kind].weights : now.source === "hand" ? now.hand[kind] : data.drawn[kind];
    return adjusted(kind, from, { ...now.scale, sources: printed() });
  };

  function compute() {
    const list = words();
    now.word = Math.min(now.word, list.length - 1);
    found = { words: list };
    for (const kind of KINDS) {
      const weights = weightsOf(kind), inputs = inputsOf(kind, list), steps = run(kind, weights, inputs);
      const gradients = backward(kind, weights, steps);
      found[kind] = { weights, inputs, steps, gradients, norms: gradientByLag(gradients), taught: gradientByWord(gradients) };
    }
  }

  // Controls

  const sentence = h("input", { id: "cells-sentence", type: "text", value: now.sentence, maxlength: 400, autocomplete: "off",
    oninput: () => { now.sentence = sentence.value; now.length = 0; now.word = 0; refresh(); length.set(found.words.length); } });
  const sources = () => [["drawn", "drawn at random"], ...(data.trained ? [["trained", "trained as language models"]] : []),
    ...(now.hand ? [["hand", "set by hand"]] : [])];
  const source = select("cells-source", sources(), (value) => {
    now.source = value;
    now.scale.forget = value === "trained" ? 0 : 1;
    convention.disabled = value === "trained";
    forget.set(now.scale.forget);
    refresh();
  }, now.source);
  const convention = select("cells-gru", [["torch", "reset after the product, z keeps (PyTorch)"], ["sources", "reset before it, z replaces (the sources)"]],
    (value) => { now.scale.sources = value === "sources"; refresh(); }, "torch");
  const change = (name) => (value) => { now.scale[name] = value; refresh(); };
  const times = (value) => `× ${readable(value)}`;
  const plus = (value) => `${value < 0 ? "−" : "+"}${readable(Math.abs(value), 1)}`;
  const recurrent = slider({ id: "cells-recurrent", label: "Recurrent weights", min: 0, max: 4, step: 0.05, value: 1, show: times, change: change("recurrent") });
  const input = slider({ id: "cells-input", label: "Input weights", min: 0, max: 4, step: 0.05, value: 1, show: times, change: change("input") });
  const forget = slider({ id: "cells-forget", label: "Forget bias", min: -6, max: 6, step: 0.1, value: 1, show: plus, change: change("forget") });
  const length = slider({ id: "cells-length", label: "Sequence length", min: 1, max: LONGEST, step: 1, value: words().length,
    show: (value) => `${value}`, change: (value) => { now.length = value; refresh(); } });
  const slow = h("input", { id: "cells-slow", type: "checkbox", onchange: () => { now.slow = slow.checked; now.operation = now.slow ? 1 : 4; draw(); } });
  const way = h("input", { id: "cells-way", type: "checkbox", onchange: () => { now.back = way.checked; toFirst(); } });
  const toFirst = () => { now.word = now.back ? found.words.length - 1 : 0; now.operation = now.slow ? 1 : 4; draw(); };
  const buttons = stepper("cells", view, { move, first: toFirst },
    h("label", { class: "check", for: "cells-slow" }, slow, " one operation at a time"), h("label", { class: "check", for: "cells-way" }, way, " backward: the gradient"));

  function move(by) {
    const on = now.back ? -1 : 1;
    if (!now.slow) now.word += on * by;
    else {
      now.operation += by;
      if (now.operation > 4) { now.operation = 1; now.word += on; }
      if (now.operation < 1) { now.operation = 4; now.word -= on; }
    }
    const count = found.words.length;
    if (now.word >= count || now.word < 0) { now.word = (now.word + count) % count; if (now.slow && by > 0) now.operation = 1; }
    draw();
  }

  // Drawing

  const chips = h("div", { class: "chips", role: "group", "aria-label": "Words of the sentence" });
  const cards = Object.fromEntries(KINDS.map((kind) => [kind, h("article", { class: "card cell", id: `cell-${kind}`, "aria-label": TITLES[kind] })]));
  const chart = h("div", { class: "chart-place" });
  const told = h("p", { class: "told" });
  const numbers = h("div", {});

  const isDone = (n) => (now.back ? n >= now.word : n <= now.word);

  function draw() {
    hide();
    chips.replaceChildren(...found.words.map((word, n) => h("button", {
      type: "button", class: `chip${n === now.word ? " here" : isDone(n) ? " past" : ""}`,
      "aria-current": n === now.word ? "step" : null, onclick: () => { buttons.pause(); now.word = n; draw(); },
    }, word)));
    for (const kind of KINDS) cards[kind].replaceChildren(...card(kind));
    if (!buttons.isPlaying()) say(`word ${now.word + 1}, ${found.words[now.word]}${now.slow ? `, operation ${now.operation}` : ""}${now.back ? `; the gradient that reaches it: ${KINDS.map((kind) => `${TITLES[kind]} ${readable(found[kind].taught[now.word], 4)}`).join(", ")}` : ""}`);
  }

  function card(kind) {
    const step = now.back ? found[kind].gradients[now.word] : found[kind].steps[now.word];
    const sized = now.back ? Object.keys(step) : ["c", "a", "from_x", "from_h", "kept"];
    const largest = (name) => Math.max(now.back ? 1e-30 : 1, ...(sized.includes(name) ? step[name].map(Math.abs) : []));
    const operations = now.back ? BACKWARD[kind] : kind === "gru" && printed() ? SOURCES : OPERATIONS[kind];
    const rows = operations.map(([title, quantities], n) => {
      const state = n + 1 < now.operation ? "done" : n + 1 === now.operation ? "now" : "ahead";
      return h("section", { class: `operation ${now.slow ? state : "done"}`, "data-operation": n + 1 },
        h("h4", {}, h("span", {}, n + 1), ` ${title}`),
        quantities.map(([name, sign, meaning]) => h("div", { class: "quantity" },
          h("div", { class: "sign" }, h("b", {}, sign), " ", h("small", {}, meaning)),
          strip(kind, name, sign, step[name], largest(name), now.slow && state === "ahead"))));
    });
    return [h("h3", {}, h("i", { style: `background:${COLOURS[kind]}` }), TITLES[kind], maths(kind === "gru" && printed() ? "h = (1 − z)·h + z·n" : EQUATIONS[kind])),
      unrolled(kind), ...rows];
  }

  function strip(kind, name, sign, values, largest, hidden) {
    if (hidden) return h("div", { class: "strip", role: "img", "data-name": name, "aria-label": `${sign}: not computed yet` }, values.map(() => h("span", {}, "·")));
    return h("div", { class: "strip", role: "group", "data-name": name, "aria-label": sign }, values.map((number, unit) => h("button", {
      type: "button", tabindex: unit ? "-1" : "0", style: shade(number, largest), "data-value": number, "data-from": `${kind} ${name} ${unit}`,
      "aria-label": `${sign}, number ${unit + 1}: ${readable(number, 3)}` }, now.back ? tiny(number) : fixed(number))));
  }
  const tiny = (number) => (number !== 0 && Math.abs(number) < 0.005 ? number.toExponential(0).replaceAll("-", "−") : fixed(number));

  // Where a number comes from: on hover, on focus, on a tap

  const box = h("div", { class: "made card", id: "cells-made", role: "tooltip", hidden: true });
  let pinned = null;
  function hide() {
    box.hidden = true;
    pinned = null;
  }
  function explain(button) {
    const [kind, name, unit] = button.dataset.from.split(" "), { weights, steps, gradients } = found[kind];
    const origin = made(kind, weights, steps[now.word], gradients[now.word], name, Number(unit));
    const sum = value({ ...origin, squash: "" }), number = Number(button.dataset.value);
    const list = (pairs) => h("div", { class: "products" }, pairs.map(([a, b]) => h("span", {}, `${readable(a)} × ${readable(b)} = `, h("b", {}, readable(a * b, 3)))));
    box.replaceChildren(h("h4", {}, `${TITLES[kind]}: ${button.getAttribute("aria-label")}`),
      ...origin.parts.map((part) => h("section", {}, h("small", {}, part.title),
        part.factors ? h("div", {}, `${part.factors.map((each) => readable(each, 3)).join(" × ")} = `, h("b", {}, readable(partSum(part), 4))) : [list(part.pairs),
          h("div", { class: "sum" }, part.times ? `the sum, times ${part.times[0]} ${readable(part.times[1], 3)}: ` : "the sum: ", h("b", {}, readable(partSum(part), 4)))])),
      origin.extras.length ? h("div", {}, origin.extras.map(([sign, each]) => h("span", { class: "extra" }, `+ ${sign} `, h("b", {}, readable(each, 4))))) : "",
      origin.squash || origin.parts.length + origin.extras.length > 1 ? h("div", { class: "sum" }, origin.squash ? `${origin.squash}(${readable(sum, 4)}) = ` : "together ", h("b", { "data-made": value(origin) }, readable(number, 4))) : "");
    box.hidden = false;
    const at = button.getBoundingClientRect(), base = view.getBoundingClientRect(), wide = box.offsetWidth;
    box.style.left = `${Math.max(0, Math.min(at.left - base.left, base.width - wide))}px`;
    box.style.top = `${at.bottom - base.top + 6}px`;
    return origin;
  }
  const numberOf = (event) => event.target.closest?.(".strip button");
  view.addEventListener("pointerover", (event) => { if (!pinned && numberOf(event)) explain(numberOf(event)); else if (!pinned && !box.contains(event.target)) hide(); });
  view.addEventListener("focusin", (event) => {
    if (!numberOf(event)) return;
    const { parts, extras, squash } = explain(numberOf(event));
    say([...parts.map((part) => `${part.title}: ${readable(partSum(part), 3)}`), ...extras.map(([sign, each]) => `${sign} ${readable(each, 3)}`), squash].filter(Boolean).join("; "));
  });
  view.addEventListener("focusout", (event) => { if (numberOf(event) && !pinned) hide(); });
  view.addEventListener("click", (event) => {
    const button = numberOf(event);
    if (!button) { if (!box.contains(event.target)) hide(); return; }
    if (pinned === button) hide(); else { explain(button); pinned = button; }
  });

  /** One cell that feeds itself, and the same as a chain of steps: those that have been read are filled, and the pulse
   *  stands at the one that is read now. */
  function unrolled(kind) {
    const steps = found[kind].steps, count = steps.length, wide = 400, first = 58, gap = (wide - first) / count, box = Math.min(22, gap * 0.7);
    const x = (n) => first + gap * (n + 0.5);
    const svg = s("svg", { class: "unrolled", viewBox: `0 -8 ${wide} 64`, role: "img",
      "aria-label": `${TITLES[kind]}, one cell that reads its own state, unrolled: ${now.back ? `the gradient of the last state has come back to step ${now.word + 1} of ${count}; of the words, it reaches ${found.words.map((word, n) => (isDone(n) ? `${word} with ${readable(found[kind].taught[n], 4)}` : "")).filter(Boolean).join(", ")}` : `step ${now.word + 1} of ${count} has read ${found.words.slice(0, now.word + 1).join(" ")}`}` },
      s("path", { class: "loop", d: "M30,15C50,-14 -10,-14 10,15" }), s("path", { class: "loop", d: "M6.5,10.5L10,15L11.6,9.6" }),
      s("line", { class: "loop", x1: 20, x2: 20, y1: 29, y2: 44 }),
      s("rect", { class: "compact", x: 9, y: 7, width: 22, height: 22, rx: 4, style: `stroke:${COLOURS[kind]}` }),
      s("text", { x: 20, y: 21.5, "text-anchor": "middle" }, "h"), s("text", { x: 20, y: 54, "text-anchor": "middle" }, "x"),
      s("text", { x: 47, y: 22, "text-anchor": "middle", class: "equals" }, "="));
    const { taught } = found[kind], most = Math.max(...taught);
    for (let n = 0; n < count; n++) {
      const read = isDone(n);
      const size = now.back ? 1 + Math.log10(Math.max(taught[n], 1e-30) / most) / 4 : Math.sqrt(steps[n].h.reduce((sum, value) => sum + value * value, 0) / steps[n].h.length);
      if (n) svg.append(s("line", { class: read ? "wire on" : "wire", x1: x(n - 1) + box / 2, x2: x(n) - box / 2, y1: 18, y2: 18 }));
      svg.append(s("line", { class: read ? "wire on" : "wire", x1: x(n), x2: x(n), y1: 18 + box / 2, y2: 44 }));
      svg.append(s("rect", { class: `state${n === now.word ? " here" : ""}`, x: x(n) - box / 2, y: 18 - box / 2, width: box, height: box, rx: 4,
        style: read ? `fill:color-mix(in srgb, ${COLOURS[kind]} ${Math.round(15 + 75 * Math.max(0, Math.min(1, size)))}%, var(--card))` : "" }));
      if (now.back && read && gap > 26) svg.append(s("text", { x: x(n), y: 2, "text-anchor": "middle", "data-taught": taught[n] }, tiny(taught[n])));
      if (gap > 26) svg.append(s("text", { x: x(n), y: 54, "text-anchor": "middle", class: n === now.word ? "here" : "" }, short(found.words[n], gap)));
    }
    const pulse = s("circle", { class: "pulse", r: Math.max(2.5, box / 5), cy: 18, cx: x(now.word), style: `fill:${COLOURS[kind]}` });
    if ((now.back ? now.word < count - 1 : now.word > 0) && now.operation !== 4 - 3 * !now.slow + 3) pulse.style.setProperty("--from", `${now.back ? gap : -gap}px`);
    svg.append(pulse);
    return svg;
  }
  const short = (word, gap) => { const room = Math.max(1, Math.floor(gap / 6.2)); return word.length > room ? `${word.slice(0, room - 1)}…` : word; };

  function drawGradients() {
    lineChart(chart, {
      title: "Gradient of the last state for each earlier one", xName: "lag", yName: "norm", log: true, height: 230,
      lines: KINDS.map((kind) => ({ name: TITLES[kind], colour: COLOURS[kind], values: found[kind].norms.map((norm, lag) => [lag, norm]) })),
    });
    const far = found.words.length - 1;
    const share = (kind) => readable(found[kind].norms[far] / found[kind].norms[0], 3);
    told.textContent = far ? `Over ${far} step${far > 1 ? "s" : ""} the gradient is multiplied by ${share("rnn")} in the RNN, ${share("lstm")} in the LSTM and ${share("gru")} in the GRU: a straight fall on this axis is exponential. Raise the forget bias, and the LSTM's line lies flat.` : "One word alone has no past.";
  }

  // Weights by hand

  const which = select("cells-edited", KINDS.map((kind) => [kind, TITLES[kind]]), (value) => { now.edited = value; drawNumbers(); }, now.edited);
  const matrix = select("cells-matrix", [["W_x", "Wₓ, for the word"], ["W_h", "Wₕ, for the state before"], ["b", "b, the bias"]], (value) => { now.matrix = value; drawNumbers(); }, now.matrix);

  function drawNumbers() {
    if (!editor.open) return;
    const shown = (now.source === "trained" ? data.trained[now.edited].weights : now.source === "hand" ? now.hand[now.edited] : data.drawn[now.edited])[now.matrix];
    const names = { rnn: ["h"], lstm: ["i", "f", "g", "o"], gru: ["r", "z", "n"] }[now.edited];
    const rows = shown.map((row) => (Array.isArray(row) ? row : [row]));
    numbers.replaceChildren(h("table", { class: "weights" }, h("tbody", {}, rows.map((row, n) => {
      const name = `${names[Math.floor(n / data.units)]}${(n % data.units) + 1}`;
      return h("tr", {}, h("th", { scope: "row" }, name), row.map((value, column) => h("td", {}, h("input", {
        type: "number", step: "0.1", value: Number(value.toFixed(3)), "aria-label": `${now.matrix} ${name}, ${column + 1}`, "data-at": `${n},${column}`,
        onchange: (event) => edit(n, column, Number(event.target.value)),
      }))));
    }))));
  }
  function edit(row, column, value) {
    if (!Number.isFinite(value)) return;
    if (now.source !== "hand") {
      const from = (kind) => (now.source === "trained" ? data.trained[kind].weights : data.drawn[kind]);
      now.hand = Object.fromEntries(KINDS.map((kind) => [kind, structuredClone(from(kind))]));
      now.source = "hand";
      source.fill(sources(), "hand");
    }
    const kept = now.hand[now.edited][now.matrix];
    if (Array.isArray(kept[row])) kept[row][column] = value; else kept[row] = value;
    refresh();
  }
  const editor = h("details", { class: "editor", ontoggle: drawNumbers }, h("summary", {}, "Set the weights by hand"),
    h("div", { class: "controls" }, field("Cell", which), field("Matrix", matrix)),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Weights" }, numbers));

  function refresh() {
    compute();
    draw();
    drawGradients();
    drawNumbers();
  }

  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Recurrent cells"),
      h("p", {}, "Three cells read one sentence, word by word. Each carries eight numbers from step to step; what differs is how the next eight are made of the last.")),
    h("div", { class: "controls" }, field("Your sentence", sentence, { class: "wide" }), field("Weights", source), field("GRU", convention)),
    h("div", { class: "controls" }, recurrent, input, forget, length),
    buttons, chips, h("div", { class: "cells" }, KINDS.map((kind) => cards[kind])),
    h("section", { class: "card" }, h("h3", {}, "Gradient by lag"), chart, told), editor, box);

  view.addEventListener("keydown", (event) => {
    if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) || event.altKey || event.ctrlKey || event.metaKey) return;
    const number = numberOf(event), to = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key];
    if (event.key === "Escape") hide();
    if (number && to) {
      number[to]?.focus();
      event.preventDefault();
      return;
    }
    if (event.key === "ArrowRight") { buttons.pause(); move(1); } else if (event.key === "ArrowLeft") { buttons.pause(); move(-1); } else return;
    event.preventDefault();
  });
  compute();
  draw();
  drawGradients();
  new ResizeObserver(drawGradients).observe(chart);

  // The trained cells come later: they are learnt behind the page.
  if (!isSaved && !data.trained) {
    const timer = setInterval(async () => {
      if (!view.isConnected) return;
      const fresh = await ask("/api/cells").catch(() => null);
      if (fresh?.trained) { clearInterval(timer); data = fresh; source.fill(sources(), now.source); }
    }, 4000);
  }
  // What is shown, for whoever wants to hold it to other numbers.
  globalThis.labCells = { found: () => found, now, made, value };
}
