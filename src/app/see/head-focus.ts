import type { RegularTableElement } from 'regular-table/dist/esm/regular-table';
import { scrollToColumn, type TableSize } from './cell-focus.ts';

/** A head that sorts by its column, and the number of the column of the table that it stands above. */
export interface Head {
  readonly button: HTMLButtonElement;
  readonly column: number;
}

/** Where the keyboard is in the heads: Tab goes from one to the next, also to those that are not drawn yet. */
export class HeadFocus {
  private at: HTMLButtonElement | undefined;
  /** Steps whose columns are not drawn yet. */
  private moving = 0;
  private readonly table: RegularTableElement;
  private readonly size: () => TableSize;
  private readonly heads: () => readonly Head[];

  /** @param heads in their order */
  constructor(table: RegularTableElement, size: () => TableSize, heads: () => readonly Head[]) {
    this.table = table;
    this.size = size;
    this.heads = heads;
    const headOf = ({ target }: Event) =>
      target instanceof Element ? (target.closest<HTMLButtonElement>('button.head') ?? undefined) : undefined;
    // While a head is drawn anew nothing has the focus: only something else that gets it ends the place.
    document.addEventListener('keydown', (event) => this.key(event));
    document.addEventListener('focusin', (event) => {
      this.at = headOf(event);
    });
    document.addEventListener('pointerdown', (event) => {
      if (headOf(event) !== this.at) this.at = undefined;
    });
  }

  /** To be called when other columns are drawn: their heads are other elements, or the same in another place. */
  drawn(): void {
    const { at } = this;
    if (!at) return;
    if (!at.isConnected && this.moving > 0) return;
    // Out of sight the place is lost, as that of a reader who scrolls on.
    const next = at.isConnected ? at : this.table;
    if (document.activeElement !== next) next.focus({ preventScroll: true });
  }

  private key(event: KeyboardEvent): void {
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
    if (key !== 'Tab' || ctrlKey || metaKey || altKey || !this.at) return;
    // Hidden or gone, its heads can have no focus.
    if (!this.table.checkVisibility()) return;
    const heads = this.heads();
    const here = heads.findIndex(({ button }) => button === this.at);
    const next = heads[here + (shiftKey ? -1 : 1)];
    if (here < 0 || !next) {
      // Tab leaves the heads: a drawing that comes late does not bring it back.
      this.at = undefined;
      return;
    }
    event.preventDefault();
    this.at = next.button;
    void this.go(next);
  }

  private async go({ column }: Head): Promise<void> {
    this.moving++;
    try {
      scrollToColumn(this.table, this.size(), column);
      this.drawn();
      // The browser says that it has scrolled with the next frame.
      await new Promise(requestAnimationFrame);
      await this.table.flush();
    } finally {
      this.moving--;
    }
    this.drawn();
  }
}
