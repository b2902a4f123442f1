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
    return { h: back(w.W_h, d_a) };
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
    return { h: back(w.W_h, d_a), c: mul(d_c, f) };
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
    return { h: add(mul(d.h, keep), through, back(w.W_h.slice(0, 2 * size), [...d_r, ...d_z])) };
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

/** |∂(u·h_T)/∂s_(T−lag)| for lag 0, 1, …, u = (1, …, 1)/√H: what the last state owes to each earlier one. */
export function gradientByLag(kind, weights, steps) {
  const cell = CELLS[kind], size = weights.W_h[0].length;
  let d = cell.start(size);
  d.h = d.h.map(() => 1 / Math.sqrt(size));
  const norms = [];
  for (const step of [...steps].reverse()) {
    norms.push(Math.sqrt(Object.values(d).flat().reduce((sum, value) => sum + value * value, 0)));
    d = cell.back(weights, d, step);
  }
  return norms;
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
