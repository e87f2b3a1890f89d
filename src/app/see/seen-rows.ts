import type { Slice } from '../rows/protocol.ts';

/** Rows that are remembered: some screens of them. */
const most = 500;

interface SeenRow {
  /** Which row of the report it is, whatever the order of the rows is meanwhile. */
  readonly row: number;
  /** Whether its money may still change. */
  readonly open: boolean;
  /** By column: every digit. */
  readonly whole: ReadonlyMap<string, string>;
}

/** What there is to say of rows in sight beside their cells; the next draw may have asked for others before one is done. */
export class SeenRows {
  private readonly rows = new Map<number, SeenRow>();

  clear(): void {
    this.rows.clear();
  }

  add({ rows, whole, unconfirmed }: Slice, columns: readonly string[], from: number): void {
    for (const [n, row] of rows.entries()) {
      const open = unconfirmed[n] ?? false;
      const known = this.rows.get(from + n)?.whole ?? [];
      const texts = columns.map((id, column) => [id, whole[column]?.[n] ?? ''] as const);
      this.rows.delete(from + n);
      this.rows.set(from + n, { row, open, whole: new Map([...known, ...texts]) });
    }
    for (const row of this.rows.keys()) {
      if (this.rows.size <= most) return;
      this.rows.delete(row);
    }
  }

  get(row: number): SeenRow | undefined {
    return this.rows.get(row);
  }
}
