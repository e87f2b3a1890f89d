import type { Environment } from '../harness/machine.ts';
import { ratio, spread } from '../harness/measure.ts';
import type { Outcome } from '../harness/scenario.ts';
import { type Verdict, verdicts } from './goals.ts';

export interface ScenarioResult {
  readonly scenario: string;
  readonly outcomes: readonly Outcome[];
  /** Peers and parts that did not run, and why. */
  readonly missing: readonly string[];
}

export interface Results extends Environment {
  readonly options: { readonly events: number; readonly seed: number; readonly runs: number };
  readonly goals: readonly Verdict[];
  readonly scenarios: readonly ScenarioResult[];
}

/** All results so far, with the verdict on each goal. */
export function collect(
  environment: Environment,
  options: Results['options'],
  scenarios: readonly ScenarioResult[],
): Results {
  const values = scenarios.flatMap(({ outcomes }) => outcomes.flatMap(({ goals }) => goals ?? []));
  return { ...environment, options, goals: verdicts(values), scenarios };
}

/** Three significant digits. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}

/** One row per side: its median and spread, and the ratio of adtally to it in the same runs. */
export function table({ outcomes }: ScenarioResult): Record<string, string>[] {
  return outcomes.flatMap(({ what, unit, sides, facts = {} }) =>
    sides.map(({ name, samples }, n) => {
      const { median, min, max } = spread(samples);
      const against = n > 0 ? ratio(sides[0]?.samples ?? [], samples) : undefined;
      return {
        what: n === 0 ? what : '',
        side: name,
        median: `${short(median)} ${unit}`,
        'min – max': `${short(min)} – ${short(max)}`,
        'adtally / side': against ? short(against.median) : '',
        also:
          n === 0
            ? Object.entries(facts)
                .map(([fact, value]) => `${fact} ${short(value)}`)
                .join(', ')
            : '',
      };
    }),
  );
}

export function goalTable(goals: readonly Verdict[]): Record<string, string>[] {
  return goals.map(({ what, wanted, value, met }) => ({
    what,
    goal: wanted,
    measured: short(value),
    verdict: met ? 'met' : 'missed',
  }));
}

/** Rows as aligned columns, for a terminal. */
export function aligned(rows: readonly Record<string, string>[]): string {
  const names = Object.keys(rows[0] ?? {});
  const all = [names, ...rows.map((row) => names.map((name) => row[name] ?? ''))];
  const widths = names.map((_, n) => Math.max(...all.map((cells) => cells[n]?.length ?? 0)));
  return all
    .map((cells) =>
      cells
        .map((cell, n) => cell.padEnd(widths[n] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Rows as a Markdown table. */
export function markdown(rows: readonly Record<string, string>[]): string {
  const names = Object.keys(rows[0] ?? {});
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    line(names),
    line(names.map(() => '---')),
    ...rows.map((row) => line(names.map((name) => row[name] ?? ''))),
  ].join('\n');
}
