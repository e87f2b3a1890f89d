import { parse } from 'csv-parse/sync';
import { expect, test } from 'vitest';
import { scanRecords } from '../../ingest/chunks/csv-scan.ts';
import { plainlyQuotedCells } from '../../ingest/event/line-records.ts';
import { seededRandom } from '../support/random.ts';

test('cells that are plainly quoted are those that the library reads, of random records of seed 1', () => {
  const random = seededRandom(1);
  const alphabet = ['a', 'b', ',', ',', '"', '"', ' ', '\n', '""', '","', '\\'];
  const trimmed = (cells: readonly string[]) => cells.map((cell) => cell.replace(/^[ \t]+|[ \t]+$/g, ''));
  let plain = 0;
  for (let n = 0; n < 100_000; n++) {
    const pieces = Array.from({ length: 1 + Math.floor(random() * 9) }, () => {
      return alphabet[Math.floor(random() * alphabet.length)];
    });
    const record = pieces.join('').replace(/^\n+|\n+$/g, '');
    const line = Buffer.from(`${record}\n`);
    // As records are cut out of a file.
    if (scanRecords(line, 0, line.length).last !== record.length || record.trim() === '') continue;
    if (scanRecords(line, 0, line.length).records !== 1) continue;
    const cells = plainlyQuotedCells(record);
    if (!cells) continue;
    plain++;
    const options = { relax_column_count: true, relax_quotes: true, trim: true, skip_empty_lines: false };
    const [read = ['']] = parse(record, options) as string[][];
    expect(trimmed(cells), JSON.stringify(record)).toEqual(trimmed(read));
  }
  expect(plain).toBeGreaterThan(10_000);
});

test.each(['"a""b"', 'a"b"', '"a" ,b', ' "a",b', '"a', '"a"b,c', '\\"a"'])(
  '%s is left to the library',
  (record) => {
    expect(plainlyQuotedCells(record)).toBeUndefined();
  },
);
