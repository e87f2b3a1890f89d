import type { ArrowRows } from '../arrow/arrow.ts';
import { type Column, DayColumn, NumberColumn, TextColumn } from '../arrow/columns.ts';
import { decimalText, type Figure, percentChange } from '../arrow/decimal.ts';
import { idsOf, type Metric, metricsOf } from '../state/fields.ts';
import { dayText, locale } from '../words/locale.ts';
import { type Arrangement, arrange } from './arrange.ts';
import { Figures } from './figures.ts';
import type { Arranged, ChartPoint, ColumnFacts, Drawn, Facts, Methods, Slice, Total } from './protocol.ts';
import { changedMost, largest, overTime, type Point } from './series.ts';
import { totals } from './sums.ts';

/** The rows of a report, and how the page wants to see them. */
export class Report {
  readonly rows: ArrowRows;
  readonly facts: Facts;
  private readonly metrics: readonly Metric[];
  /** Of the cells, which stand below the code of their money. */
  private readonly figures: Figures;
  private readonly withCode: Figures;
  private order: Uint32Array | undefined;
  private shownTotals = new Map<string, Figure>();
  private readonly family: string;
  /** Columns that are not shown. */
  private hidden: ReadonlySet<string>;

  constructor(rows: ArrowRows, facts: Facts, family: string) {
    this.rows = rows;
    this.facts = facts;
    this.family = family;
    // Whether they are needed is known when all rows are there.
    this.hidden = new Set(idsOf(family).values());
    this.metrics = metricsOf(family);
    this.figures = new Figures(this.metrics, locale);
    this.withCode = new Figures(this.metrics, locale, facts.currency);
  }

  /** Only of rows that have all arrived: totals of some would look like those of all. */
  arrange(arrangement: Arrangement): Arranged {
    if (!this.order) this.hidden = this.needless();
    const shown = arrangement.shown.filter((id) => !this.hidden.has(id));
    this.order = arrange(this.rows, { ...arrangement, shown }, this.metrics);
    this.shownTotals = totals(this.rows, this.order, this.metrics);
    return {
      rows: this.order.length,
      ids: idsOf(this.family).size > this.hidden.size,
      columns: this.columns(),
      totals: Object.fromEntries([...this.shownTotals].map(([id, figure]) => [id, this.total(id, figure)])),
    };
  }

  /** Every column and how wide it gets, as far as rows have come. */
  columns(): ColumnFacts[] {
    return this.rows.columns
      .filter((column) => !this.hidden.has(column.id))
      .map((column) => ({
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
    const cells = columns.map((id) => rows.map((row) => this.cell(byId.get(id), row)));
    return {
      rows,
      cells: cells.map((column) => column.map(({ text }) => text)),
      whole: cells.map((column) => column.map(({ text, whole = text }) => whole)),
      unconfirmed: rows.map((row) => this.isUnconfirmed(byId, row)),
    };
  }

  texts(row: number): Record<string, string> {
    const columns = this.rows.columns.filter((column) => column instanceof TextColumn);
    return Object.fromEntries(columns.map((column) => [column.id, column.text(row)]));
  }

  chart({ metric, show, most }: Parameters<Methods['chart']>[0]): ChartPoint[] {
    const wanted = this.metrics.find(({ id }) => id === metric);
    const of = this.order ?? new Uint32Array(0);
    if (!wanted) return [];
    const columns = this.rows.columns.filter(({ id }) => !this.hidden.has(id));
    const asked = [{ columns }, of, wanted, this.metrics] as const;
    if (show === 'changes') return changedMost(...asked, most).map((point) => this.changed(metric, point));
    const points = show === 'largest' ? largest(...asked, most) : overTime(...asked, show);
    return points.map((point) => this.point(metric, point));
  }

  /** Texts of a column that have this in them, in the order of the alphabet. */
  values({ column, find, most }: { column: string; find: string; most: number }): string[] {
    const found = this.rows.columns.find(({ id }) => id === column);
    if (!(found instanceof TextColumn)) return [];
    const wanted = find.trim().toLocaleLowerCase(locale);
    const collator = new Intl.Collator(locale, { numeric: true });
    return found.dictionary.texts
      .filter((text) => text.toLocaleLowerCase(locale).includes(wanted))
      .sort(collator.compare)
      .slice(0, most);
  }

  /** The ids that tell nothing more than the names before them: no two rows have one name and two ids. */
  private needless(): Set<string> {
    const byId = new Map(this.rows.columns.map((column) => [column.id, column]));
    const isNeedless = ([name, id]: [string, string]) => {
      const [names, ids] = [byId.get(name), byId.get(id)];
      if (!(names instanceof TextColumn && ids instanceof TextColumn)) return true;
      const known = new Map<number, number>();
      for (let row = 0; row < this.rows.rows; row++) {
        const [name, id] = [names.codes[row] ?? 0, ids.codes[row] ?? 0];
        if ((known.get(name) ?? id) !== id) return false;
        known.set(name, id);
      }
      return true;
    };
    return new Set([...idsOf(this.family)].filter(isNeedless).map(([, id]) => id));
  }

  private cell(column: Column | undefined, row: number): { text: string; whole?: string } {
    if (column instanceof DayColumn) return { text: dayText(column.text(row)) };
    if (column instanceof TextColumn) return { text: column.text(row) };
    if (!(column instanceof NumberColumn)) return { text: '' };
    return said(this.figures, column.id, { units: column.value(row), scale: column.scale });
  }

  private isUnconfirmed(columns: ReadonlyMap<string, Column>, row: number): boolean {
    const [start, end] = [columns.get('start_time'), columns.get('end_time')];
    if (!(start instanceof TextColumn && end instanceof TextColumn)) return false;
    return this.facts.unconfirmed.some(([first, last]) => start.text(row) <= last && end.text(row) >= first);
  }

  private widest(column: Column): string {
    if (column instanceof TextColumn) {
      const { texts } = column.dictionary;
      return longest(column instanceof DayColumn ? texts.map(dayText) : texts);
    }
    if (!(column instanceof NumberColumn)) return '';
    // A total can be shorter than a value: corrections are negative, and ratios have no sum. While rows arrive, a guess.
    const total = this.shownTotals.get(column.id)?.units ?? 10n ** 9n;
    const [least, most] = column.extent(this.rows.rows);
    const { id, scale } = column;
    // The smallest have the most digits.
    const cells = [least, most, least < 0n ? -1n : 1n].map((units) =>
      this.figures.short(id, { units, scale }),
    );
    return longest([this.withCode.short(id, { units: total, scale }), ...cells]);
  }

  private total(id: string, figure: Figure): Total {
    const then = this.figures.isShare(id) ? undefined : this.shownTotals.get(`${id}_compared`);
    return {
      ...said(this.withCode, id, figure),
      compact: this.withCode.compact(id, figure),
      exact: decimalText(figure.units, figure.scale),
      percent: then && percentChange(figure.units, then.units),
    };
  }

  private drawn(metric: string, figure: Figure): Drawn {
    return { value: Number(decimalText(figure.units, figure.scale)), ...said(this.withCode, metric, figure) };
  }

  private changed(metric: string, point: Point): ChartPoint {
    const { now, before } = point;
    const drawn = this.point(metric, point);
    if (!now || !before) return drawn;
    const change = this.drawn(`${metric}_change`, { units: now.units - before.units, scale: now.scale });
    const percent = this.figures.isShare(metric) ? undefined : percentChange(now.units, before.units);
    return { ...drawn, change: { ...change, percent } };
  }

  private point(metric: string, { now, before, ...point }: Point): ChartPoint {
    return {
      ...point,
      now: now && this.drawn(metric, now),
      before: before && this.drawn(metric, before),
    };
  }
}

function said(figures: Figures, column: string, figure: Figure): { text: string; whole: string } {
  return { text: figures.short(column, figure), whole: figures.whole(column, figure) };
}

const longest = (texts: readonly string[]): string =>
  texts.reduce((most, text) => (text.length > most.length ? text : most), '');
