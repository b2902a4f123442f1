// Small helpers that every panel uses: elements, requests, numbers.

const SVG = "http://www.w3.org/2000/svg";

/** An element: h("button", {class: "x", onclick: f}, "text", child, …). Text is always text, never markup. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") element.style.cssText = value; // through the object: a strict policy allows that
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Drawn, not written: some fonts lack these characters.
const ICONS = {
  first: "M3 3h2v10H3zM13 3v10L6 8z",
  back: "M12 3v10L4 8z",
  next: "M3 3v10l7-5zM11 3h2v10h-2z",
  play: "M4 2v12l9-6z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
};

/** A small picture for a button, in the colour of its text. */
export function icon(name) {
  return s("svg", { class: "icon", viewBox: "0 0 16 16", width: "1em", height: "1em", "aria-hidden": "true", focusable: "false" },
    s("path", { d: ICONS[name], fill: "currentColor" }));
}

// A saved panel holds the answers that it needs; a panel of the server remembers them, so that it can be saved.
const saved = document.getElementById("answers");
const known = new Map(saved ? Object.entries(JSON.parse(saved.textContent)) : []);
const REMEMBERED = 400;

/** Whether this page is a saved panel, which has no server. */
export const isSaved = saved !== null;

/** What the server has told this panel, for saving it. */
export const answersOf = (panel) => Object.fromEntries(
  [...known].filter(([, { panel: asker }]) => asker === panel).map(([question, { told }]) => [question, told]));

/** Ask the server. What goes wrong is an Error whose message is the server's sentence. */
export async function ask(path, body) {
  const question = body === undefined ? path : `${path} ${JSON.stringify(body)}`;
  if (isSaved) {
    if (!known.has(question)) throw new Error("this file holds what was shown when it was saved: foreword lab answers the rest");
    return known.get(question);
  }
  const panel = location.hash.slice(1);
  const how = body === undefined ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  };
  let answer;
  try {
    pending += 1;
    answer = await fetch(path, how);
  } catch {
    throw new Error("the server does not answer: is foreword lab still running?");
  } finally {
    pending -= 1;
  }
  const told = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(told.error ?? `the server answered ${answer.status}`);
  known.delete(question);
  known.set(question, { panel, told });
  if (known.size > REMEMBERED) known.delete(known.keys().next().value);
  return told;
}

let pending = 0;

/** Wait until every question is answered, and what that leads to is drawn; not longer than a few seconds. */
export async function settled(longest = 4000) {
  const until = performance.now() + longest;
  for (let quiet = 0; quiet < 3 && performance.now() < until; quiet = pending ? 0 : quiet + 1) {
    await new Promise((go) => setTimeout(go, 25));
  }
}

/** Call once things have been quiet for a moment. */
export function later(work, pause = 150) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), pause);
  };
}

/** For answers that may come out of turn: only the last question's counts. */
export function latest() {
  let number = 0;
  return async (question, use, failed) => {
    const mine = ++number;
    try {
      const found = await question();
      if (mine === number) use(found);
    } catch (error) {
      if (mine === number) failed(error);
    }
  };
}

/** A number for people: 0.12, −3.40, 1.2e−7. */
export function readable(number, digits = 2) {
  if (number === null || number === undefined) return "∞";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : number < 0 ? "−∞" : "–";
  const size = Math.abs(number);
  const text = size !== 0 && (size < 0.5 * 10 ** -digits || size >= 1e5)
    ? number.toExponential(1) : number.toFixed(digits);
  return text.replaceAll("-", "−");
}

/** A fixed place for each number: strips of boxes must not jump. */
export function fixed(number) {
  const size = Math.abs(number);
  if (!Number.isFinite(number)) return "∞";
  const text = size >= 99.5 ? number.toExponential(0) : size >= 9.95 ? number.toFixed(0) : size >= 0.995
    ? number.toFixed(1) : number.toFixed(2).replace("0.", ".");
  return text.replace("-", "−").replace(/^−\.00$/, ".00");
}

/** Teal for positive, orange for negative, the stronger the larger; at most so strong that ink can be read on it. */
export function shade(value, largest = 1) {
  const share = Math.min(1, Math.abs(value) / largest);
  return `--share:${(share * 62).toFixed(1)}%;--hue:var(--${value < 0 ? "minus" : "plus"})`;
}

/** Tell readers who listen. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

const formulas = JSON.parse(document.getElementById("formulas").textContent);

/** A formula, typeset ahead as MathML (formulas.py). */
export function maths(text) {
  const place = h("span", { class: "maths" });
  if (formulas[text]) place.innerHTML = formulas[text]; else place.textContent = text;
  return place;
}

/** First, back, play, next. move(by) takes a step; first() goes to the start; it plays until `over` says so. */
export function stepper(id, view, { first, move, over = () => false, tick = 850 }, ...more) {
  let timer = null;
  const play = h("button", { type: "button", class: "main", id: `${id}-play`, onclick: () => (timer ? element.pause() : go()) });
  const button = (name, label, work) => h("button", { type: "button", id: `${id}-${name}`, "aria-label": label,
    onclick: () => { element.pause(); work(); } }, icon(name));
  const show = () => play.replaceChildren(icon(timer ? "pause" : "play"), timer ? " Pause" : " Play");
  const element = h("div", { class: "buttons", role: "group", "aria-label": "Steps" },
    first && button("first", "To the start", first), button("back", "Back", () => move(-1)), play, button("next", "Next", () => move(1)), ...more);
  const go = () => {
    if (over()) first();
    timer = setInterval(() => { if (!view.isConnected || over()) element.pause(); else move(1); }, tick);
    show();
  };
  element.pause = () => { clearInterval(timer); timer = null; show(); };
  element.isPlaying = () => timer !== null;
  show();
  return element;
}

/** A labelled slider whose value is shown; calls back while it moves. */
export function slider({ id, label, min, max, step, value, show = readable, change, hint }) {
  const shown = h("output", { for: id }, show(value));
  const input = h("input", {
    id, type: "range", min, max, step, value, title: hint,
    oninput: () => { shown.textContent = show(Number(input.value)); change(Number(input.value)); },
  });
  const field = h("div", { class: "field slider" }, h("label", { for: id }, label, " ", shown), input);
  field.set = (number) => { input.value = number; shown.textContent = show(number); };
  field.limits = (low, high) => { input.min = low; input.max = high; };
  return field;
}

export function field(label, control, more = {}) {
  return h("div", { class: `field ${more.class ?? ""}` }, h("label", { for: control.id }, label), control);
}

export function select(id, options, change, value) {
  const control = h("select", { id, onchange: () => change(control.value) });
  control.fill = (listed, chosen = control.value) => {
    control.replaceChildren(...listed.map(([name, title]) => h("option", { value: name }, title)));
    if (listed.some(([name]) => name === chosen)) control.value = chosen;
  };
  control.fill(options, value);
  return control;
}

export function trouble(error) {
  return h("p", { class: "trouble", role: "alert" }, error.message ?? String(error));
}

/** A picture that the package drew: markup that Python has escaped. */
export function picture(told) {
  const figure = h("figure", { class: "drawn" });
  figure.innerHTML = told.markup;
  figure.append(h("figcaption", {}, told.caption));
  return figure;
}

/** Ask again and again while the panel is shown. */
export function every(milliseconds, panel, work) {
  const timer = setInterval(() => (panel.isConnected ? work() : clearInterval(timer)), milliseconds);
  return timer;
}
