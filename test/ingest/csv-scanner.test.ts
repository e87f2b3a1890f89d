import { expect, test } from 'vitest';
import { scanOrdinary } from '../../ingest/chunks/csv/ordinary.ts';
import { maxQuotedBytes, scanRecords } from '../../ingest/chunks/csv/records.ts';
import { testSeed as seed, seededRandom } from '../support/random.ts';

const comma = 44;
const options = { delimiter: comma, maxQuotedBytes };
const looked = { onRecord: () => {} };

test(`both scanners find the same ends in any bytes (seed ${seed})`, () => {
  const next = seededRandom(seed);
  const below = (max: number) => Math.floor(next() * max);
  const pick = (parts: readonly string[]) => parts[below(parts.length)] ?? '';
  const odd = [
    '"',
    '"',
    ',',
    '\n',
    'a',
    ' ',
    '\r',
    '""',
    '",',
    '"\n',
    ',"',
    '\n"',
    'text',
    ';',
    '\t',
    '\n\n',
    '\r\n',
  ];
  const inQuotes = ['a', ',', '\n', '""', 'text', '\r\n', ' '];
  const many = (most: number, make: () => string) => Array.from({ length: below(most + 1) }, make);
  const cell = () => (next() < 0.5 ? 'x'.repeat(below(20)) : `"${many(6, () => pick(inQuotes)).join('')}"`);
  const line = () => [cell(), ...many(4, cell)].join(',') + pick(['\n', '\n', '\n', '\r\n', '\n\n']);
  let ordinary = 0;
  let plain = 0;
  for (let round = 0; round < 20_000; round++) {
    const text = next() < 0.5 ? many(60, () => pick(odd)) : many(20, line);
    const buffer = Buffer.from(text.join(''));
    const start = next() < 0.7 ? 0 : below(buffer.length);
    const limit = next() < 0.7 ? buffer.length : start + below(buffer.length - start + 1);
    const scan = {
      delimiter: pick([',', ',', ',', ';', '\t', ' ']).charCodeAt(0),
      final: limit === buffer.length && next() < 0.5,
    };
    expect
      .soft(scanRecords(buffer, start, limit, scan), JSON.stringify([text.join(''), start, limit, scan]))
      .toMatchObject({
        ...scanRecords(buffer, start, limit, { ...scan, ...looked }),
        plainCells: expect.any(Boolean),
      });
    const found = scanOrdinary(buffer, start, limit, { ...options, delimiter: scan.delimiter });
    if (found) ordinary++;
    if (!found?.plainCells) continue;
    plain++;
    const records: string[] = [];
    const onRecord = (from: number, to: number) => records.push(buffer.toString('latin1', from, to));
    scanRecords(buffer, start, limit, { ...scan, onRecord });
    const cells = records.flatMap((record) => record.split(String.fromCharCode(scan.delimiter)));
    expect.soft(cells.filter((cell) => !/^("[^"]*"|[^"]*)$/.test(cell))).toEqual([]);
  }
  // All are looked at.
  expect(ordinary).toBeGreaterThan(5_000);
  expect(ordinary).toBeLessThan(15_000);
  expect(plain).toBeGreaterThan(1_500);
});

test.each([-100, -2, -1, 0, 1, 2, 100])(
  'a quoted cell that ends %i bytes from the longest there may be is a cell, or its quote is none',
  (more) => {
    // Its begin and its end are anywhere in the 64 bytes that are looked at together.
    for (const before of ['', 'a,', `${'a'.repeat(62)},`, `${'a\n'.repeat(500_000)}b,`]) {
      const text = `${before}"${'x'.repeat(maxQuotedBytes + more - 1)}\n",c\nd\n`;
      const buffer = Buffer.from(text);
      for (const final of [true, false]) {
        const scan = { delimiter: comma, final };
        expect(scanRecords(buffer, 0, buffer.length, scan)).toMatchObject(
          scanRecords(buffer, 0, buffer.length, { ...scan, ...looked }),
        );
      }
    }
  },
);

test('what spreadsheets and databases write is ordinary, and what nobody should write is not', () => {
  const isOrdinary = (text: string) => {
    const buffer = Buffer.from(text);
    return scanOrdinary(buffer, 0, buffer.length, options) !== undefined;
  };
  expect(['a,b\n', '"a","b"\r\n', '"a,""b""\n",c\n', '\n\na\n', '"","",\n', '"a'].map(isOrdinary)).toEqual(
    Array(6).fill(true),
  );
  expect(['a "b"\n', ' "a"\n', '"a"b"c"\n', '\ra\n', 'a"\n'].map(isOrdinary)).toEqual(Array(5).fill(false));
});

test('cells are plain where quotes are around whole cells without delimiters, quotes and line ends', () => {
  // Wherever it is in the 64 bytes that are looked at together.
  const arePlain = (text: string) => {
    const found = Array.from({ length: 130 }, (_, n) => {
      const buffer = Buffer.from(`${'x'.repeat(n)},${text}`);
      return scanOrdinary(buffer, 0, buffer.length, options)?.plainCells ?? false;
    });
    return found.every((each) => each === found[0]) ? found[0] : found;
  };
  const plain = ['a,b\n', '"a","b"\r\n"c",d\r\n', '"","",\n', '"a",1\n"b"', '"a","b"', '"a"\n\n"b"\n', '"a'];
  expect(plain.map(arePlain)).toEqual(plain.map(() => true));
  const others = [
    '"a,b"\n',
    '"a""b"\n',
    '"a\nb"\n',
    '"a" ,b\n',
    '"a"b\n',
    '"a"\rb\n',
    '"a"\r\r\n',
    'a "b"\n',
  ];
  expect(others.map(arePlain)).toEqual(others.map(() => false));
});
