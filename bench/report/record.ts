import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type ChartName, charts } from '../harness/scenario.ts';
import { barChart } from './chart.ts';
import { goalTable, markdown, type Results, table } from './tables.ts';

const folder = fileURLToPath(new URL('../results/', import.meta.url));

/** Writes results.json, results.md and the charts to bench/results. */
export async function recordResults(results: Results): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(`${folder}results.json`, `${JSON.stringify(results)}\n`);
  await writeFile(`${folder}results.md`, page(results));
  const outcomes = results.scenarios.flatMap((result) => result.outcomes);
  for (const [name, title] of Object.entries(charts) as [ChartName, string][]) {
    const shown = outcomes.filter(({ chart }) => chart === name);
    if (shown.length > 0) await writeFile(`${folder}${name}.svg`, barChart(title, shown));
  }
}

function page({ machine, versions, options, commit, at, goals, scenarios }: Results): string {
  const facts = Object.entries({ ...machine, ...versions, ...options, commit, at });
  const sections = [
    '# Results',
    facts.map(([name, value]) => `${name}: ${value}`).join('; '),
    markdown(goalTable(goals)),
    ...scenarios.flatMap((result) => [`## ${result.scenario}`, markdown(table(result)), ...result.missing]),
  ];
  return `${sections.join('\n\n')}\n`;
}
