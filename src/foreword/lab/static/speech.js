// Speech: a recording as a spectrogram, what the network predicts at each step, and the texts in the beam.

import { ask, every, field, h, latest, readable, select, slider, trouble } from "lab/dom";

export async function start(view) {
  const now = { model: null, recording: null, wav: "", name: "", width: 8, told: null };
  const asking = latest();
  const model = select("speech-model", [], (value) => { now.model = value; load(); });
  const recording = select("speech-recording", [], (value) => { now.recording = value; now.wav = ""; load(); });
  const file = h("input", { id: "speech-file", type: "file", accept: ".wav,audio/wav", onchange: () => take(file.files[0]) });
  const width = slider({ id: "speech-width", label: "Beam", min: 1, max: 16, step: 1, value: 8, show: (value) => `${value} wide`, change: (value) => { now.width = value; load(); } });
  const said = h("p", { class: "heard", id: "speech-text", role: "status" });
  const place = h("div", {});
  const note = h("p", { class: "note", role: "status" });
  const drop = h("section", { class: "card drop", id: "speech-drop",
    ondragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event) => { event.preventDefault(); drop.classList.remove("over"); take(event.dataTransfer.files[0]); } }, said, place);

  async function take(dropped) {
    if (!dropped) return;
    const bytes = new Uint8Array(await dropped.arrayBuffer());
    let text = "";
    for (let begin = 0; begin < bytes.length; begin += 8192) text += String.fromCharCode(...bytes.subarray(begin, begin + 8192));
    now.wav = btoa(text);
    now.name = dropped.name;
    load();
  }

  function load() {
    if (!now.model || !(now.wav || now.recording)) return;
    const body = { model: now.model, width: now.width, ...(now.wav ? { wav: now.wav } : { recording: now.recording }) };
    asking(() => ask("/api/speech/look", body), (told) => { now.told = told; draw(); },
      (error) => { now.told = null; said.replaceChildren(); place.replaceChildren(trouble(error)); });
  }

  function draw() {
    const { told } = now;
    if (!told) return;
    said.replaceChildren(h("strong", {}, told.text || "(nothing)"), h("span", {}, `${now.wav ? now.name : now.recording}: ${readable(told.seconds)} s at ${told.rate / 1000} kHz`));
    place.replaceChildren(
      h("h3", {}, "What it reads: the energy in each band of the mel scale"), grid(told.bands.map(() => ""), told.bands, told.seconds, 6, "Spectrogram"),
      h("h3", {}, "What it predicts at each step: a symbol, or the blank"), grid(told.symbols, told.shares, told.seconds, 18, "Probabilities of symbols"),
      h("h3", {}, "The beam: each text's share of its probability"), grid(told.texts.map((text) => text || "(nothing yet)"), told.beam, told.seconds, 18, "Texts in the beam"));
  }

  async function look() {
    const told = await ask("/api/speech");
    if (told.models.length !== model.options.length) model.fill(told.models, now.model ?? undefined);
    if (told.recordings.length !== recording.options.length) recording.fill(told.recordings.map((name) => [name, name.replaceAll("_", " ")]), now.recording ?? undefined);
    const first = now.model === null && told.models.length;
    if (first) now.model = told.models[0][0];
    now.recording ??= told.recordings[0] ?? null;
    note.textContent = told.models.length ? (told.recordings.length ? "" : "The spoken digits are not on this machine: drop a WAV file on the page.")
      : "There is no recogniser yet: one is being trained, or name a folder that foreword speech train saved when you start the lab.";
    if (first) load();
  }

  view.replaceChildren(
    h("div", { class: "lead" }, h("h2", {}, "Speech"), h("p", {}, "A network reads the recording in both directions and predicts a symbol or a blank at every step. It was never told when a word is said: connectionist temporal classification adds up all alignments. Drop a WAV file below, or choose one.")),
    h("div", { class: "controls" }, field("Recogniser", model), field("Recording", recording), field("Your own", file), width), note, drop);
  new MutationObserver(() => (view.isConnected ? draw() : null)).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  await look();
  every(2000, view, () => look().catch(() => {}));
}

/** A row per name, a column per step, as full of colour as the number is large. */
function grid(names, rows, seconds, high, title) {
  const steps = rows[0].length, dense = 3;
  const canvas = h("canvas", { width: steps * dense, height: rows.length * dense, role: "img", "aria-label": `${title}, ${rows.length} rows, ${steps} steps`, style: `height:${high * rows.length}px` });
  const ink = canvas.getContext("2d");
  ink.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  rows.forEach((row, n) => row.forEach((share, step) => { ink.globalAlpha = share; ink.fillRect(step * dense, n * dense, dense, dense); }));
  const shown = names.some((name) => name) ? names.map((name) => h("span", { style: `height:${high}px;line-height:${high}px` }, name)) : [h("span", {}, "high"), h("span", {}, "low")];
  return h("div", { class: "over-time" }, h("div", { class: `names${names[0] ? "" : " ends"}` }, shown), canvas, h("span", {}), h("div", { class: "names ends across" }, h("span", {}, "0"), h("span", {}, `${readable(seconds)} s`)));
}
