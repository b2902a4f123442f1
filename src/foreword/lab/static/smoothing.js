// N-gram probabilities from a text of ids, order by order: a port of ngram/smoothing.py for one context at a time.
// Counts are found by reading the text, so that each number on the page can be counted by hand. A test in a browser
// holds every probability to NgramLM's.

export const METHODS = ["modified-kneser-ney", "witten-bell", "stupid-backoff"];
const BACKOFF = 0.4;

/** ids: the text, every document between <s>, whose id is `size`, and </s>. */
export class Counter {
  constructor(ids, size) {
    Object.assign(this, { ids, size, cache: new Map() });
  }

  /** What follows a context: {seen: word → how often, continued: word → after how many different words the n-gram stands}. */
  after(context) {
    const name = context.join(" ");
    if (!this.cache.has(name)) {
      if (this.cache.size > 200) this.cache.clear();
      this.cache.set(name, this.count(context));
    }
    return this.cache.get(name);
  }

  count(context) {
    const { ids, size } = this, length = context.length, seen = new Map(), continued = new Map(), pairs = new Set();
    for (let at = length; at < ids.length; at++) {
      let from = 1;
      while (from <= length && ids[at - from] === context[length - from]) from++;
      const word = ids[at];
      if (from <= length || word === size) continue;
      seen.set(word, (seen.get(word) ?? 0) + 1);
      const before = at - length - 1, pair = before < 0 ? -1 : ids[before] * (size + 1) + word;
      if (pairs.has(pair)) continue;
      pairs.add(pair);
      continued.set(word, (continued.get(word) ?? 0) + 1);
    }
    // nothing stands before <s>, so that what begins with it is counted as it was seen
    return { seen, continued: context[0] === size ? seen : continued };
  }
}

const sum = (values) => { let total = 0; for (const value of values) total += value; return total; };

/**
 * The levels of a prediction, the longest context first; the last is the uniform distribution.
 * discounts: of modified Kneser-Ney, for each order [0, D1, D2, D3+]. Each level says which counts it uses, by how much
 * each is lowered, the share of what is left, and the weight of everything below.
 */
export function levels(counter, method, context, discounts) {
  const found = [], order = discounts.length;
  for (let length = Math.min(order - 1, context.length); length >= 0; length--) {
    const words = context.slice(context.length - length), { seen, continued } = counter.after(words);
    const counts = method === "modified-kneser-ney" && length < order - 1 ? continued : seen;
    const total = sum(counts.values()), types = counts.size;
    const discount = method === "modified-kneser-ney" ? (count) => discounts[length][Math.min(count, 3)] : () => 0;
    const level = { order: length + 1, words, counts, seen, total, types, discount };
    if (!total) Object.assign(level, { share: () => 0, weight: 1 });
    else if (method === "modified-kneser-ney") {
      Object.assign(level, { share: (count) => (count - discount(count)) / total, weight: sum([...counts.values()].map(discount)) / total });
    } else if (method === "witten-bell") {
      Object.assign(level, { share: (count) => count / (total + types), weight: types / (total + types) });
    } else Object.assign(level, { share: (count) => count / total, weight: BACKOFF });
    found.push(level);
  }
  const { size } = counter;
  found.push({ order: 0, words: [], counts: null, total: size, types: size, discount: () => 0, share: () => 1 / size, weight: 0 });
  return found;
}

/** How the levels add up for one word: for each its count, its share, the weight that it has, and their product. */
export function steps(method, found, word) {
  let weight = 1, done = false;
  return found.map((level) => {
    const count = level.counts ? level.counts.get(word) ?? 0 : 1;
    const own = level.share(count), part = done ? 0 : weight * own;
    const step = { order: level.order, count, taken: count ? level.discount(count) : 0, own, weight: done ? 0 : weight, part };
    if (method === "stupid-backoff" && part > 0) done = true; // the longest n-gram that was seen is all that counts
    weight *= level.weight;
    return step;
  });
}

export const probability = (method, found, word) => sum(steps(method, found, word).map(({ part }) => part));

/** The likeliest words: any of them follows one of the contexts, or is as likely as all that do not. */
export function likeliest(method, found, many) {
  const words = new Set(found.flatMap(({ counts }) => (counts ? [...counts.keys()] : [])));
  return [...words].map((word) => [word, probability(method, found, word)]).sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, many);
}
