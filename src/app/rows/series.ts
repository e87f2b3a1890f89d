import type { ArrowRows } from '../arrow/arrow.ts';
import { TextColumn } from '../arrow/columns.ts';
import type { Metric } from '../state/fields.ts';
import { type Figure, numbers, totals } from './sums.ts';

/** A point of the chart: a day, week or month, or the row that stands for itself. */
export interface Point {
  /** `yyyy-mm-dd` of its first and last day. */
  readonly start: string;
  readonly end: string;
  /** What the rows are of, where they are not of days. */
  readonly label: string;
  readonly now: Figure;
  readonly before?: Figure;
}

const none: Figure = { units: 0n, scale: 0 };

/** The metric for each day, week or month, ascending; exact. */
export function overTime(
  rows: ArrowRows,
  of: Uint32Array,
  metric: Metric,
  metrics: readonly Metric[],
): Point[] {
  const start = textColumn(rows, 'start_time');
  const end = textColumn(rows, 'end_time');
  if (!start || !end) return [];
  const groups = new Map<number, number[]>();
  for (const row of of) {
    const code = start.codes[row] ?? 0;
    const group = groups.get(code);
    if (group) group.push(row);
    else groups.set(code, [row]);
  }
  return [...groups.values()]
    .map((group) => ({
      start: start.text(group[0] ?? 0),
      end: end.text(group[0] ?? 0),
      label: '',
      ...figures(rows, Uint32Array.from(group), metric, metrics),
    }))
    .sort((a, b) => (a.start < b.start ? -1 : 1));
}

/** The rows with the largest values. */
export function largest(
  rows: ArrowRows,
  of: Uint32Array,
  metric: Metric,
  metrics: readonly Metric[],
  most: number,
): Point[] {
  const column = numbers(rows).get(metric.id);
  if (!column) return [];
  const best: number[] = [];
  for (const row of of) {
    const last = best.at(-1);
    if (best.length === most && last !== undefined && column.value(row) <= column.value(last)) continue;
    const at = best.findIndex((other) => column.value(other) < column.value(row));
    best.splice(at < 0 ? best.length : at, 0, row);
    if (best.length > most) best.pop();
  }
  const texts = rows.columns.filter(
    (each): each is TextColumn => each instanceof TextColumn && !/_(time|id)$/.test(each.id),
  );
  return best.map((row) => ({
    start: '',
    end: '',
    label: texts.map((each) => each.text(row)).join(' · '),
    ...figures(rows, Uint32Array.of(row), metric, metrics),
  }));
}

function figures(rows: ArrowRows, of: Uint32Array, metric: Metric, metrics: readonly Metric[]) {
  const needed = metrics.filter(
    ({ id }) => id === metric.id || id === metric.ratio?.numerator || id === metric.ratio?.denominator,
  );
  const sums = totals(rows, of, needed);
  const before = sums.get(`${metric.id}_compared`);
  return { now: sums.get(metric.id) ?? none, ...(before && { before }) };
}

function textColumn(rows: ArrowRows, id: string): TextColumn | undefined {
  const column = rows.columns.find((each) => each.id === id);
  return column instanceof TextColumn ? column : undefined;
}
