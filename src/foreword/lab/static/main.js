// The frame: tabs that keys can use, one panel at a time, light or dark.

import { answersOf, h, isSaved, say, settled, trouble } from "lab/dom";

const panels = JSON.parse(document.getElementById("panels").textContent);
const list = document.getElementById("tabs");
const place = document.getElementById("panel");
const made = new Map();

const tabs = panels.map(({ name, title }) => h("button", {
  type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `view-${name}`, "aria-selected": "false",
  tabindex: "-1", onclick: () => show(name),
}, title));
list.append(...tabs);

list.addEventListener("keydown", (event) => {
  const at = tabs.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  const tab = tabs.at(to % tabs.length);
  tab.focus();
  tab.click();
});

async function show(name) {
  const number = panels.findIndex((panel) => panel.name === name);
  tabs.forEach((tab, n) => {
    tab.setAttribute("aria-selected", String(n === number));
    tab.tabIndex = n === number ? 0 : -1;
  });
  tabs[number].scrollIntoView({ block: "nearest", inline: "nearest" });
  if (panels.length > 1) history.replaceState(null, "", `#${name}`);
  if (!made.has(name)) {
    const view = h("section", { role: "tabpanel", id: `view-${name}`, "aria-labelledby": `tab-${name}`, class: "view loading" });
    made.set(name, view);
    place.replaceChildren(view);
    try {
      const panel = await import(`lab/${name}`);
      await panel.start(view);
      if (isSaved) restore(view);
      await settled();
    } catch (error) {
      made.delete(name);
      view.replaceChildren(trouble(error));
    }
    view.classList.remove("loading");
  } else {
    place.replaceChildren(made.get(name));
    made.get(name).dispatchEvent(new Event("shown"));
  }
  say(panels[number].title);
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a file has no storage in some browsers */ }
});

// A saved panel is the page of the server with its answers in it, and the values of its controls.

const CONTROLS = "input[id], select[id], textarea[id]";
const valueOf = (control) => (control.type === "checkbox" ? control.checked : control.value);

document.getElementById("save").hidden = isSaved;
document.getElementById("save").addEventListener("click", async () => {
  const name = tabs.find((tab) => tab.tabIndex === 0).id.slice(4);
  const controls = [...made.get(name).querySelectorAll(CONTROLS)].map((control) => [control.id, valueOf(control)]);
  const inside = (value) => JSON.stringify(value).replaceAll("<", "\\u003c");
  const page = await (await fetch(`/saved/${name}`)).text();
  const answers = `id="answers">${inside(answersOf(name))}</script><script type="application/json" id="controls">${inside(controls)}</script>`;
  const link = h("a", { download: `foreword-${name}.html`, href: URL.createObjectURL(
    new Blob([page.replace('id="answers">{}</script>', () => answers)], { type: "text/html" })) });
  link.click();
  URL.revokeObjectURL(link.href);
  say(`${link.download} is saved`);
});

function restore(view) {
  const values = JSON.parse(document.getElementById("controls")?.textContent ?? "[]");
  for (const [id, value] of values) {
    const control = view.querySelector(`#${CSS.escape(id)}`);
    if (!control || valueOf(control) === value) continue;
    if (control.type === "checkbox") control.checked = value; else control.value = value;
    for (const name of ["input", "change"]) control.dispatchEvent(new Event(name, { bubbles: true }));
  }
}

if (panels.length === 1) list.parentElement.hidden = true;
const asked = location.hash.slice(1);
show(panels.some((panel) => panel.name === asked) ? asked : panels[0].name);
