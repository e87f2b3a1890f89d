import type { ArrowRows } from '../arrow/arrow.ts';
import { type Column, NumberColumn, TextColumn } from '../arrow/columns.ts';
import { type Metric, metricsOf } from '../state/fields.ts';
import { type Arrangement, arrange } from './arrange.ts';
import { decimalText, percentChange } from './decimal.ts';
import { Figures } from './figures.ts';
import type { Arranged, ChartPoint, ColumnFacts, Facts, Methods, Slice, Total } from './protocol.ts';
import { largest, overTime, type Point } from './series.ts';
import { type Figure, totals } from './sums.ts';

/** The rows of a report, and how the page wants to see them. */
export class Report {
  readonly rows: ArrowRows;
  private readonly facts: Facts;
  private readonly metrics: readonly Metric[];
  private readonly figures: Figures;
  private readonly locale: string;
  private order: Uint32Array | undefined;
  private digits = new Map<string, number>();
  private shownTotals = new Map<string, Figure>();

  constructor(rows: ArrowRows, facts: Facts, family: string, locale: string) {
    this.rows = rows;
    this.facts = facts;
    this.locale = locale;
    this.metrics = metricsOf(family);
    this.figures = new Figures(locale, this.metrics);
  }

  /** Only of rows that have all arrived: totals of some would look like those of all. */
  arrange(arrangement: Arrangement): Arranged {
    this.order = arrange(this.rows, arrangement, this.locale);
    this.shownTotals = totals(this.rows, this.order, this.metrics);
    this.measure();
    return {
      rows: this.order.length,
      columns: this.columns(),
      totals: Object.fromEntries([...this.shownTotals].map(([id, figure]) => [id, this.total(id, figure)])),
    };
  }

  /** Every column and how wide it gets, as far as rows have come. */
  columns(): ColumnFacts[] {
    return this.rows.columns.map((column) => ({
      id: column.id,
      kind: column instanceof TextColumn ? 'text' : 'number',
      widest: this.widest(column),
    }));
  }

  slice({ from, to, columns }: { from: number; to: number; columns: readonly string[] }): Slice {
    const last = Math.min(to, this.order?.length ?? this.rows.rows);
    const rows = Array.from(
      { length: Math.max(0, last - from) },
      (_, n) => this.order?.[from + n] ?? from + n,
    );
    const byId = new Map(this.rows.columns.map((column) => [column.id, column]));
    return {
      cells: columns.map((id) => rows.map((row) => this.cell(byId.get(id), row))),
      unconfirmed: rows.map((row) => this.isUnconfirmed(byId, row)),
    };
  }

  chart({ metric, periods, most }: Parameters<Methods['chart']>[0]): ChartPoint[] {
    const wanted = this.metrics.find(({ id }) => id === metric);
    const of = this.order ?? new Uint32Array(0);
    if (!wanted) return [];
    const points = periods
      ? overTime(this.rows, of, wanted, this.metrics, periods)
      : largest(this.rows, of, wanted, this.metrics, most);
    return points.map((point) => this.point(metric, point));
  }

  /** Texts of a column that have this in them, in the order of the alphabet. */
  values({ column, find, most }: { column: string; find: string; most: number }): string[] {
    const found = this.rows.columns.find(({ id }) => id === column);
    if (!(found instanceof TextColumn)) return [];
    const wanted = find.trim().toLocaleLowerCase(this.locale);
    const collator = new Intl.Collator(this.locale, { numeric: true });
    return found.dictionary.texts
      .filter((text) => text.toLocaleLowerCase(this.locale).includes(wanted))
      .sort(collator.compare)
      .slice(0, most);
  }

  private cell(column: Column | undefined, row: number): string {
    if (column instanceof TextColumn) return column.text(row);
    if (!(column instanceof NumberColumn)) return '';
    const figure = { units: column.value(row), scale: column.scale };
    return this.figures.text(column.id, figure, this.digits.get(column.id));
  }

  private isUnconfirmed(columns: ReadonlyMap<string, Column>, row: number): boolean {
    const [start, end] = [columns.get('start_time'), columns.get('end_time')];
    if (!(start instanceof TextColumn && end instanceof TextColumn)) return false;
    return this.facts.unconfirmed.some(([first, last]) => start.text(row) <= last && end.text(row) >= first);
  }

  /** Digits behind the point, alike within a column, so that its points stand in line. */
  private measure(): void {
    this.digits = new Map();
    for (const column of this.rows.columns) {
      if (!(column instanceof NumberColumn) || column.scale === 0) continue;
      const shared = sharedZeros(column, this.rows.rows, this.shownTotals.get(column.id)?.units ?? 0n);
      const isShare = this.metrics.some(({ id, money }) => column.id.startsWith(id) && !money);
      const used = column.scale - shared - (isShare ? 2 : 0);
      this.digits.set(column.id, Math.max(isShare ? 0 : 2, used));
    }
  }

  private widest(column: Column): string {
    if (column instanceof TextColumn) {
      return column.dictionary.texts.reduce((most, text) => (text.length > most.length ? text : most), '');
    }
    if (!(column instanceof NumberColumn)) return '';
    const digits = this.digits.get(column.id) ?? column.scale;
    // A total can be shorter than a value: corrections are negative, and ratios have no sum. While rows arrive, a guess.
    const total = this.shownTotals.get(column.id)?.units ?? 10n ** 9n;
    return [total, ...column.extent(this.rows.rows)]
      .map((units) => this.figures.text(column.id, { units, scale: column.scale }, digits))
      .reduce((most, text) => (text.length > most.length ? text : most), '');
  }

  private total(id: string, figure: Figure): Total {
    const then = this.shownTotals.get(`${id}_compared`);
    const percent = then && percentChange(figure.units, then.units);
    return {
      text: this.figures.text(id, figure, this.digits.get(id)),
      short: this.figures.short(id, figure),
      compact: this.figures.compact(id, figure),
      exact: decimalText(figure.units, figure.scale),
      ...(percent !== undefined && { percent }),
    };
  }

  private point(metric: string, { start, end, label, now, before }: Point): ChartPoint {
    return {
      start,
      end,
      label,
      ...(now && {
        value: Number(decimalText(now.units, now.scale)),
        text: this.figures.text(metric, now, this.digits.get(metric)),
      }),
      ...(before && {
        before: Number(decimalText(before.units, before.scale)),
        beforeText: this.figures.text(metric, before, this.digits.get(metric)),
      }),
    };
  }
}

/** How many zeros every value of the column ends with, of those behind the point. */
function sharedZeros(column: NumberColumn, rows: number, total: bigint): number {
  let zeros = column.scale;
  let unit = 10 ** zeros;
  const narrow = (value: bigint) => {
    while (zeros > 0 && value % BigInt(unit) !== 0n) unit = 10 ** --zeros;
  };
  narrow(total);
  for (let row = 0; row < rows && zeros > 0; row++) narrow(column.value(row));
  return zeros;
}
