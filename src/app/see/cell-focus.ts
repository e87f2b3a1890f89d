import type { RegularTableElement } from 'regular-table/dist/esm/regular-table';
import { set } from '../parts/dom.ts';

/** A cell by the number of its row and of its column, from what a row is to its last figure. */
export interface CellPlace {
  readonly row: number;
  readonly column: number;
}

export interface TableSize {
  readonly rows: number;
  /** The width of each column, px, and how many of them stay in sight. */
  readonly widths: readonly number[];
  readonly staying: number;
  /** How many rows have room, with a part of the last one. */
  readonly inSight: number;
}

/** Where the keyboard is in the table: arrow keys go from cell to cell, and Enter does what a click on the cell does. */
export class CellFocus {
  private at: CellPlace | undefined;
  /** Steps whose rows are not drawn yet. */
  private moving = 0;
  private readonly table: RegularTableElement;
  private readonly size: () => TableSize;
  private readonly placeOf: (cell: HTMLTableCellElement) => CellPlace | undefined;

  constructor(
    table: RegularTableElement,
    size: () => TableSize,
    placeOf: (cell: HTMLTableCellElement) => CellPlace | undefined,
  ) {
    this.table = table;
    this.size = size;
    this.placeOf = placeOf;
    table.addEventListener('keydown', (event) => this.key(event));
    table.addEventListener('focusin', ({ target }) => {
      const cell = target instanceof Element && target.closest<HTMLTableCellElement>('tbody :is(td, th)');
      this.at = cell ? this.placeOf(cell) : undefined;
    });
    table.addEventListener('focusout', ({ target }) => {
      if (target instanceof Element && target.isConnected) this.at = undefined;
    });
  }

  /** To be called when other rows are drawn: the elements of cells stay where they are. */
  drawn(): void {
    const { at } = this;
    if (!at || this.moving > 0) return;
    const cells = this.table.querySelectorAll<HTMLTableCellElement>('tbody :is(td, th)');
    const cell = [...cells].find((each) => {
      const place = this.placeOf(each);
      return place?.row === at.row && place.column === at.column;
    });
    // Out of sight the place is lost, as that of a reader who scrolls on.
    const next = cell ?? this.table;
    if (cell) set(cell, 'tabindex', -1);
    if (document.activeElement !== next) next.focus({ preventScroll: true });
  }

  private key(event: KeyboardEvent): void {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || this.size().rows === 0) return;
    if (
      this.at &&
      this.moving === 0 &&
      target instanceof HTMLTableCellElement &&
      (key === 'Enter' || key === 'ContextMenu')
    ) {
      event.preventDefault();
      target.click();
      return;
    }
    const { rows, widths, inSight } = this.size();
    const first = Math.ceil(this.firstRow());
    const { row, column } = this.at ?? { row: first, column: 0 };
    const page = Math.max(1, Math.floor(inSight) - 1);
    // The first step shows where the keyboard is.
    const step = this.at ? 1 : 0;
    const moves: Record<string, CellPlace> = {
      ArrowDown: { row: row + step, column },
      ArrowUp: { row: row - step, column },
      ArrowRight: { row, column: column + step },
      ArrowLeft: { row, column: column - step },
      PageDown: { row: row + page, column },
      PageUp: { row: row - page, column },
      Home: { row: 0, column },
      End: { row: rows - 1, column },
    };
    const wanted = moves[key];
    if (!wanted) return;
    event.preventDefault();
    const within = (n: number, count: number) => Math.max(0, Math.min(count - 1, n));
    void this.go({ row: within(wanted.row, rows), column: within(wanted.column, widths.length) });
  }

  private async go(place: CellPlace): Promise<void> {
    const { inSight } = this.size();
    const first = this.firstRow();
    const top = Math.min(place.row, Math.max(first, place.row + 1 - inSight));
    if (top !== first) this.table.scrollTop = Math.ceil(top * this.rowHeight());
    scrollToColumn(this.table, this.size(), place.column);
    this.at = place;
    this.moving++;
    // The browser says that it has scrolled with the next frame.
    await new Promise(requestAnimationFrame);
    await this.table.flush();
    this.moving--;
    this.drawn();
  }

  /** The row at the top, with a part of one that is cut. */
  private firstRow(): number {
    return this.table.scrollTop / this.rowHeight();
  }

  /** How far the page scrolls for a row, px: less than it is high where all of them are higher than an element can be. */
  private rowHeight(): number {
    const { rows, inSight } = this.size();
    const { scrollHeight, clientHeight } = this.table;
    return Math.max(1, scrollHeight - clientHeight) / Math.max(1, rows - inSight);
  }
}

/** Brings a column into sight. */
export function scrollToColumn(
  table: RegularTableElement,
  { widths, staying }: TableSize,
  column: number,
): void {
  if (column < staying) return;
  const sum = (from: number, to: number) => widths.slice(from, to).reduce((all, width) => all + width, 0);
  const left = sum(staying, column);
  const room = table.clientWidth - sum(0, staying);
  const least = left + (widths[column] ?? 0) - room;
  table.scrollLeft = Math.min(left, Math.max(least, table.scrollLeft));
}
