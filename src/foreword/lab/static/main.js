// The frame: tabs that keys can use, one panel at a time, light or dark.

import { h, say, trouble } from "lab/dom";

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
    const view = h("section", { role: "tabpanel", id: `view-${name}`, "aria-labelledby": `tab-${name}`, class: "view" });
    made.set(name, view);
    place.replaceChildren(view);
    try {
      const panel = await import(`lab/${name}`);
      await panel.start(view);
    } catch (error) {
      made.delete(name);
      view.replaceChildren(trouble(error));
    }
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

if (panels.length === 1) list.parentElement.hidden = true;
const asked = location.hash.slice(1);
show(panels.some((panel) => panel.name === asked) ? asked : panels[0].name);
