import type { SendableChunk } from '../chunks/sendable-chunk.ts';
import { InputError } from '../input/input-error.ts';
import { describeRejected, type RejectedRow } from './rejected-rows.ts';

/** How many rejected rows a run puts up with, over all its files. */
export class RejectLimit {
  readonly #most: { readonly rows?: number; readonly percent?: number };
  #rows = 0;
  #rejected = 0;

  /** @param most a number of rows, or a share of all rows read so far; neither means no limit */
  constructor(most: { readonly rows?: number; readonly percent?: number }) {
    this.#most = most;
  }

  /** Counts a chunk's rows; returns false, and counts nothing, when its rejected rows, if it has any, exceed the limit. */
  admit(rows: number, rejected: number): boolean {
    const { rows: mostRows = Number.POSITIVE_INFINITY, percent = 100 } = this.#most;
    // The share can be above the limit while a chunk is taken back: good rows count nonetheless.
    const fits =
      rejected === 0 ||
      (this.#rejected + rejected <= mostRows &&
        (this.#rejected + rejected) * 100 <= percent * (this.#rows + rows));
    if (fits) {
      this.#rows += rows;
      this.#rejected += rejected;
    }
    return fits;
  }

  /** Takes a chunk's rows back, which are sent once more. */
  takeBack(rows: number, rejected: number): void {
    this.#rows -= rows;
    this.#rejected -= rejected;
  }

  /** What was counted so far. @returns what goes back to that */
  mark(): () => void {
    const [rows, rejected] = [this.#rows, this.#rejected];
    return () => {
      this.#rows = rows;
      this.#rejected = rejected;
    };
  }

  toString(): string {
    return this.#most.percent === undefined ? `${this.#most.rows}` : `${this.#most.percent}%`;
  }
}

/** What is thrown where a chunk has more rejected rows than the limit admits. @param rejects the first of them */
export function tooMany(
  file: string,
  { unit, firstLine }: Pick<SendableChunk, 'unit' | 'firstLine'>,
  rejects: readonly RejectedRow[],
  rejectedRows: number,
  limit: RejectLimit,
): InputError {
  const examples = rejects.map((row) => `  ${describeRejected(file, unit, row)}`);
  const more = rejectedRows > examples.length ? [`  … and ${rejectedRows - examples.length} more`] : [];
  return new InputError(
    [
      `${file}: more than ${limit} rows are faulty; nothing of the chunk from ${unit} ${firstLine} was loaded`,
      ...examples,
      ...more,
    ].join('\n'),
  );
}
