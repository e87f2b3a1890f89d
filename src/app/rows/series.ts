import { TextColumn } from '../arrow/columns.ts';
import type { Figure } from '../arrow/decimal.ts';
import { type Metric, partOf } from '../state/fields.ts';
import { drawnOf, periodsOf } from '../state/ranges.ts';
import type { Spans } from './protocol.ts';
import { type Columns, numbers, totals } from './sums.ts';

/** A point of the chart: a day, week or month, or the row that stands for itself. */
export interface Point {
  /** `yyyy-mm-dd` of its first and last day. */
  readonly start: string;
  readonly end: string;
  /** What the rows are of, where they are not of days. */
  readonly labels: readonly string[];
  /** Absent: nothing was counted on these days. */
  readonly now?: Figure;
  readonly before?: Figure;
}

/** The metric for each day, week or month that is drawn of a range; exact. */
export function overTime(
  rows: Columns,
  of: Uint32Array,
  metric: Metric,
  metrics: readonly Metric[],
  { range, each }: Spans,
): Point[] {
  const start = rows.columns.find(({ id }) => id === 'start_time');
  if (!(start instanceof TextColumn)) return [];
  const groups = grouped(of, (row) => start.codes[row]);
  const byStart = new Map(groups.map((group) => [start.text(group[0] ?? 0), group]));
  const drawn = drawnOf(range, start.dictionary.texts, each);
  const columns = [...numbers(rows)];
  /** Rows of a comparison have zeros for a period in which nothing was counted. */
  const isCounted = (group: readonly number[], part: 'now' | 'compared') => {
    const figures = columns.filter(([id]) => partOf(id).part === part).map(([, column]) => column);
    return group.some((row) => figures.some((column) => column.value(row) !== 0n));
  };
  const points = periodsOf(drawn, each).map((period) => {
    const group = byStart.get(period.start) ?? [];
    byStart.delete(period.start);
    if (group.length === 0) return { ...period, labels: [] };
    const { now, before } = figures(rows, Uint32Array.from(group), metric, metrics);
    return {
      ...period,
      labels: [],
      now: !before || isCounted(group, 'now') ? now : undefined,
      before: before && isCounted(group, 'compared') ? before : undefined,
    };
  });
  const [left] = byStart.keys();
  if (left !== undefined) throw new Error(`the chart has no place for ${left}`);
  return points;
}

/** The rows with the largest values. */
export function largest(
  rows: Columns,
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
  return toldApart(best.map((row) => named(rows, [row], metric, metrics)));
}

/** The largest gains and losses, from the one end to the other, of what has the same names on whatever days. */
export function changedMost(
  rows: Columns,
  of: Uint32Array,
  metric: Metric,
  metrics: readonly Metric[],
  most: number,
): Point[] {
  const names = namesOf(rows);
  const ranked = grouped(of, (row) => names.map(({ codes }) => codes[row]).join())
    .map((group) => named(rows, group, metric, metrics))
    .map((point) => ({ point, change: (point.now?.units ?? 0n) - (point.before?.units ?? 0n) }))
    .sort((one, other) => (one.change < other.change ? 1 : one.change > other.change ? -1 : 0));
  const losses = ranked.filter(({ change }) => change < 0n);
  const room = most - Math.min(losses.length, most / 2);
  const gains = ranked.filter(({ change }) => change > 0n).slice(0, room);
  return toldApart([...gains, ...losses.slice(gains.length - most)].map(({ point }) => point));
}

/** Rows of one key each, in the order of the first of them. */
function grouped(of: Uint32Array, keyOf: (row: number) => unknown): number[][] {
  const groups = new Map<unknown, number[]>();
  for (const row of of) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return [...groups.values()];
}

/** The columns that say what a row is, whatever its days. */
function namesOf({ columns }: Columns): TextColumn[] {
  return columns.filter((each) => each instanceof TextColumn).filter(({ id }) => !id.endsWith('_time'));
}

interface Named extends Point {
  readonly ids: readonly string[];
}

/** These rows together, by the names that they have. */
function named(rows: Columns, of: readonly number[], metric: Metric, metrics: readonly Metric[]): Named {
  const texts = namesOf(rows);
  const isId = ({ id }: TextColumn) => id.endsWith('_id');
  const textOf = (each: TextColumn) => each.text(of[0] ?? 0);
  return {
    start: '',
    end: '',
    labels: texts.filter((each) => !isId(each)).map(textOf),
    ids: texts.filter(isId).map(textOf),
    ...figures(rows, Uint32Array.from(of), metric, metrics),
  };
}

/** Those whose names are the same have their ids, too, and first: the end of a long label is not seen. */
function toldApart(points: readonly Named[]): Point[] {
  const nameOf = ({ labels }: Point) => labels.join('\n');
  const names = points.map(nameOf);
  return points.map(({ ids, ...point }) => {
    const isAlone = names.indexOf(nameOf(point)) === names.lastIndexOf(nameOf(point));
    return isAlone ? point : { ...point, labels: [...ids, ...point.labels] };
  });
}

function figures(rows: Columns, of: Uint32Array, metric: Metric, metrics: readonly Metric[]) {
  const needed = metrics.filter(
    ({ id }) => id === metric.id || id === metric.ratio?.numerator || id === metric.ratio?.denominator,
  );
  const sums = totals(rows, of, needed);
  return { now: sums.get(metric.id), before: sums.get(`${metric.id}_compared`) };
}
