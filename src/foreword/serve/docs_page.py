"""The page at ``/docs``: every route of the schema, to read and to try. It loads nothing from anywhere else."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Foreword: routes</title>
<style>
  :root { color-scheme: light dark; }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
  h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; text-transform: capitalize; }
  details { border: 1px solid #8886; border-radius: .4rem; margin: .4rem 0; padding: .4rem .8rem; }
  summary { cursor: pointer; } code, textarea, pre { font: 14px/1.4 ui-monospace, monospace; }
  textarea { width: 100%; box-sizing: border-box; min-height: 7rem; }
  pre { overflow: auto; max-height: 24rem; background: #8881; padding: .6rem; }
  button { font: inherit; padding: .2rem 1rem; } table { border-collapse: collapse; }
  td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
</style>
</head>
<body>
<h1>Foreword: routes</h1>
<p>The schema is at <a href="/openapi.json">/openapi.json</a>. Every refusal is
<code>{"error": "one sentence"}</code>.</p>
<main id="routes">Loading …</main>
<script>
"use strict";
const make = (tag, text, ...inner) => {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...inner);
  return made;
};
const resolve = (schema, all) =>
  schema && schema.$ref ? all[schema.$ref.split("/").pop()] : schema;
const EXAMPLES = { text: "the old man", prompt: "the old", word: "man", a: "man", b: "king", c: "woman" };
const example = (schema) => {
  const body = {};
  for (const [name, field] of Object.entries(schema.properties || {})) {
    if (name === "model") body.model = (field.enum || ["NAME"])[0];
    else if (name in EXAMPLES) body[name] = EXAMPLES[name];
    else if (field.default !== undefined && field.default !== null) body[name] = field.default;
  }
  return JSON.stringify(body, null, 2);
};
const told = (field) => {
  const types = (field.anyOf || [field]).map((each) => each.enum ? each.enum.join(" | ") :
    each.type === "array" ? `list of ${(each.items || {}).type || "values"}` : each.type || "");
  const limits = ["minimum", "maximum", "exclusiveMinimum", "maxLength"].filter((name) => name in field)
    .map((name) => `${name} ${field[name]}`);
  return [types.join(" or "), ...limits].join(", ");
};
const send = async (method, path, area, out) => {
  out.textContent = "…";
  const began = performance.now();
  try {
    const settings = { method };
    if (area) Object.assign(settings, { body: area.value, headers: { "content-type": "application/json" } });
    const answer = await fetch(path, settings);
    let text = "";
    const reader = answer.body.getReader(), decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
      out.textContent = `${answer.status}\\n${text}`;
    }
    try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it is no JSON */ }
    out.textContent = `${answer.status} after ${Math.round(performance.now() - began)} ms\\n${text.slice(0, 20000)}`;
  } catch (error) { out.textContent = String(error); }
};
const route = (path, method, about, all) => {
  const box = make("details", "", make("summary", "", make("code", `${method.toUpperCase()} ${path}`),
    ` ${about.description || ""}`));
  const schema = resolve(about.requestBody?.content?.["application/json"]?.schema, all);
  let area = null;
  if (schema) {
    const table = make("table");
    for (const [name, field] of Object.entries(schema.properties || {})) {
      const needed = (schema.required || []).includes(name) ? "needed" : "";
      table.append(make("tr", "", make("td", "", make("code", name)), make("td", told(field)), make("td", needed)));
    }
    if (schema.description) box.append(make("p", schema.description));
    area = make("textarea");
    area.value = example(schema);
    area.setAttribute("aria-label", `body for ${path}`);
    box.append(table, area);
  }
  const button = make("button", "Send"), out = make("pre");
  out.setAttribute("aria-live", "polite");
  button.addEventListener("click", () => send(method.toUpperCase(), path, area, out));
  box.append(make("p", "", button), out);
  return box;
};
(async () => {
  const place = document.getElementById("routes");
  try {
    const schema = await (await fetch("/openapi.json")).json();
    const all = (schema.components || {}).schemas || {};
    const groups = new Map();
    for (const [path, methods] of Object.entries(schema.paths)) {
      for (const [method, about] of Object.entries(methods)) {
        const group = (about.tags || ["more"])[0];
        if (!groups.has(group)) groups.set(group, make("section", "", make("h2", group)));
        groups.get(group).append(route(path, method, about, all));
      }
    }
    place.replaceChildren(...groups.values());
  } catch (error) { place.textContent = `The schema could not be read: ${error}`; }
})();
</script>
</body>
</html>
"""
