/** The style of the page. System fonts, and the colours of the reader's choice of light or dark. */
export const docsStyle = `
:root {
  color-scheme: light dark;
  --ground: #f7f6f3; --raised: #fff; --sunken: #efede8; --line: #e0dcd4;
  --ink: #1b1e23; --soft: #5a606a; --accent: var(--brand-light, #0b5f6b);
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #121519; --raised: #191d22; --sunken: #21262c; --line: #2d333a;
    --ink: #e8eaed; --soft: #a2aab5; --accent: var(--brand-dark, #6fcdd8);
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; }
body {
  margin: 0 auto; max-width: 78rem; padding: 0 1.5rem; background: var(--ground); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  display: grid; grid-template-columns: 13rem minmax(0, 1fr); gap: 0 3.5rem; align-items: start;
}
header, footer { grid-column: 1 / -1; padding: 2.5rem 0 1.5rem; }
a { color: var(--accent); text-underline-offset: .18em; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--raised); padding: .5rem 1rem; }
h1, h2 { line-height: 1.25; margin: 0 0 .6rem; }
p { margin: 0 0 .9rem; max-width: 68ch; }
code, pre { font-family: ui-monospace, "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .86em; }
code { overflow-wrap: anywhere; }
pre { margin: 0 0 1rem; padding: .9rem 1rem; background: var(--sunken); border-radius: 8px; overflow: auto; max-height: 26rem; line-height: 1.5; }
.brand { display: inline-flex; align-items: center; gap: .6rem; margin-bottom: 1.2rem; color: inherit; font-weight: 650; text-decoration: none; }
.brand img { height: 28px; max-width: 160px; }
nav { position: sticky; top: 1.5rem; font-size: .93rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav a { display: block; padding: .3rem 0; color: inherit; text-decoration: none; }
nav a:hover { color: var(--accent); }
section { margin-bottom: 3.5rem; }
details { border: 1px solid var(--line); border-radius: 8px; background: var(--raised); margin-bottom: .5rem; padding: .6rem .9rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary code { font-weight: 600; margin-right: .6rem; }
details[open] > summary { margin-bottom: .8rem; }
.scroll { overflow-x: auto; margin-bottom: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .5rem .9rem .5rem 0; border-bottom: 1px solid var(--line); min-width: 6rem; }
thead th { color: var(--soft); font-size: .82rem; }
tbody th { font-weight: 400; min-width: 13rem; }
td:last-child { min-width: 18rem; }
.soft { color: var(--soft); }
@media (max-width: 60rem) {
  body { grid-template-columns: minmax(0, 1fr); }
  nav { position: static; margin-bottom: 1.5rem; }
  nav ul { display: flex; flex-wrap: wrap; gap: 0 1.2rem; }
}
@media print { nav, .skip { display: none; } body { display: block; } }
`;
