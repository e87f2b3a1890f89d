import type { ArrowRows } from '../arrow/arrow.ts';
import { NumberColumn } from '../arrow/columns.ts';
import { type Figure, places, ratio } from '../arrow/decimal.ts';
import { type Metric, partOf } from '../state/fields.ts';

export type Columns = Pick<ArrowRows, 'columns'>;

/** The columns of numbers by id. */
export function numbers(rows: Columns): Map<string, NumberColumn> {
  return new Map(
    rows.columns.filter((column) => column instanceof NumberColumn).map((column) => [column.id, column]),
  );
}

/**
 * What these rows come to, exact: the figures of their sums, ratios computed from the sums, for each column of numbers.
 * @param metrics those wanted, and those that their ratios are made of
 */
export function totals(rows: Columns, of: Uint32Array, metrics: readonly Metric[]): Map<string, Figure> {
  const wanted = new Set(metrics.map(({ id }) => id));
  const columns = numbers(rows);
  const ratios = new Map(metrics.flatMap(({ id, ratio }) => (ratio ? [[id, ratio] as const] : [])));
  const sums = new Map<string, Figure>();
  for (const [id, column] of columns) {
    const { metric } = partOf(id);
    if (wanted.has(metric) && !ratios.has(metric))
      sums.set(id, { units: column.sum(of), scale: column.scale });
  }
  const compared = (id: string, then: boolean) => sums.get(then ? `${id}_compared` : id);
  for (const [id, { numerator, denominator, times }] of ratios) {
    const figure = (then: boolean): Figure | undefined => {
      const above = compared(numerator, then);
      const below = compared(denominator, then);
      if (!above || !below) return undefined;
      return { units: ratio(above.units, above.scale, below.units, times), scale: places };
    };
    const [now, then] = [figure(false), figure(true)];
    if (now) sums.set(id, now);
    if (then) sums.set(`${id}_compared`, then);
    if (now && then) sums.set(`${id}_change`, { units: now.units - then.units, scale: places });
  }
  return sums;
}
