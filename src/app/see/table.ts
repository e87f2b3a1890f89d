import 'regular-table';
import type { RegularTableElement } from 'regular-table/dist/esm/regular-table';
import type { CellScalar, DataResponse } from 'regular-table/dist/esm/types';
import { el, set } from '../parts/dom.ts';
import type { Rows } from '../rows/client.ts';
import type { Arranged, ColumnFacts } from '../rows/protocol.ts';
import { textFields } from '../state/fields.ts';
import { remember, remembered } from '../state/memory.ts';
import { columnsOf, type State } from '../state/state.ts';
import { columnLabel } from '../words/labels.ts';
import { text } from '../words/text.ts';
import { CellFocus, type CellPlace } from './cell-focus.ts';
import { columnWidths, leastWidth } from './column-widths.ts';
import { HeadFocus } from './head-focus.ts';
import { SeenRows } from './seen-rows.ts';

/** Height of a row in px, and of each line of one that has several, as style.css has them. */
const rowHeight = 32;
const lineHeight = 19;
const headRows = 2;
const sortSign = 16;

export interface TableChoices {
  onsort(column: string): void;
  onfilter(field: string, value: string): void;
  /** @param column of the figure */
  onexplain(row: number, column: string): void;
}

/** The table of every row: only those in sight are elements, whatever their number. */
export class RowTable {
  readonly element: RegularTableElement = document.createElement('regular-table');
  private readonly rows: Rows;
  private readonly choices: TableChoices;
  private readonly heads = new Map<string, HTMLButtonElement>();
  /** In their order: what a row is, which stays in sight, then its figures. */
  private columns: string[] = [];
  /** The columns in sight all the time, or where there is no room for them, one that has them below each other. */
  private names: string[][] = [];
  private kinds = new Map<string, ColumnFacts['kind']>();
  private facts: readonly ColumnFacts[] = [];
  private count = 0;
  private totals: Arranged['totals'] = {};
  private state: State | undefined;
  private readonly seen = new SeenRows();
  private readonly focus: CellFocus;
  private readonly headFocus: HeadFocus;
  private readonly ruler = document.createElement('canvas');
  private given: Record<number, number> = {};
  /** Whether a drawing has begun with what is to be shown now. */
  private isDrawn = false;
  /** Columns that are too narrow for some of their cells. */
  private narrow = new Set<string>();

  constructor(rows: Rows, choices: TableChoices) {
    this.rows = rows;
    this.choices = choices;
    set(this.element, 'tabindex', 0);
    set(this.element, 'role', 'region');
    set(this.element, 'aria-label', `${text.table.label}. ${text.table.keys}`);
    this.element.setDataListener((x0, y0, x1, y1) => this.data(x0, y0, x1, y1), {
      virtual_mode: 'both',
      // Cells are as narrow as their column, whatever is in them.
      column_classes: true,
    });
    this.element.addStyleListener(() => this.dress());
    this.element.addEventListener('click', (event) => this.click(event));
    const size = () => ({
      rows: this.count,
      widths: Object.values(this.given),
      staying: this.names.length,
      inSight: this.element.clientHeight / this.height() - headRows,
    });
    this.focus = new CellFocus(this.element, size, (cell) => this.placeOf(cell));
    this.headFocus = new HeadFocus(this.element, size, () =>
      [...this.names.flat(), ...this.figures()].map((id) => ({
        button: this.head(id),
        column: this.place(id),
      })),
    );
    document.addEventListener('mouseup', async () => {
      // One move may still be drawn, and a later one may wait for it.
      await this.element.flush();
      await this.element.flush();
      this.keepWidths();
    });
    let width = 0;
    new ResizeObserver(() => {
      if (width !== this.element.clientWidth && this.count > 0) void this.draw();
      width = this.element.clientWidth;
    }).observe(this.element);
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
    this.seen.clear();
    this.facts = facts.columns;
    for (const column of columns) this.head(column);
    if (changed) this.element.scrollLeft = 0;
    await this.draw();
  }

  private async draw(): Promise<void> {
    this.given = this.widths();
    const { offsetWidth, clientWidth, parentElement } = this.element;
    parentElement?.style.setProperty('--scrollbar', `${offsetWidth - clientWidth}px`);
    this.fitHeight();
    this.element.restoreColumnSizes(this.given);
    this.isDrawn = false;
    // The library drops a drawing that comes while a scroll waits for the one before.
    while (!this.isDrawn) await this.element.draw({ invalid_viewport: true });
  }

  /** As high as the rows: while they arrive, as if there were many, so that nothing jumps. */
  private fitHeight(): void {
    const isWhole = Object.keys(this.totals).length > 0;
    const height = (this.count + 1) * this.height() + rowHeight;
    const scrollbar = 20;
    const { style } = this.element.parentElement ?? this.element;
    if (isWhole) style.setProperty('--all-rows', `${height + scrollbar}px`);
    else style.removeProperty('--all-rows');
  }

  /** Back to the first row: another order, or other rows. */
  toTop(): void {
    this.element.scrollTop = 0;
  }

  resetWidths(): void {
    remember('widths', {});
  }

  private widths(): Record<number, number> {
    const padding = 2 * Number.parseFloat(getComputedStyle(this.element).getPropertyValue('--cell-padding'));
    const texts = new Map(this.facts.map(({ id, widest }) => [id, widest]));
    const columns = this.columns.map((id) => {
      const label = this.measured(columnLabel(id, this.state?.grain)) + sortSign;
      const content = this.measured(texts.get(id) ?? '');
      const needed = (width: number) => Math.max(leastWidth, Math.ceil(width) + padding + 1);
      return {
        id,
        isText: this.kinds.get(id) === 'text',
        head: needed(label),
        needed: needed(Math.max(label, content)),
      };
    });
    const room = this.element.clientWidth;
    const { names, widths } = columnWidths(columns, { room, padding, own: ownWidths() });
    this.names = names;
    this.narrow = new Set(
      columns.filter(({ id, needed }) => (widths[this.place(id)] ?? 0) < needed).map(({ id }) => id),
    );
    return Object.fromEntries(widths.entries());
  }

  /** Which column of the table has it. */
  private place(id: string): number {
    const name = this.names.findIndex((ids) => ids.includes(id));
    return name >= 0 ? name : this.figures().indexOf(id) + this.names.length;
  }

  private figures(): string[] {
    return this.columns.filter((id) => this.kinds.get(id) !== 'text');
  }

  private height(): number {
    const lines = Math.max(1, ...this.names.map(({ length }) => length));
    return lines === 1 ? rowHeight : lines * lineHeight + 12;
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
    const own = ownWidths();
    const keys = [...this.names.map((ids) => ids.join()), ...this.figures()];
    for (const [n, width] of drawn) own[keys[Number(n)] ?? ''] = Math.round(width);
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
    const figures = this.figures();
    const { names } = this;
    // Each drawing asks for the size first, and a scroll does not.
    if (x1 === 0 && y1 === 0) this.isDrawn = true;
    const shown = figures.slice(x0, x1);
    const columns = [...names.flat(), ...shown];
    const slice =
      y1 > y0 && this.count > 0
        ? await this.rows.call('slice', { from: y0, to: y1, columns })
        : { rows: [], cells: columns.map(() => []), whole: [], unconfirmed: [] };
    this.seen.add(slice, columns, y0);
    const cells = new Map(columns.map((id, n) => [id, slice.cells[n] ?? []]));
    const name = (ids: readonly string[], row: number) =>
      ids.length === 1 ? (cells.get(ids[0] ?? '')?.[row] ?? '') : this.lines(ids, cells, row);
    return {
      num_rows: this.count,
      num_columns: figures.length,
      row_height: this.height(),
      num_column_headers: headRows,
      num_row_headers: names.length,
      row_headers: slice.unconfirmed.map((_, row) =>
        // The library takes elements, too; its types say only texts.
        names.map((ids) => name(ids, row) as unknown as CellScalar),
      ),
      column_headers: shown.map((column) => [
        this.head(column) as unknown as CellScalar,
        this.totals[column]?.text ?? '\u00a0',
      ]),
      // Equal neighbours are cells of their own: each row says what it is.
      column_header_merge_depth: 0,
      merge_headers: 'column',
      data: shown.map((id) => [...(cells.get(id) ?? [])]),
    };
  }

  /** What a row is, in lines. */
  private lines(
    ids: readonly string[],
    cells: ReadonlyMap<string, readonly string[]>,
    row: number,
  ): HTMLElement {
    const line = (id: string) => {
      const content = cells.get(id)?.[row] ?? '';
      return el('span', { 'data-column': id, title: content || undefined }, content || '\u00a0');
    };
    return el('div', { class: 'lines' }, ...ids.map(line));
  }

  /** What the library does not say: to screen readers, and to the style. */
  private dress(): void {
    const table = this.element.querySelector('table');
    if (!table) return;
    set(table, 'role', 'grid');
    set(table, 'aria-label', text.table.label);
    set(table, 'aria-rowcount', this.count + headRows);
    set(table, 'aria-colcount', this.names.length + this.figures().length);
    for (const [n, row] of [...(table.tHead?.rows ?? [])].entries()) {
      set(row, 'aria-rowindex', n + 1);
      for (const cell of row.cells) {
        if (cell.classList.contains('rt-group-corner')) this.fillCorner(cell, n);
        this.dressCell(cell);
        // Totals stand in the head to stay in sight, but they are cells, and some are empty.
        if (n > 0) set(cell, 'role', 'gridcell');
      }
    }
    for (const row of table.tBodies[0]?.rows ?? []) {
      const [first] = row.cells;
      const meta = first && this.element.getMeta(first);
      const y = meta && 'y' in meta ? (meta.y ?? 0) : 0;
      set(row, 'aria-rowindex', y + headRows + 1);
      for (const cell of row.cells) this.dressCell(cell, y);
      const open = this.seen.get(y)?.open ?? false;
      row.classList.toggle('open', open);
      if (first && open)
        set(first, 'title', [first.title, text.table.unconfirmed].filter(Boolean).join('\n'));
    }
    this.focus.drawn();
    this.headFocus.drawn();
  }

  /** The library leaves the heads of what stays in sight empty. */
  private fillCorner(cell: HTMLTableCellElement, row: number): void {
    const [place] = cell.children;
    const n = this.columnOf(cell);
    if (!place || n === undefined) return;
    if (row > 0) {
      place.textContent = n === 0 && Object.keys(this.totals).length > 0 ? text.table.total : '\u00a0';
      return;
    }
    const heads = (this.names[n] ?? []).map((id) => this.head(id));
    if (place.children.length !== heads.length || heads.some((head, n) => place.children[n] !== head))
      place.replaceChildren(...heads);
  }

  /** The number of the cell's column, from what a row is to its last figure. */
  private columnOf(cell: Element): number | undefined {
    const meta = this.element.getMeta(cell as HTMLTableCellElement);
    if (!meta) return undefined;
    if ('row_header_x' in meta && meta.row_header_x !== undefined) return meta.row_header_x;
    return 'x' in meta && meta.x !== undefined ? meta.x + this.names.length : undefined;
  }

  private placeOf(cell: HTMLTableCellElement): CellPlace | undefined {
    const meta = this.element.getMeta(cell);
    const column = this.columnOf(cell);
    return meta && 'y' in meta && meta.y !== undefined && column !== undefined
      ? { row: meta.y, column }
      : undefined;
  }

  /** @param row absent: a head, or the totals */
  private dressCell(cell: HTMLTableCellElement, row?: number): void {
    const n = this.columnOf(cell);
    if (n === undefined) return;
    set(cell, 'aria-colindex', n + 1);
    const names = this.names[n];
    const column = names ? names.join() : this.figures()[n - this.names.length];
    cell.classList.toggle('number', !names);
    cell.classList.toggle('text', names !== undefined);
    const inBody = cell.closest('tbody') !== null;
    set(cell, 'scope', inBody && names ? 'row' : undefined);
    if (!cell.querySelector('button')) set(cell, 'title', this.hovered(cell, column ?? '', row));
    const sort = cell.querySelector('button.head[data-sort]')?.getAttribute('data-sort');
    set(cell, 'aria-sort', sort === 'up' ? 'ascending' : sort === 'down' ? 'descending' : undefined);
  }

  /** What a cell says on hover: every digit, and what there is no room for. */
  private hovered(cell: HTMLTableCellElement, column: string, row: number | undefined): string | undefined {
    const shown = cell.textContent ?? '';
    const whole = row === undefined ? this.totals[column]?.whole : this.seen.get(row)?.whole.get(column);
    const isMore = whole !== undefined && whole !== shown;
    return isMore ? whole : this.narrow.has(column) ? shown : undefined;
  }

  private click({ target }: Event): void {
    if (!(target instanceof HTMLElement)) return;
    const head = target.closest<HTMLElement>('button.head');
    if (head?.dataset.column) {
      this.choices.onsort(head.dataset.column);
      return;
    }
    const figure = target.closest<HTMLTableCellElement>('tbody td');
    const place = figure && this.placeOf(figure);
    if (place) {
      const row = this.seen.get(place.row)?.row;
      const column = this.figures()[place.column - this.names.length];
      if (row !== undefined && column) this.choices.onexplain(row, column);
      return;
    }
    const cell = target.closest('tbody th');
    if (!cell || !this.state) return;
    const fields = textFields(this.state.family, this.state.dimensions);
    const ids = this.names[this.columnOf(cell) ?? -1] ?? [];
    // The keyboard is on the cell, not on one of its lines: what comes first says most.
    const pointed = target.closest<HTMLElement>('[data-column]');
    const column = pointed?.dataset.column ?? ids.find((id) => fields.includes(id));
    if (!column || !fields.includes(column)) return;
    const line = pointed ?? cell.querySelector(`[data-column="${column}"]`);
    const content = (line ?? cell).textContent ?? '';
    this.choices.onfilter(column, content === '\u00a0' ? '' : content);
  }
}

/** As the reader has drawn them. */
const ownWidths = () => remembered<Record<string, number>>('widths', {});

/** Those of the table that are there. */
export function shownColumns(state: State, facts: readonly ColumnFacts[]): string[] {
  const there = new Set(facts.map(({ id }) => id));
  return columnsOf(state).filter((id) => there.has(id));
}
