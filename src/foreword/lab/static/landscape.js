// The loss of a network of two weights, all of it, and gradient descent on it: h_t = σ(w h_(t−1) + b), read T times.
// R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural networks" (2013), figure 6.

import { sigmoid } from "lab/cells";
import { lineChart } from "lab/chart";
import { h, maths, readable, s, say, select, slider, stepper, field } from "lab/dom";

const START = 0.5, GOAL = 0.7;
const W = [-2, 10], B = [-7, 2], COLUMNS = 64, ROWS = 44, WIDE = 640, HIGH = 440;
const MOST = 400, NO_CLIP = 2;

// [name, what is seen, the point, rate and clip as powers of ten, T]
const PLACES = [
  ["cliff", "a cliff: one step throws it off the map", { w: 4.6, b: -2.36 }, -0.5, NO_CLIP, 30],
  ["clipped", "the same cliff, gradients clipped", { w: 4.6, b: -2.36 }, -0.5, -0.5, 30],
  ["vanishing", "a plain: what goes back vanishes", { w: 0.5, b: -4 }, -1, NO_CLIP, 50],
  ["short", "the same plain, five steps back, a higher rate", { w: 0.5, b: -4 }, 0.5, NO_CLIP, 5],
];

/** The loss, its gradient, and |∂L/∂h_(T−lag)| for lag 0, 1, …: what reaches each earlier step. */
export function descent({ w, b }, steps) {
  const states = [START];
  for (let t = 0; t < steps; t++) states.push(sigmoid(w * states[t] + b));
  const loss = (states[steps] - GOAL) ** 2;
  let d = 2 * (states[steps] - GOAL), d_w = 0, d_b = 0;
  const norms = [Math.abs(d)];
  for (let t = steps; t > 0; t--) {
    const d_a = d * states[t] * (1 - states[t]);
    d_w += d_a * states[t - 1];
    d_b += d_a;
    d = d_a * w;
    norms.push(Math.abs(d));
  }
  return { loss, gradient: { w: d_w, b: d_b }, norm: Math.hypot(d_w, d_b), norms };
}

/** One step of gradient descent; a gradient longer than `clip` is shortened to it. */
export function stepped(point, { gradient, norm }, rate, clip) {
  const share = norm > clip ? clip / norm : 1;
  return { w: point.w - rate * share * gradient.w, b: point.b - rate * share * gradient.b };
}

export async function start(view) {
  const now = { point: PLACES[0][2], path: [], rate: -1, clip: NO_CLIP, steps: 50 };
  const clipOf = () => (now.clip >= NO_CLIP ? Infinity : 10 ** now.clip);

  const x = (w) => ((w - W[0]) / (W[1] - W[0])) * WIDE, y = (b) => HIGH - ((b - B[0]) / (B[1] - B[0])) * HIGH;
  const ground = s("g"), trail = s("path", { class: "trail" }), dots = s("g"), here = s("circle", { class: "ball", r: 8 });
  const map = s("svg", { class: "landscape", viewBox: `-34 -6 ${WIDE + 44} ${HIGH + 44}`, role: "img", "aria-label": "The loss for every w and b",
    onclick: (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(ground.getScreenCTM().inverse());
      place({ w: W[0] + (at.x / WIDE) * (W[1] - W[0]), b: B[0] + ((HIGH - at.y) / HIGH) * (B[1] - B[0]) });
    } }, ground, trail, dots, here,
  [-2, 0, 2, 4, 6, 8, 10].map((w) => s("text", { class: "tick", x: x(w), y: HIGH + 18, "text-anchor": "middle" }, readable(w, 0))),
  [-6, -4, -2, 0, 2].map((b) => s("text", { class: "tick", x: -8, y: y(b) + 4, "text-anchor": "end" }, readable(b, 0))),
  s("text", { class: "tick name", x: WIDE, y: HIGH + 34, "text-anchor": "end" }, "w, how much of the state is read again"),
  s("text", { class: "tick name", x: 6, y: 14 }, "b"));

  function drawGround() {
    const cell = [WIDE / COLUMNS, HIGH / ROWS], squares = [];
    for (let row = 0; row < ROWS; row++) {
      for (let column = 0; column < COLUMNS; column++) {
        const w = W[0] + ((column + 0.5) / COLUMNS) * (W[1] - W[0]), b = B[1] - ((row + 0.5) / ROWS) * (B[1] - B[0]);
        let state = START;
        for (let t = 0; t < now.steps; t++) state = sigmoid(w * state + b);
        const depth = Math.min(1, Math.max(0, -Math.log10((state - GOAL) ** 2 + 1e-9) / 4));
        squares.push(s("rect", { x: column * cell[0], y: row * cell[1], width: cell[0], height: cell[1], "fill-opacity": (0.04 + 0.9 * depth).toFixed(2) }));
      }
    }
    ground.replaceChildren(...squares);
  }

  const set = (name) => (value) => { now[name] = value; draw(); };
  const power = (value) => readable(10 ** value, value < -1 ? 3 : 2);
  const w = slider({ id: "landscape-w", label: "w", min: W[0], max: W[1], step: 0.02, value: now.point.w, change: (value) => place({ ...now.point, w: value }) });
  const b = slider({ id: "landscape-b", label: "b", min: B[0], max: B[1], step: 0.02, value: now.point.b, change: (value) => place({ ...now.point, b: value }) });
  const rate = slider({ id: "landscape-rate", label: "Rate", min: -3, max: 2, step: 0.1, value: now.rate, show: power, change: set("rate") });
  const clip = slider({ id: "landscape-clip", label: "Clip gradients at", min: -2, max: NO_CLIP, step: 0.1, value: now.clip, show: (value) => (value >= NO_CLIP ? "never" : power(value)), change: set("clip") });
  const steps = slider({ id: "landscape-steps", label: "Steps back, T", min: 1, max: 80, step: 1, value: now.steps, show: (value) => `${value}`, change: (value) => { now.steps = value; drawGround(); place(now.point); } });
  const preset = select("landscape-place", PLACES.map(([name, title]) => [name, title]), begin, "cliff");
  const buttons = stepper("landscape", view, { first: () => place(now.path[0] ?? now.point), move, over: () => now.path.length > MOST, tick: 220 });
  const told = h("p", { class: "told", id: "landscape-told" });
  const falls = h("div", { class: "chart-place" }), lags = h("div", { class: "chart-place" }), verdict = h("p", { class: "told" });

  function begin(name) {
    const [, , point, a_rate, a_clip, many] = PLACES.find(([each]) => each === name);
    Object.assign(now, { rate: a_rate, clip: a_clip, steps: many });
    rate.set(a_rate);
    clip.set(a_clip);
    steps.set(many);
    drawGround();
    place(point);
  }
  function place(point) {
    Object.assign(now, { point, path: [] });
    w.set(point.w);
    b.set(point.b);
    draw();
  }
  function move(by) {
    if (by < 0) now.point = now.path.pop() ?? now.point;
    else {
      now.path.push(now.point);
      now.point = stepped(now.point, descent(now.point, now.steps), 10 ** now.rate, clipOf());
    }
    draw();
  }

  function draw() {
    const all = [...now.path, now.point], results = all.map((point) => descent(point, now.steps)), last = results.at(-1);
    const inside = (value) => Math.max(-1e4, Math.min(1e4, value));
    trail.setAttribute("d", all.map((point, n) => `${n ? "L" : "M"}${inside(x(point.w)).toFixed(1)},${inside(y(point.b)).toFixed(1)}`).join(""));
    dots.replaceChildren(...all.slice(0, -1).map((point) => s("circle", { class: "dot", r: 3, cx: inside(x(point.w)), cy: inside(y(point.b)) })));
    here.setAttribute("cx", inside(x(now.point.w)));
    here.setAttribute("cy", inside(y(now.point.b)));
    const out = now.point.w < W[0] || now.point.w > W[1] || now.point.b < B[0] || now.point.b > B[1];
    const clipped = last.norm > clipOf();
    told.textContent = `After ${now.path.length} steps: w = ${readable(now.point.w)}, b = ${readable(now.point.b)}${out ? ", off the map" : ""}; loss ${readable(last.loss, 4)}; the gradient has a norm of ${readable(last.norm, 3)}${clipped ? `, clipped to ${readable(clipOf(), 2)}` : ""}.`;
    map.setAttribute("aria-label", `The loss for every w and b, strongly coloured where it is small. ${told.textContent}`);
    lineChart(falls, { title: "Loss and length of the gradient, step by step", xName: "step", yName: "value", log: true, height: 220, lines: [
      { name: "loss", colour: "var(--c2)", values: results.map(({ loss }, n) => [n, loss]) }, { name: "gradient", colour: "var(--c1)", values: results.map(({ norm }, n) => [n, norm]) }] });
    lineChart(lags, { title: "Gradient that reaches each earlier step", xName: "steps back", yName: "norm", log: true, height: 220, floor: 1e-30,
      lines: [{ name: "|∂L/∂h|", colour: "var(--c3)", values: last.norms.map((norm, lag) => [lag, norm]) }] });
    const factor = (last.norms.at(-1) / last.norms[0]) ** (1 / now.steps);
    verdict.textContent = `Each step back multiplies the gradient by ${readable(factor, 3)} on average: over ${now.steps} steps it ${factor < 0.97 ? "vanishes" : factor > 1.03 ? "explodes" : "stays about the same"}, to ${readable(last.norms.at(-1) / last.norms[0], 3)} of what it was.`;
    if (!buttons.isPlaying()) say(told.textContent);
  }

  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Loss landscape"), h("p", {}, "A network of one unit and two weights reads its own state T times; after that the state should be 0.7. The map has its loss everywhere: walls where gradients explode, plains where they vanish. Click anywhere, and let it learn.")),
    h("div", { class: "controls" }, maths("h_t = σ(w h_(t−1) + b),   L = (h_T − 0.7)²")),
    h("div", { class: "controls" }, field("Begin with", preset, { class: "wide" }), rate, clip, steps), h("div", { class: "controls" }, w, b), buttons,
    h("div", { class: "grid two" }, h("section", { class: "card" }, h("h3", {}, "Loss: the stronger the colour, the smaller"), map, told),
      h("section", { class: "card" }, h("h3", {}, "Learning"), falls, h("h3", { class: "second" }, "Back through time"), lags, verdict)));
  begin("cliff");
  new ResizeObserver(draw).observe(falls);
  globalThis.labLandscape = { now, descent, stepped };
}
