// The longest match: how much of what is typed stands in the lab's text, how that grows and shrinks, and what followed.

import { ask, field, h, later, latest, readable, say, trouble } from "lab/dom";

export async function start(view) {
  const { prompt } = await ask("/api/examples");
  const now = { text: prompt, read: null, chosen: 0, told: null };
  const asking = latest();
  const text = h("textarea", { id: "matches-text", rows: 2, maxlength: 2000, spellcheck: "false", oninput: () => { now.text = text.value; now.read = null; fresh(); } });
  text.value = prompt;
  const strip = h("div", { class: "matches strip", id: "matches-strip", role: "group", "aria-label": "Words, and how many of the last ones match" });
  const bars = h("ol", { class: "bars", id: "matches-next", "aria-label": "What followed" });
  const places = h("ul", { class: "places", id: "matches-places", "aria-label": "Where it stands" });
  const heading = h("h3", {}, "Where it stands");
  const note = h("p", { class: "told", id: "matches-told" });

  const load = () => asking(() => ask("/api/matches", { text: now.text, read: now.read }), (told) => { now.told = told; now.chosen = 0; draw(); },
    (error) => { now.told = null; bars.replaceChildren(trouble(error)); places.replaceChildren(); });
  const fresh = later(load, 120);

  function draw() {
    const { told } = now, first = told.read - told.matched, longest = Math.max(1, ...told.words.map(({ length }) => length));
    strip.replaceChildren(...told.words.map(({ word, length, count }, place) => h("button", {
      type: "button", class: `${place >= first && place < told.read ? "in" : ""}${place === told.read - 1 ? " here" : ""}${place >= told.read ? " unread" : ""}`,
      "data-length": length, "data-count": count, "aria-pressed": String(place === told.read - 1),
      "aria-label": `${word}: the last ${length} words stand there ${count} times`, title: `${length} words, ${count} times`,
      onclick: () => { now.read = place + 1; load(); },
    }, h("i", { "aria-hidden": "true", style: `height:${((2.4 * length) / longest).toFixed(2)}rem` }), h("b", {}, length), h("span", {}, word))));
    const matched = told.words.slice(first, told.read).map(({ word }) => word).join(" ");
    note.textContent = told.matched
      ? `The last ${told.matched} of ${told.read} words, “${matched}”, are followed by ${told.distinct} different words there, ${told.count} times in all.`
      : `Nothing of this is followed by anything in the lab's text: these are its ${told.distinct} words by how often they occur.`;
    say(note.textContent);
    const most = told.next.length ? told.next[0].p : 1;
    bars.replaceChildren(...told.next.map(({ word, count, p }, place) => h("li", { "data-word": word, "data-count": count },
      h("button", { type: "button", class: "word", "aria-pressed": String(place === now.chosen), title: "Where it stands", onclick: () => { now.chosen = place; drawPlaces(); } }, word),
      h("span", { class: "bar", "aria-hidden": "true" }, h("i", { style: `width:${(100 * p) / most}%` })),
      h("span", { class: "value" }, `${count} × · ${readable(100 * p, 1)} %`))));
    drawPlaces();
  }

  function drawPlaces() {
    const chosen = now.told.next[now.chosen];
    [...bars.children].forEach((item, place) => item.firstChild.setAttribute("aria-pressed", String(place === now.chosen)));
    heading.textContent = chosen ? `Where “${chosen.word}” follows` : "Where it stands";
    places.replaceChildren(...(chosen ? chosen.places : []).map(({ name, before, text: run, after }) => h("li", {},
      h("small", {}, `document ${name}`), h("span", {}, `${before} `, h("mark", {}, run), ` ${after}`))));
    add.disabled = !chosen || chosen.word === "</s>";
  }
  const add = h("button", { type: "button", class: "main", id: "matches-add", onclick: () => {
    now.text = `${now.text.trimEnd()} ${now.told.next[now.chosen].word}`.trimStart();
    text.value = now.text;
    now.read = null;
    load();
  } }, "Add the word");

  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Longest match"),
      h("p", {}, "An n-gram model without n: it looks at as many of the last words as the lab's text has ever seen together. Each bar is that number after each word; it grows word by word and falls where the text was never seen. Click a word to stop reading there.")),
    h("div", { class: "controls" }, field("Your text", text, { class: "wide" }), add),
    h("section", { class: "card" }, strip, note),
    h("div", { class: "grid two", style: "margin-top:1rem" }, h("section", { class: "card" }, h("h3", {}, "What followed"), bars), h("section", { class: "card" }, heading, places)));
  await load();
}
