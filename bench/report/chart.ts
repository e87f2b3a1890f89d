import { spread } from '../harness/measure.ts';
import type { Outcome } from '../harness/scenario.ts';
import { short } from './tables.ts';

const width = 760;
const labelWidth = 300;
const valueWidth = 140;
const barHeight = 18;
const gap = 6;
const top = 40;

// Readable in light and in dark mode.
const style = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title, .group { font-weight: 600 }
  .bar { fill: #8c959f } .ours { fill: #1a7f64 }
  .spread { stroke: #1f2328; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .bar { fill: #6e7681 } .ours { fill: #2ea27f } .spread { stroke: #e6edf3 }
  }`;

/** An SVG of the medians as bars with their spread, one group per outcome; adtally has its own colour. */
export function barChart(title: string, outcomes: readonly Outcome[]): string {
  const largest = Math.max(
    ...outcomes.flatMap(({ sides }) => sides.map(({ samples }) => spread(samples).max)),
  );
  const scale = (value: number) => (value / largest) * (width - labelWidth - valueWidth);
  const parts: string[] = [];
  let y = top;
  for (const { what, unit, sides } of outcomes) {
    parts.push(`<text class="group" x="0" y="${y + 13}">${escaped(what)}</text>`);
    y += barHeight + gap;
    for (const { name, samples } of sides) {
      const { median, min, max } = spread(samples);
      const middle = y + barHeight / 2;
      parts.push(
        `<text x="${labelWidth - 8}" y="${y + 13}" text-anchor="end">${escaped(name)}</text>`,
        `<rect class="bar${name.startsWith('adtally') ? ' ours' : ''}" x="${labelWidth}" y="${y}" width="${fixed(Math.max(1, scale(median)))}" height="${barHeight}" rx="2"/>`,
        `<line class="spread" x1="${fixed(labelWidth + scale(min))}" x2="${fixed(labelWidth + scale(max))}" y1="${middle}" y2="${middle}"/>`,
        `<text x="${fixed(labelWidth + scale(max) + 8)}" y="${y + 13}">${short(median)} ${unit}</text>`,
      );
      y += barHeight + gap;
    }
    y += gap * 2;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" role="img" aria-label="${escaped(title)}">
<style>${style}</style>
<text class="title" x="0" y="16">${escaped(title)}</text>
${parts.join('\n')}
</svg>
`;
}

const fixed = (value: number) => value.toFixed(1);

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
