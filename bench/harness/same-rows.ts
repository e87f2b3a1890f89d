import assert from 'node:assert/strict';
import { catalog } from '../../catalog/catalog.ts';

type Row = Record<string, unknown>;

/** The rows of an answer with the envelope of the contract. */
export function rowsOf(answer: string): Row[] {
  return JSON.parse(answer).result.rows;
}

/** The unconfirmed days of such an answer. */
export function datesOf(answer: string): string[] {
  return JSON.parse(answer).result.unconfirmed_revenue_dates;
}

/** The rows of an answer with a JSON object on each line. */
export function linesOf(answer: string): Row[] {
  return answer
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/**
 * Compares every row, in order, column by column; called before anything is timed, because a fast wrong answer is
 * worthless. Ratios may differ by one in the sixth place: some sides divide binary fractions before they round.
 * @throws an AssertionError that shows the first different row
 */
export function assertSameRows(ours: readonly Row[], theirs: readonly Row[], what: string): void {
  assert.equal(theirs.length, ours.length, `${what}: number of rows`);
  for (const [n, row] of ours.entries()) {
    const other = theirs[n] ?? {};
    const columns = Object.keys(row);
    const same = columns.every((name) => row[name] === other[name] || almostEqual(row, other, name));
    if (!same || columns.length !== Object.keys(other).length)
      assert.deepEqual(other, row, `${what}: row ${n}`);
  }
}

const ratios = Object.values(catalog.families).flatMap((family) => Object.keys(family.ratios));

function almostEqual(row: Row, other: Row, name: string): boolean {
  return ratios.includes(name) && Math.abs(Number(row[name]) - Number(other[name])) < 1.5e-6;
}
