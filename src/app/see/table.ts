import 'regular-table';
import type { RegularTableElement } from 'regular-table/dist/esm/regular-table';
import type { CellScalar, DataResponse } from 'regular-table/dist/esm/types';
import type { Rows } from '../rows/client.ts';
import type { Arranged, ColumnFacts } from '../rows/protocol.ts';
import { textFields } from '../state/fields.ts';
import { remember, remembered } from '../state/memory.ts';
import type { State } from '../state/state.ts';
import { text } from '../text.ts';
import { el, set } from '../view/dom.ts';
import { columnLabel } from '../view/labels.ts';

/** Height of a row in px, as style.css has it. */
const rowHeight = 32;
const headRows = 2;
const leastWidth = 76;
const mostWidth = 320;
const mostStretch = 1.6;

export interface TableChoices {
  onsort(column: string): void;
  onfilter(field: string, value: string): void;
}

/** The table of every row: only those in sight are elements, whatever their number. */
export class RowTable {
  readonly element: RegularTableElement = document.createElement('regular-table');
  private readonly rows: Rows;
  private readonly choices: TableChoices;
  private readonly heads = new Map<string, HTMLButtonElement>();
  private readonly names = new WeakMap<Element, string>();
  private columns: string[] = [];
  private kinds = new Map<string, ColumnFacts['kind']>();
  private count = 0;
  private totals: Arranged['totals'] = {};
  private state: State | undefined;
  private unconfirmed: readonly boolean[] = [];
  private firstRow = 0;
  private readonly ruler = document.createElement('canvas');
  private given: Record<number, number> = {};

  constructor(rows: Rows, choices: TableChoices) {
    this.rows = rows;
    this.choices = choices;
    set(this.element, 'tabindex', 0);
    set(this.element, 'role', 'region');
    set(this.element, 'aria-label', `${text.table.label}. ${text.table.keys}`);
    this.element.setDataListener((x0, y0, x1, y1) => this.data(x0, y0, x1, y1), { virtual_mode: 'both' });
    this.element.addStyleListener(() => this.dress());
    this.element.addEventListener('click', (event) => this.click(event));
    this.element.addEventListener('keydown', (event) => this.key(event));
    document.addEventListener('mouseup', () => this.keepWidths());
  }

  /** Shows these rows; while they arrive there are no totals. */
  async show(
    state: State,
    facts: { columns: readonly ColumnFacts[]; rows: number; totals?: Arranged['totals'] },
  ) {
    const columns = shownColumns(state, facts.columns);
    const changed = columns.join() !== this.columns.join();
    this.state = state;
    this.columns = columns;
    this.kinds = new Map(facts.columns.map(({ id, kind }) => [id, kind]));
    this.count = facts.rows;
    this.totals = facts.totals ?? {};
    for (const column of columns) this.head(column);
    this.given = this.widths(facts.columns);
    this.element.restoreColumnSizes(this.given);
    if (changed) this.element.scrollLeft = 0;
    await this.element.draw({ invalid_viewport: true });
  }

  /** Back to the first row: another order, or other rows. */
  toTop(): void {
    this.element.scrollTop = 0;
  }

  resetWidths(): void {
    remember('widths', {});
  }

  /** Wide enough for every cell, and for the whole width where there is room; then they stay, so that nothing jumps. */
  private widths(facts: readonly ColumnFacts[]): Record<number, number> {
    const own = remembered<Record<string, number>>('widths', {});
    const byId = new Map(facts.map((column) => [column.id, column]));
    const needed = this.columns.map((id) => {
      const label = this.measured(columnLabel(id, this.state?.grain)) + 16;
      const content = this.measured(byId.get(id)?.widest.slice(0, 60) ?? '');
      return Math.min(mostWidth, Math.max(leastWidth, Math.max(label, content) + 30));
    });
    const free = this.element.clientWidth / needed.reduce((sum, width) => sum + width, 1);
    const stretch = Math.min(mostStretch, Math.max(1, free));
    return Object.fromEntries(
      this.columns.map((id, n) => [n, own[id] ?? Math.floor((needed[n] ?? leastWidth) * stretch)]),
    );
  }

  /** How wide a text is in the table, in the weight of its totals. */
  private measured(text: string): number {
    const canvas = this.ruler.getContext('2d');
    if (!canvas) return text.length * 9;
    canvas.font = `600 14px ${getComputedStyle(this.element).fontFamily}`;
    return canvas.measureText(text).width;
  }

  /** Remembers the widths that the reader has drawn. */
  private keepWidths(): void {
    const drawn = Object.entries(this.element.saveColumnSizes()).filter(
      ([n, width]) => this.given[Number(n)] !== undefined && this.given[Number(n)] !== width,
    );
    if (drawn.length === 0) return;
    const own = remembered<Record<string, number>>('widths', {});
    for (const [n, width] of drawn) own[this.columns[Number(n)] ?? ''] = Math.round(width);
    remember('widths', own);
  }

  private head(column: string): HTMLButtonElement {
    const known = this.heads.get(column) ?? el('button', { type: 'button', class: 'head' });
    this.heads.set(column, known);
    known.dataset.column = column;
    known.textContent = columnLabel(column, this.state?.grain);
    const { sort } = this.state ?? {};
    set(known, 'data-sort', sort?.column === column ? (sort.descending ? 'down' : 'up') : undefined);
    return known;
  }

  private async data(x0: number, y0: number, x1: number, y1: number): Promise<DataResponse> {
    const shape = { num_rows: this.count, num_columns: this.columns.length, row_height: rowHeight };
    const columns = this.columns.slice(x0, x1);
    const slice =
      y1 > y0 && this.count > 0
        ? await this.rows.call('slice', { from: y0, to: y1, columns })
        : { cells: columns.map(() => []), unconfirmed: [] };
    this.unconfirmed = slice.unconfirmed;
    this.firstRow = y0;
    return {
      ...shape,
      num_column_headers: headRows,
      column_headers: columns.map((column) => [
        // The library takes elements, too; its types say only texts.
        this.head(column) as unknown as CellScalar,
        this.totalText(column),
      ]),
      merge_headers: 'row',
      data: slice.cells.map((cells) => [...cells]),
    };
  }

  private totalText(column: string): string {
    const total = this.totals[column]?.text;
    if (total !== undefined) return total;
    return column === this.columns[0] && Object.keys(this.totals).length > 0 ? text.table.total : '\u00a0';
  }

  /** What the library does not say: to screen readers, and to the style. */
  private dress(): void {
    const table = this.element.querySelector('table');
    if (!table) return;
    set(table, 'aria-label', text.table.label);
    set(table, 'aria-rowcount', this.count + headRows);
    set(table, 'aria-colcount', this.columns.length);
    for (const [n, row] of [...(table.tHead?.rows ?? [])].entries()) {
      set(row, 'aria-rowindex', n + 1);
      for (const cell of row.cells) {
        this.dressCell(cell);
        // Totals stand in the head to stay in sight, but they are cells, and some are empty.
        if (n > 0) set(cell, 'role', 'cell');
      }
    }
    for (const row of table.tBodies[0]?.rows ?? []) {
      const [first] = row.cells;
      const meta = first && this.element.getMeta(first);
      const y = meta && 'y' in meta ? (meta.y ?? 0) : 0;
      set(row, 'aria-rowindex', y + headRows + 1);
      for (const cell of row.cells) this.dressCell(cell);
      const open = this.unconfirmed[y - this.firstRow] ?? false;
      row.classList.toggle('open', open);
      if (first) set(first, 'title', open ? text.table.unconfirmed : undefined);
    }
  }

  private dressCell(cell: HTMLTableCellElement): void {
    const meta = this.element.getMeta(cell);
    const n = meta && 'x' in meta ? meta.x : undefined;
    const column = n === undefined ? undefined : this.columns[n];
    if (n === undefined || column === undefined) return;
    this.names.set(cell, column);
    set(cell, 'aria-colindex', n + 1);
    const kind = this.kinds.get(column);
    cell.classList.toggle('number', kind === 'number');
    cell.classList.toggle('text', kind === 'text');
    const content = cell.textContent ?? '';
    set(cell, 'title', kind === 'text' && content.length > 32 ? content : undefined);
    const sort = cell.querySelector('button.head')?.getAttribute('data-sort');
    set(cell, 'aria-sort', sort === 'up' ? 'ascending' : sort === 'down' ? 'descending' : undefined);
  }

  private click({ target }: Event): void {
    if (!(target instanceof HTMLElement)) return;
    const head = target.closest<HTMLElement>('button.head');
    if (head?.dataset.column) {
      this.choices.onsort(head.dataset.column);
      return;
    }
    const cell = target.closest('td.text');
    const column = cell && this.names.get(cell);
    if (
      !cell ||
      !column ||
      !this.state ||
      !textFields(this.state.family, this.state.dimensions).includes(column)
    ) {
      return;
    }
    this.choices.onfilter(column, cell.textContent ?? '');
  }

  private key(event: KeyboardEvent): void {
    const page = Math.max(rowHeight, this.element.clientHeight - (headRows + 2) * rowHeight);
    const moves: Record<string, () => void> = {
      ArrowDown: () => this.element.scrollBy(0, rowHeight),
      ArrowUp: () => this.element.scrollBy(0, -rowHeight),
      ArrowRight: () => this.element.scrollBy(80, 0),
      ArrowLeft: () => this.element.scrollBy(-80, 0),
      PageDown: () => this.element.scrollBy(0, page),
      PageUp: () => this.element.scrollBy(0, -page),
      Home: () => this.element.scrollTo(0, 0),
      End: () => this.element.scrollTo(0, this.element.scrollHeight),
    };
    const move = event.ctrlKey || event.metaKey || event.altKey ? undefined : moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  }
}

/** Days first, then what the row is of, then the figures in the order chosen. */
export function shownColumns(state: State, facts: readonly ColumnFacts[]): string[] {
  const days =
    state.grain === 'total' ? [] : state.grain === 'day' ? ['start_time'] : ['start_time', 'end_time'];
  const figures = state.metrics.flatMap((metric) => [metric, `${metric}_compared`, `${metric}_change`]);
  const there = new Set(facts.map(({ id }) => id));
  return [...days, ...textFields(state.family, state.dimensions), ...figures].filter((id) => there.has(id));
}
