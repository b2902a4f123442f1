// Lines over steps as SVG: a logarithmic or a plain axis, a name at each line's end. Lengths are pixels of the place.

import { h, readable, s } from "lab/dom";

const LEFT = 46, TOP = 14, BOTTOM = 42;

/**
 * lines: [{name, colour, values: [[x, y], …]}]; log: the axis of y. Draws into `place`, as wide as that is.
 * mark: an x at which a thin line stands.
 */
export function lineChart(place, { title, lines, xName, yName, log = false, height = 240, mark = null, floor = 1e-12 }) {
  const width = Math.max(280, place.clientWidth || 600);
  const right = 64;
  const all = lines.flatMap((line) => line.values).filter(([, y]) => Number.isFinite(y) && (!log || y > 0));
  const svg = s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width: "100%", height, role: "img",
    "aria-label": title });
  svg.append(s("title", {}, title));
  if (all.length) {
    const up = log ? (y) => Math.log10(Math.max(y, floor)) : (y) => y;
    const xs = all.map(([x]) => x), ys = all.map(([, y]) => up(y));
    const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
    let [y0, y1] = [Math.min(...ys), Math.max(...ys)];
    if (log) { y0 = Math.floor(y0); y1 = Math.max(Math.ceil(y1), y0 + 1); }
    if (y1 - y0 < 1e-9) { y0 -= 0.5; y1 += 0.5; }
    const px = (x) => LEFT + ((x - x0) / (x1 - x0 || 1)) * (width - LEFT - right);
    const py = (y) => TOP + (1 - (y - y0) / (y1 - y0)) * (height - TOP - BOTTOM);
    for (const tick of log ? powers(y0, y1) : round(y0, y1)) {
      svg.append(s("line", { class: "grid", x1: LEFT, x2: width - right, y1: py(tick), y2: py(tick) }));
      svg.append(s("text", { class: "tick", x: LEFT - 6, y: py(tick) + 4, "text-anchor": "end" },
        log ? power(tick) : short(tick)));
    }
    for (const tick of round(x0, x1, 6)) {
      svg.append(s("text", { class: "tick", x: px(tick), y: height - 24, "text-anchor": "middle" }, short(tick)));
    }
    svg.append(s("text", { class: "tick", x: width - right, y: height - 6, "text-anchor": "end" }, xName));
    if (mark !== null) svg.append(s("line", { class: "mark", x1: px(mark), x2: px(mark), y1: TOP, y2: height - BOTTOM }));
    for (const line of lines) {
      const points = line.values.filter(([, y]) => Number.isFinite(y) && (!log || y > 0));
      const path = points.map(([x, y], n) => `${n ? "L" : "M"}${px(x).toFixed(1)},${py(up(y)).toFixed(1)}`).join("");
      svg.append(s("path", { class: "line", d: path, style: `stroke:${line.colour}` }));
    }
    const ends = lines.map((line) => {
      const last = line.values.filter(([, y]) => Number.isFinite(y) && (!log || y > 0)).at(-1);
      return last ? { line, y: py(up(last[1])), x: px(last[0]) } : null;
    }).filter(Boolean).sort((a, b) => a.y - b.y);
    ends.forEach((end, n) => { if (n) end.y = Math.max(end.y, ends[n - 1].y + 15); });
    let lowest = height - BOTTOM - 4; // names stay above the axis
    for (const end of [...ends].reverse()) { end.y = Math.min(end.y, lowest); lowest = end.y - 15; }
    for (const end of ends) {
      svg.append(s("text", { class: "name", x: end.x + 8, y: end.y + 4, style: `fill:${end.line.colour}` },
        end.line.name));
    }
  }
  place.replaceChildren(svg, table({ title, lines, xName, yName }));
}

/** The same numbers for readers who listen, and for whoever wants them. */
function table({ title, lines, xName, yName }) {
  const xs = [...new Set(lines.flatMap((line) => line.values.map(([x]) => x)))].slice(0, 60);
  const found = lines.map((line) => new Map(line.values));
  return h("details", { class: "numbers" }, h("summary", {}, "The numbers"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}: numbers` },
      h("table", {}, h("caption", { class: "sr" }, `${title}: ${yName}`),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, xName), lines.map((line) => h("th", { scope: "col" }, line.name)))),
        h("tbody", {}, xs.map((x) => h("tr", {}, h("th", { scope: "row" }, short(x)),
          found.map((line) => h("td", {}, line.has(x) ? readable(line.get(x), 4) : ""))))))));
}

const short = (value) => String(Number(value.toPrecision(4))).replace("-", "−");
const raised = (text) => [...text].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
const power = (exponent) => (exponent === 0 ? "1" : exponent === 1 ? "10" : `10${raised(String(exponent))}`);

function powers(low, high) {
  const every = Math.max(1, Math.round((high - low) / 5));
  const found = [];
  for (let at = Math.ceil(low); at <= high; at++) if (at % every === 0) found.push(at);
  return found;
}

function round(low, high, wanted = 5) {
  const rough = (high - low) / wanted || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * size).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}
