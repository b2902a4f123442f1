// Tables to look things up in; each row ends in a number that the server has measured.

import { ask, h, maths } from "lab/dom";

export async function start(view) {
  const place = h("div", { class: "tables" }, h("p", { class: "note", role: "status" }, "Measuring…"));
  const again = h("button", { type: "button", class: "plain", id: "reference-again", onclick: () => load() }, "Measure again");
  const load = async () => {
    const tables = await ask("/api/reference");
    place.replaceChildren(...tables.map(({ title, columns, rows }) => h("section", { class: "card" }, h("h3", {}, title),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, h("table", { class: "looked-up" },
        h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col" }, column)))),
        h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, n) => h(n ? "td" : "th", n ? {} : { scope: "row" }, columns[n] === "Formula" ? maths(cell) : cell))))))))));
  };
  view.replaceChildren(h("div", { class: "lead" }, h("h2", {}, "Reference"),
    h("p", {}, "Gates, attention scores, what recurrence cannot do, and six architectures. The last column of each table is measured on this machine.")),
  h("div", { class: "buttons" }, again), place);
  await load();
}
