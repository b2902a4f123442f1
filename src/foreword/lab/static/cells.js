// Recurrent cells, a port of nn/cells.py for one text: the same equations, the same shapes, the same order of gates.
// Weights are arrays of rows: W_x (gates · H, I), W_h (gates · H, H), b (gates · H); a GRU has b_h beside it.
// A test in a browser holds every number to Python's within 1e-6.

export const KINDS = ["rnn", "lstm", "gru"];

export const sigmoid = (x) => {
  const small = Math.exp(-Math.abs(x));
  return (x >= 0 ? 1 : small) / (1 + small);
};

const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, weight, n) => sum + weight * vector[n], 0));
const back = (matrix, vector) =>
  matrix[0].map((_, column) => matrix.reduce((sum, row, n) => sum + row[column] * vector[n], 0));
const add = (...vectors) => vectors[0].map((_, n) => vectors.reduce((sum, vector) => sum + vector[n], 0));
const mul = (...vectors) => vectors[0].map((_, n) => vectors.reduce((product, vector) => product * vector[n], 1));
const zeros = (size) => new Array(size).fill(0);
const tanhs = (vector) => vector.map(Math.tanh);
const sigmoids = (vector) => vector.map(sigmoid);

/** h = tanh(W_x x + W_h h + b) */
const rnn = {
  start: (size) => ({ h: zeros(size) }),
  step(w, x, { h }) {
    const from_x = times(w.W_x, x), from_h = times(w.W_h, h);
    const a = add(from_x, from_h, w.b);
    return { x, before: { h }, from_x, from_h, a, h: tanhs(a) };
  },
  back(w, d, kept) {
    const d_a = d.h.map((value, n) => value * (1 - kept.h[n] ** 2));
    return { h: back(w.W_h, d_a), d_a };
  },
};

/** i, f, o = σ(…), g = tanh(…), c = f·c + i·g, h = o·tanh(c); rows in the order i, f, g, o. */
const lstm = {
  start: (size) => ({ h: zeros(size), c: zeros(size) }),
  step(w, x, { h, c }) {
    const size = h.length, a = add(times(w.W_x, x), times(w.W_h, h), w.b);
    const part = (n) => a.slice(n * size, (n + 1) * size);
    const i = sigmoids(part(0)), f = sigmoids(part(1)), g = tanhs(part(2)), o = sigmoids(part(3));
    const kept_c = mul(f, c), written = mul(i, g), now = add(kept_c, written), squashed = tanhs(now);
    return { x, before: { h, c }, i, f, g, o, kept: kept_c, written, c: now, squashed, h: mul(o, squashed) };
  },
  back(w, d, { before, i, f, g, o, squashed }) {
    const d_c = d.c.map((value, n) => value + d.h[n] * o[n] * (1 - squashed[n] ** 2));
    const d_a = [
      ...d_c.map((value, n) => value * g[n] * i[n] * (1 - i[n])),
      ...d_c.map((value, n) => value * before.c[n] * f[n] * (1 - f[n])),
      ...d_c.map((value, n) => value * i[n] * (1 - g[n] ** 2)),
      ...d.h.map((value, n) => value * squashed[n] * o[n] * (1 - o[n])),
    ];
    return { h: back(w.W_h, d_a), c: mul(d_c, f), d_c, d_a };
  },
};

/** r, z = σ(…); rows in the order r, z, n. Two conventions:
 *  PyTorch's:                n = tanh(W_x x + r·(W_h h + b_h) + b),   h = (1 − z)·n + z·h
 *  the sources', w.sources:  n = tanh(W_x x + W_h (r·h) + b_h + b),   h = z·n + (1 − z)·h */
const gru = {
  start: (size) => ({ h: zeros(size) }),
  step(w, x, { h }) {
    const size = h.length, from_x = add(times(w.W_x, x), w.b), from_h = add(times(w.W_h, h), w.b_h);
    const part = (vector, n) => vector.slice(n * size, (n + 1) * size);
    const r = sigmoids(add(part(from_x, 0), part(from_h, 0)));
    const z = sigmoids(add(part(from_x, 1), part(from_h, 1)));
    const inner = w.sources ? mul(r, h) : part(from_h, 2);
    const seen = w.sources ? add(times(w.W_h.slice(2 * size), inner), part(w.b_h, 2)) : mul(r, inner);
    const n = tanhs(add(part(from_x, 2), seen)), keep = w.sources ? z.map((each) => 1 - each) : z;
    const kept = mul(keep, h), written = keep.map((share, unit) => (1 - share) * n[unit]);
    return { x, before: { h }, r, z, keep, inner, n, kept, written, h: add(written, kept) };
  },
  back(w, d, { before, r, z, keep, inner, n }) {
    const size = r.length, candidate = w.W_h.slice(2 * size), sign = w.sources ? -1 : 1;
    const d_z = d.h.map((value, u) => sign * value * (before.h[u] - n[u]) * z[u] * (1 - z[u]));
    const d_n = d.h.map((value, u) => value * (1 - keep[u]) * (1 - n[u] ** 2));
    const d_inner = w.sources ? back(candidate, d_n) : mul(d_n, r);
    const d_reset = w.sources ? mul(d_inner, before.h) : mul(d_n, inner);
    const d_r = d_reset.map((value, u) => value * r[u] * (1 - r[u]));
    const through = w.sources ? mul(d_inner, r) : back(candidate, d_inner);
    return { h: add(mul(d.h, keep), through, back(w.W_h.slice(0, 2 * size), [...d_r, ...d_z])), d_a: [...d_r, ...d_z, ...d_n] };
  },
};

export const CELLS = { rnn, lstm, gru };

/** Read a sequence from a state of zeros: what each step computed, by name. */
export function run(kind, weights, inputs) {
  const cell = CELLS[kind];
  let state = cell.start(weights.W_h[0].length);
  return inputs.map((x) => {
    const step = cell.step(weights, x, state);
    state = kind === "lstm" ? { h: step.h, c: step.c } : { h: step.h };
    return step;
  });
}

const GATES = { rnn: ["a"], lstm: ["i", "f", "g", "o"], gru: ["r", "z", "n"] };

/** The gradient of u·h_T, u = (1, …, 1)/√H, on its way back: for each step what arrives (d_h, d_c), what it becomes
 *  before the squashing of each gate (d_i, …), what the word gets (d_x), and what goes on to the step before. */
export function backward(kind, weights, steps) {
  const cell = CELLS[kind], size = weights.W_h[0].length, found = [];
  let d = cell.start(size);
  d.h = d.h.map(() => 1 / Math.sqrt(size));
  for (const step of [...steps].reverse()) {
    const { h, c, d_c, d_a } = cell.back(weights, d, step), parts = {};
    GATES[kind].forEach((gate, n) => { parts[`d_${gate}`] = d_a.slice(n * size, (n + 1) * size); });
    found.unshift({ d_h: d.h, ...(c ? { d_later: d.c, d_c, d_kept: c } : {}), ...parts, d_a, d_x: back(weights.W_x, d_a), d_before: h });
    d = c ? { h, c } : { h };
  }
  return found;
}

const norm = (vector) => Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));

/** |∂(u·h_T)/∂s_(T−lag)| for lag 0, 1, …: what the last state owes to each earlier one. */
export const gradientByLag = (gradients) => [...gradients].reverse().map(({ d_h, d_later = [] }) => norm([...d_h, ...d_later]));

/** |∂(u·h_T)/∂x_t|: what each word is taught. */
export const gradientByWord = (gradients) => gradients.map(({ d_x }) => norm(d_x));

/** How a number came about: products of a row or a column, numbers added to them, and what the sum goes through.
 *  {parts: [{title, pairs: [[a, b], …], times}], extras: [[sign, value]], squash}: value() of it is the number. */
export function made(kind, w, step, gradient, name, unit) {
  const size = w.W_h[0].length, { x, before } = step, row = (gate) => GATES[kind].indexOf(gate) * size + unit;
  const along = (sign, matrix, at, of, vector, times) => ({ title: `row ${at + 1} of ${sign}, times ${of}`, pairs: matrix[at].map((weight, n) => [weight, vector[n]]), times });
  const down = (sign, matrix, vector, from = 0) => ({ title: `column ${unit + 1} of ${sign}, times ∂L/∂a`, pairs: matrix.map((each, n) => [each[unit], vector[from + n]]) });
  const factors = (title, ...values) => ({ title, factors: values });
  const gate = (which, squash) => {
    const at = row(which), of_x = along("Wₓ", w.W_x, at, "x", x), bias = [["b", w.b[at]]];
    if (kind !== "gru") return { parts: [of_x, along("Wₕ", w.W_h, at, "h", before.h)], extras: bias, squash };
    if (which !== "n") return { parts: [of_x, along("Wₕ", w.W_h, at, "h", before.h)], extras: [...bias, ["bₕ", w.b_h[at]]], squash };
    if (w.sources) return { parts: [of_x, along("Wₕ", w.W_h, at, "r·h", step.inner)], extras: [...bias, ["bₕ", w.b_h[at]]], squash };
    return { parts: [of_x, along("Wₕ", w.W_h, at, "h", before.h, ["r", step.r[unit]])], extras: [...bias, ["r·bₕ", step.r[unit] * w.b_h[at]]], squash };
  };
  const u = unit, g = gradient, of = (vector) => vector[u], slope = (value) => value * (1 - value), bent = (value) => 1 - value * value;
  const all = {
    from_x: () => ({ parts: [along("Wₓ", w.W_x, u, "x", x)] }),
    from_h: () => ({ parts: [along("Wₕ", w.W_h, u, "h", before.h)] }),
    a: () => ({ parts: [along("Wₓ", w.W_x, u, "x", x), along("Wₕ", w.W_h, u, "h", before.h)], extras: [["b", w.b[u]]] }),
    i: () => gate("i", "σ"), f: () => gate("f", "σ"), g: () => gate("g", "tanh"), o: () => gate("o", "σ"),
    r: () => gate("r", "σ"), z: () => gate("z", "σ"), n: () => gate("n", "tanh"),
    kept: () => ({ parts: [kind === "lstm" ? factors("f times the old c", of(step.f), of(before.c)) : factors(w.sources ? "1 − z times the old h" : "z times the old h", of(step.keep), of(before.h))] }),
    written: () => ({ parts: [kind === "lstm" ? factors("i times g", of(step.i), of(step.g)) : factors(w.sources ? "z times n" : "1 − z times n", 1 - of(step.keep), of(step.n))] }),
    c: () => ({ parts: [], extras: [["f·c", of(step.kept)], ["i·g", of(step.written)]] }),
    h: () => (kind === "lstm" ? { parts: [factors("o times tanh(c)", of(step.o), of(step.squashed))] }
      : kind === "rnn" ? { parts: [], extras: [["a", of(step.a)]], squash: "tanh" }
      : { parts: [], extras: [["what is kept", of(step.kept)], ["what is written", of(step.written)]] }),
    d_h: () => ({ parts: [], extras: [["sent back by the next word", of(g.d_h)]] }),
    d_later: () => ({ parts: [], extras: [["sent back by the next word", of(g.d_later)]] }),
    d_c: () => ({ parts: [factors("∂L/∂h times o times 1 − tanh²(c)", of(g.d_h), of(step.o), bent(of(step.squashed)))], extras: [["sent back along the cell", of(g.d_later)]] }),
    d_a: () => ({ parts: [factors("∂L/∂h times 1 − h²", of(g.d_h), bent(of(step.h)))] }),
    d_i: () => ({ parts: [factors("∂L/∂c times g times i(1 − i)", of(g.d_c), of(step.g), slope(of(step.i)))] }),
    d_f: () => ({ parts: [factors("∂L/∂c times the old c times f(1 − f)", of(g.d_c), of(before.c), slope(of(step.f)))] }),
    d_g: () => ({ parts: [factors("∂L/∂c times i times 1 − g²", of(g.d_c), of(step.i), bent(of(step.g)))] }),
    d_o: () => ({ parts: [factors("∂L/∂h times tanh(c) times o(1 − o)", of(g.d_h), of(step.squashed), slope(of(step.o)))] }),
    d_z: () => ({ parts: [factors(`∂L/∂h times ${w.sources ? "n − h" : "h − n"} times z(1 − z)`, of(g.d_h), (w.sources ? -1 : 1) * (of(before.h) - of(step.n)), slope(of(step.z)))] }),
    d_n: () => ({ parts: [factors("∂L/∂h times the share written times 1 − n²", of(g.d_h), 1 - of(step.keep), bent(of(step.n)))] }),
    d_r: () => (w.sources
      ? { parts: [{ ...down("Wₕ for n", w.W_h.slice(2 * size), g.d_n), times: ["h · r(1 − r)", of(before.h) * slope(of(step.r))] }] }
      : { parts: [factors("∂L/∂n times (Wₕh + bₕ) times r(1 − r)", of(g.d_n), of(step.inner), slope(of(step.r)))] }),
    d_x: () => ({ parts: [down("Wₓ", w.W_x, g.d_a)] }),
    d_kept: () => ({ parts: [factors("∂L/∂c times f", of(g.d_c), of(step.f))] }),
    d_before: () => (kind !== "gru" ? { parts: [down("Wₕ", w.W_h, g.d_a)] } : {
      parts: [down("Wₕ for r and z", w.W_h.slice(0, 2 * size), g.d_a),
        w.sources ? { ...down("Wₕ for n", w.W_h.slice(2 * size), g.d_n), times: ["r", of(step.r)] } : down("Wₕ for n", w.W_h.slice(2 * size), mul(g.d_n, step.r)),
        factors("∂L/∂h times the share kept", of(g.d_h), of(step.keep))] }),
  };
  return { extras: [], squash: "", ...all[name]() };
}

const product = (values) => values.reduce((left, right) => left * right, 1);

/** The sum of one part. */
export const partSum = ({ pairs, factors, times }) => (factors ? product(factors) : pairs.reduce((sum, [a, b]) => sum + a * b, 0) * (times ? times[1] : 1));

/** The number that all of it makes. */
export function value({ parts, extras, squash }) {
  const sum = [...parts.map(partSum), ...extras.map(([, each]) => each)].reduce((left, right) => left + right, 0);
  return squash === "tanh" ? Math.tanh(sum) : squash ? sigmoid(sum) : sum;
}

/** The weights with what the controls say: both matrices scaled, a number added to the LSTM's forget bias, the GRU's
 *  convention. */
export function adjusted(kind, weights, { recurrent = 1, input = 1, forget = 0, sources = false }) {
  const scaled = (matrix, by) => matrix.map((row) => row.map((weight) => weight * by));
  const size = weights.W_h[0].length;
  const b = weights.b.map((bias, n) => (kind === "lstm" && n >= size && n < 2 * size ? bias + forget : bias));
  return { ...weights, W_x: scaled(weights.W_x, input), W_h: scaled(weights.W_h, recurrent), b, ...(kind === "gru" ? { sources } : {}) };
}

/** Numbers from −1 to 1 that a word's letters decide: FNV-1a over its bytes, then xorshift32. */
export function wordInput(word, size) {
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(word)) state = Math.imul(state ^ byte, 0x01000193) >>> 0;
  state ||= 1;
  const numbers = [];
  for (let n = 0; n < size + 2; n++) {
    state = (state ^ (state << 13)) >>> 0;
    state = (state ^ (state >>> 17)) >>> 0;
    state = (state ^ (state << 5)) >>> 0;
    numbers.push(state / 2 ** 31 - 1);
  }
  return numbers.slice(2);
}
