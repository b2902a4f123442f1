"""How the report looks: one calm column of serif text, numbers in columns, two colours, paper or night."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfcf9; --ink: #23211e; --muted: #6d6962; --line: #e4e0d8; --accent: #1f6f78; --heat: 217 119 6;
  --serif: "Iowan Old Style", "Palatino Linotype", Palatino, "URW Palladio L", "Book Antiqua", Georgia, serif;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #191817; --ink: #e8e4dc; --muted: #a09a8f; --line: #35332f; --accent: #6bbcc3; --heat: 178 98 22;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; max-width: 46rem; padding: 4.5rem 1.5rem 5rem;
  background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.65 var(--serif); font-kerning: normal; text-rendering: optimizeLegibility;
  overflow-wrap: break-word; -webkit-print-color-adjust: exact; print-color-adjust: exact;
}
header p, h3, dt, th, td, figcaption, .legend, footer { font-family: var(--sans); }
header p:first-child {
  margin: 0 0 .9rem; color: var(--accent); font-size: .75rem; font-weight: 600; letter-spacing: .09em;
  text-transform: uppercase;
}
h1 { margin: 0; font-size: clamp(1.9rem, 6vw, 2.75rem); font-weight: 500; line-height: 1.12; letter-spacing: -.015em; }
header .lede { margin: 1.3rem 0 0; font: 1.25rem/1.55 var(--serif); color: var(--ink); text-wrap: pretty; }
section[aria-labelledby] { margin-top: 3.75rem; }
h2 { margin: 0 0 1.2rem; font-size: 1.45rem; font-weight: 500; line-height: 1.25; letter-spacing: -.008em; }
h3 { margin: 0 0 .5rem; font-size: .8125rem; font-weight: 600; }
p { margin: 0 0 1rem; text-wrap: pretty; }
.facts {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 1.4rem 1.5rem;
  margin: 2.75rem 0 0; padding: 1.5rem 0; border: solid var(--line); border-width: 1px 0;
}
.facts div { display: flex; flex-direction: column-reverse; }
dt { color: var(--muted); font-size: .8125rem; line-height: 1.35; }
dd { margin: 0; font-size: 1.6rem; line-height: 1.25; font-feature-settings: "lnum", "tnum"; }
nav ol { display: flex; flex-wrap: wrap; gap: .35rem 1.4rem; margin: 1.5rem 0 0; padding: 0; list-style: none; }
nav a {
  color: var(--muted); font: .8125rem/1.5 var(--sans); text-decoration: none; border-bottom: 1px solid var(--line);
}
nav a:hover, nav a:focus-visible { color: var(--accent); border-color: currentColor; }
.scroll { overflow-x: auto; margin: 0 -1.5rem; padding: 0 1.5rem; }
table {
  width: 100%; border-collapse: collapse; font-size: .875rem; line-height: 1.35; font-variant-numeric: tabular-nums;
}
th, td { padding: .6rem 0 .6rem 1.1rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { padding-left: 0; text-align: left; }
thead th { color: var(--muted); font-weight: 400; font-size: .8125rem; vertical-align: bottom; white-space: normal; }
tbody th { font-weight: 500; }
tr.best th, tr.best th + td { color: var(--accent); font-weight: 650; }
figure { margin: 0; break-inside: avoid; }
.wide { min-width: 40rem; }
h3 + figure + h3 { margin-top: 2.25rem; }
.pieces { margin: 0 0 1.1rem; font-size: .9375rem; line-height: 1.9; }
.neighbours dt { color: var(--ink); font-size: .9375rem; font-weight: 600; }
.neighbours dd { font: 1rem/1.45 var(--serif); }
.scroll + figure { margin-top: 2.25rem; }
figure .picture { display: block; }
.legend span { color: var(--ink); }
figcaption { margin-top: 1rem; color: var(--muted); font-size: .875rem; line-height: 1.5; text-wrap: pretty; }
.passage { margin: 0; line-height: 1.95; white-space: pre-wrap; }
.passage [title], .legend span { -webkit-box-decoration-break: clone; box-decoration-break: clone; }
.legend { margin: 1.2rem 0 0; color: var(--muted); font-size: .8125rem; }
.legend span { color: var(--ink); }
blockquote {
  margin: 0 0 2rem; padding-inline-start: 1.1rem; border-inline-start: 2px solid var(--line);
  white-space: pre-wrap; break-inside: avoid;
}
.method { font-size: 1rem; }
.method dt { margin-top: 1rem; color: var(--ink); font-weight: 600; }
.method dd { margin: .15rem 0 0; font-size: 1rem; line-height: 1.6; }
footer {
  margin-top: 4rem; padding-top: 1.2rem; border-top: 1px solid var(--line); color: var(--muted); font-size: .8125rem;
}
@media (max-width: 34rem) {
  body { padding: 2.5rem 1.25rem 3rem; font-size: 1rem; }
  header .lede { font-size: 1.125rem; }
  section[aria-labelledby] { margin-top: 2.75rem; }
  .facts { grid-template-columns: 1fr 1fr; }
  .scroll { margin: 0 -1.25rem; padding: 0 1.25rem; }
  table { font-size: .8125rem; }
  th, td { padding-left: .75rem; }
  tbody th { white-space: normal; }
}
@media print {
  @page { margin: 18mm; }
  html { font-size: 82%; }
  body { max-width: none; padding: 0; background: none; }
  h2, h3, dt { break-after: avoid; }
  section[aria-labelledby] { margin-top: 2.5rem; }
  .scroll { overflow: visible; margin: 0; padding: 0; }
  .wide { min-width: 0; }
  nav { display: none; }
  th, td { padding-left: .7rem; }
}
"""
