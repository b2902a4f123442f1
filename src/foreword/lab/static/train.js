// Training from the page: one at a time, watched, stopped, resumed.

import { lineChart } from "lab/chart";
import { ask, every, field, h, select, slider, trouble } from "lab/dom";

const WORDS = { waiting: "waits", running: "learning", stopped: "stopped", done: "done", failed: "failed", cancelled: "cancelled" };

export async function start(view) {
  const now = { kind: "lstm", seconds: 10, units: 64, networks: [], titles: [] };
  const kind = select("train-kind", [], (value) => { now.kind = value; sized(); });
  const seconds = slider({ id: "train-seconds", label: "Seconds", min: 2, max: 120, step: 1, value: now.seconds, show: (value) => `${value}`, change: (value) => { now.seconds = value; } });
  const units = slider({ id: "train-units", label: "Units", min: 8, max: 256, step: 8, value: now.units, show: (value) => `${value}`, change: (value) => { now.units = value; } });
  const text = h("textarea", { id: "train-text", rows: 3, maxlength: 500000, placeholder: "A text of your own, a document a line; or nothing, for the lab's text" });
  const go = h("button", { type: "button", class: "main", id: "train-start", onclick: begin }, "Train");
  const wrong = h("div", {});
  const jobs = h("div", { class: "jobs", id: "train-jobs" });
  const starters = h("ul", { class: "starters", "aria-label": "Models that the lab begins with" });
  const cards = new Map();
  const sized = () => { units.hidden = seconds.hidden = !now.networks.includes(now.kind); };

  async function begin() {
    wrong.replaceChildren();
    try {
      await ask("/api/trainings", { kind: now.kind, seconds: now.seconds, units: now.units, text: text.value });
      await look();
    } catch (error) {
      wrong.replaceChildren(trouble(error));
    }
  }

  function cardOf(job) {
    const phase = h("span", { class: "phase" }), bar = h("progress", { max: 1, value: 0, "aria-label": `${job.title}: how far` });
    const chart = h("div", { class: "chart-place" }), note = h("p", { class: "note", style: "margin:0" });
    const press = (what) => async () => { await ask(`/api/trainings/${what}`, { id: job.id }).catch((error) => { note.textContent = error.message; }); await look(); };
    const stop = h("button", { type: "button", class: "stop", onclick: press("stop") }, "Stop");
    const resume = h("button", { type: "button", class: "resume", onclick: press("resume") }, "Go on");
    const element = h("article", { class: "card job", "data-job": job.id }, h("header", {}, h("h3", {}, job.title), phase, h("div", { class: "buttons" }, stop, resume)), bar, chart, note);
    let drawn = -1;
    return { element, tell(fresh) {
      phase.textContent = WORDS[fresh.phase];
      phase.className = `phase ${fresh.phase}`;
      element.dataset.phase = fresh.phase;
      bar.value = fresh.phase === "done" ? 1 : fresh.share;
      stop.hidden = !["waiting", "running"].includes(fresh.phase);
      resume.hidden = !fresh.resumable;
      const last = fresh.curve.at(-1);
      note.textContent = fresh.note || (last ? `Loss ${last[1].toFixed(2)} nats a word${now.titles.some((each) => fresh.title.startsWith(each)) ? `, a perplexity of ${Math.exp(last[1]).toFixed(0)} on what it learns from` : ""}.` : "")
        + (fresh.model ? ` It is in the other panels as “${fresh.model}”.` : "");
      if (fresh.curve.length > 1 && fresh.curve.length !== drawn) {
        drawn = fresh.curve.length;
        lineChart(chart, { title: `${job.title}: loss`, xName: "% done", yName: "nats", height: 190, lines: [{ name: "loss", colour: "var(--c2)", values: fresh.curve.map(([share, loss]) => [100 * share, loss]) }] });
      }
    } };
  }

  async function look() {
    const told = await ask("/api/trainings");
    now.networks = told.networks;
    now.titles = told.networks.map((name) => told.kinds[name]);
    if (!kind.options.length) { kind.fill(Object.entries(told.kinds), now.kind); sized(); }
    const begun = told.jobs.filter((job) => job.starter);
    starters.replaceChildren(...begun.map((job) => h("li", { class: job.phase, title: job.note }, `${job.title}: ${WORDS[job.phase]}${job.phase === "running" && job.share ? ` ${Math.round(100 * job.share)} %` : ""}`)));
    for (const job of told.jobs.filter((each) => !each.starter)) {
      if (!cards.has(job.id)) { cards.set(job.id, cardOf(job)); jobs.prepend(cards.get(job.id).element); }
      cards.get(job.id).tell(job);
    }
  }
  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Train"), h("p", {}, "Start a model here and watch its loss fall. One learns at a time; the others wait. A neural model that is stopped can go on from the very word where it was.")),
    h("div", { class: "controls" }, field("Model", kind), seconds, units, field("Text", text, { class: "wide" }), go), wrong,
    h("section", { class: "card" }, h("h3", {}, "To begin with"), starters), jobs);
  await look();
  every(700, view, () => look().catch(() => {}));
}
