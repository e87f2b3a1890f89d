import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type ChartName, charts } from '../harness/scenario.ts';
import { barChart } from './chart.ts';
import { type Goal, type GoalName, goals, type Verdict, verdicts } from './goals.ts';
import { goalTable, markdown, type Results, short, table } from './tables.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = `${root}bench/results/`;

/** The last run of each scenario; newest first. */
export type RecordedRuns = readonly Results[];

/** Pages with figures of the record, each between two comments. */
export const pagesWithFigures: Readonly<Record<string, (runs: RecordedRuns) => string>> = {
  'README.md': shortFigures,
  'docs/performance.md': allFigures,
};

/** Writes results.json, results.md and the charts to bench/results, and the figures of the pages. */
export async function recordResults(results: Results): Promise<void> {
  await mkdir(folder, { recursive: true });
  const runs = withRun(await readRecord(), results);
  await writeFile(`${folder}results.json`, `${JSON.stringify(runs)}\n`);
  await writeFile(`${folder}results.md`, page(runs));
  const outcomes = runs.flatMap(({ scenarios }) => scenarios.flatMap((result) => result.outcomes));
  for (const [name, title] of Object.entries(charts) as [ChartName, string][]) {
    const shown = outcomes.filter(({ chart }) => chart === name);
    if (shown.length > 0) await writeFile(`${folder}${name}.svg`, barChart(title, shown));
  }
  for (const [name, figures] of Object.entries(pagesWithFigures)) {
    const file = `${root}${name}`;
    await writeFile(file, withFigures(await readFile(file, 'utf8'), figures(runs)));
  }
}

export async function readRecord(): Promise<RecordedRuns> {
  return JSON.parse(await readFile(`${folder}results.json`, 'utf8'));
}

/** The scenarios of a run take the place of those in earlier ones. */
export function withRun(runs: RecordedRuns, run: Results): RecordedRuns {
  const repeated = new Set(run.scenarios.map(({ scenario }) => scenario));
  const left = runs.map((earlier) => ({
    ...earlier,
    scenarios: earlier.scenarios.filter(({ scenario }) => !repeated.has(scenario)),
  }));
  return [run, ...left.filter(({ scenarios }) => scenarios.length > 0)];
}

/** Of all runs, each goal once. */
function verdictsOf(runs: RecordedRuns): Verdict[] {
  const outcomes = runs.flatMap(({ scenarios }) => scenarios.flatMap((result) => result.outcomes));
  return verdicts(outcomes.flatMap((outcome) => outcome.goals ?? []));
}

function page(runs: RecordedRuns): string {
  const sections = runs.flatMap(({ machine, versions, options, commit, at, scenarios }) => {
    const facts = Object.entries({ ...machine, ...versions, ...options, commit, at });
    return [
      facts.map(([name, value]) => `${name}: ${value}`).join('; '),
      ...scenarios.flatMap((result) => [`## ${result.scenario}`, markdown(table(result)), ...result.missing]),
    ];
  });
  return `${['# Results', markdown(goalTable(verdictsOf(runs))), ...sections].join('\n\n')}\n`;
}

const begin = '<!-- figures: written by npm run bench -- --record -->';
const end = '<!-- end of figures -->';

/** A page with other figures. @throws {Error} for a page that has no place for them */
export function withFigures(page: string, figures: string): string {
  const [before, rest] = page.split(`${begin}\n`);
  const after = rest?.split(`\n${end}`)[1];
  if (before === undefined || after === undefined) throw new Error(`no place for figures: ${begin} … ${end}`);
  return `${before}${begin}\n\n${figures}\n\n${end}${after}`;
}

/** Those that say most to somebody who chooses a system. */
const chosen: readonly GoalName[] = [
  ...(['edgeIdentity', 'nodeApiTime', 'nodeApiMemory', 'duckdb', 'postgres', 'postgresAgain'] as const),
  ...(['ingestNdjson', 'ingestCsv', 'ingestParquet'] as const),
];

function shortFigures(runs: RecordedRuns): string {
  const shown = verdictsOf(runs).filter(({ goal }) => chosen.includes(goal));
  return markdown(
    shown.map(({ goal, what, value }) => ({ what, measured: `${short(value)} ${goals[goal].unit}` })),
  );
}

function allFigures(runs: RecordedRuns): string {
  const rows = verdictsOf(runs).map(({ goal, what, wanted, value }) => {
    const { limit = '' }: Goal = goals[goal];
    return { what, goal: wanted, measured: short(value), 'what limits it': limit };
  });
  return [markdown(rows), ...runs.map(factsOf)].join('\n\n');
}

function factsOf({ scenarios, at, commit, options: { events, runs } }: Results): string {
  const names = scenarios.map(({ scenario }) => `\`${scenario}\``).join(', ');
  const often = runs === 1 ? 'one run' : `${runs} runs`;
  return `${names}: measured on ${at.slice(0, 10)} at commit ${commit}, ${events / 1e6} million events, ${often}.`;
}
