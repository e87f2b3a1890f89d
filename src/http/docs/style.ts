/** The style of the page. System fonts, and the colours of the reader's choice of light or dark. */
export const docsStyle = `
:root {
  color-scheme: light dark;
  --ground: #f7f6f3; --raised: #fff; --sunken: #efede8; --line: #e0dcd4;
  --ink: #1b1e23; --soft: #5a606a; --accent: var(--brand-light, #0b5f6b); --accent-ground: color-mix(in srgb, var(--accent) 12%, var(--raised));
  --good: #1a6b3c; --bad: #a8321f; --on-accent: #fff;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #121519; --raised: #191d22; --sunken: #21262c; --line: #2d333a;
    --ink: #e8eaed; --soft: #a2aab5; --accent: var(--brand-dark, #6fcdd8);
    --good: #7fd6a0; --bad: #ff9c8a; --on-accent: #0b2226;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1.5rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
}
a { color: var(--accent); text-underline-offset: .18em; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: 1rem; z-index: 2; background: var(--raised); padding: .5rem 1rem; }
h1, h2, h3, h4 { line-height: 1.25; text-wrap: balance; }
h1 { font-size: 2.4rem; letter-spacing: -.03em; margin: 0; }
h2 { font-size: 1.6rem; letter-spacing: -.015em; margin: 0 0 .6rem; }
h3 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
h4 { font-size: .95rem; margin: 1.2rem 0 .4rem; }
p { margin: 0 0 .9rem; max-width: 68ch; }
code, pre, .path { font-family: var(--mono); font-size: .86em; }
:not(pre) > code { background: var(--sunken); border-radius: 4px; padding: .1em .32em; }
pre {
  margin: 0; padding: .9rem 1rem; background: var(--sunken); border: 1px solid var(--line); border-radius: 8px;
  overflow: auto; max-height: 26rem; line-height: 1.5; font-size: .82rem;
}
.frame { max-width: 78rem; margin: 0 auto; padding: 0 1.5rem; }
.masthead { padding: 3rem 0 2rem; border-bottom: 1px solid var(--line); margin-bottom: 2.5rem; }
.brand { display: inline-flex; align-items: center; gap: .6rem; margin-bottom: 1.2rem; color: inherit; font-weight: 650; text-decoration: none; }
.brand img { height: 28px; max-width: 160px; }
.masthead .summary { font-size: 1.15rem; color: var(--soft); margin: .5rem 0 0; max-width: 60ch; }
.masthead .facts { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: 1rem 0 0; padding: 0; list-style: none; color: var(--soft); font-size: .9rem; }
.columns { display: grid; grid-template-columns: 13rem minmax(0, 1fr); gap: 3.5rem; align-items: start; }
nav { position: sticky; top: 1.5rem; font-size: .93rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { margin: .1rem 0; }
nav a { display: block; padding: .3rem .7rem; border-radius: 6px; color: inherit; text-decoration: none; }
nav a:hover { background: var(--sunken); color: var(--accent); }
main > section { margin-bottom: 3.5rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; background: var(--raised); margin-bottom: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; padding: .6rem .9rem; color: var(--soft); font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: .5rem .9rem; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-weight: 600; font-size: .82rem; white-space: nowrap; }
caption + thead th { border-top: 1px solid var(--line); }
tbody th { font-weight: 400; white-space: nowrap; }
#answer { margin-top: 1.2rem; }
.short { white-space: nowrap; }
.rows td, .rows th { white-space: nowrap; font-size: .84rem; padding: .35rem .8rem; }
.rows .number { text-align: right; font-variant-numeric: tabular-nums; }
.endpoint { border: 1px solid var(--line); border-radius: 8px; background: var(--raised); margin-bottom: .5rem; }
.endpoint > summary { display: grid; grid-template-columns: auto minmax(0, 1fr) auto; gap: .1rem .8rem; align-items: baseline; padding: .65rem .9rem; cursor: pointer; list-style: none; border-radius: 8px; }
.endpoint > summary::-webkit-details-marker { display: none; }
.endpoint > summary:hover { background: var(--sunken); }
.endpoint > summary::after { content: "+"; font: 400 1.2rem/1 var(--mono); color: var(--soft); grid-column: 3; grid-row: 1; }
.endpoint[open] > summary::after { content: "\u2212"; }
.endpoint .path { font-weight: 600; font-size: .9rem; overflow-wrap: anywhere; }
.endpoint .what { grid-column: 2; color: var(--soft); font-size: .9rem; }
.endpoint > div { padding: .9rem .9rem 1rem; border-top: 1px solid var(--line); }
.method { font: 700 .7rem/1.6 var(--mono); background: var(--accent-ground); color: var(--accent); border-radius: 4px; padding: .05rem .45rem; }
.fields { display: flex; flex-wrap: wrap; gap: .35rem; list-style: none; padding: 0; margin: 0 0 1rem; }
.added code { background: var(--accent-ground); color: var(--accent); font-weight: 600; }
.soft { color: var(--soft); }
.samples { display: grid; gap: .6rem; }
.samples summary, #answer summary { cursor: pointer; font-weight: 600; font-size: .92rem; padding: .15rem 0; }
#token { -webkit-text-security: disc; font-family: var(--mono); }
form { display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 1rem; background: var(--raised); border: 1px solid var(--line); border-radius: 10px; padding: 1.2rem; margin-bottom: 1rem; }
form div { grid-column: span 3; }
form .third { grid-column: span 2; }
form .full { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; }
label { display: block; font-weight: 600; font-size: .86rem; margin-bottom: .25rem; }
input, select { width: 100%; font: inherit; font-size: .92rem; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 6px; padding: .45rem .6rem; min-height: 2.5rem; }
button { font: inherit; font-weight: 600; color: var(--on-accent); background: var(--accent); border: 0; border-radius: 6px; padding: .55rem 1.3rem; min-height: 2.5rem; cursor: pointer; }
button:hover { filter: brightness(1.1); }
.status strong { margin-right: .5rem; }
.good strong { color: var(--good); }
.bad strong, p.bad { color: var(--bad); }
.headers { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .15rem 1.2rem; margin: .5rem 0 1rem; font-family: var(--mono); font-size: .8rem; }
.headers dt { color: var(--soft); }
.headers dd { margin: 0; overflow-wrap: anywhere; }
footer { border-top: 1px solid var(--line); padding: 1.5rem 0 3rem; color: var(--soft); font-size: .9rem; }
@media (max-width: 60rem) {
  .columns { grid-template-columns: minmax(0, 1fr); gap: 1.5rem; }
  nav { position: static; }
  nav ul { display: flex; flex-wrap: wrap; }
  form div, form .third { grid-column: 1 / -1; }
  .headers { grid-template-columns: minmax(0, 1fr); }
  .headers dd { margin-bottom: .4rem; }
}
@media print { nav, #try-panel, .skip { display: none; } .columns { display: block; } }
`;
