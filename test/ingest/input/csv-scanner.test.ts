import { expect, test } from 'vitest';
import { maxQuotedBytes, scanRecords } from '../../../ingest/chunks/csv/records.ts';
import { framedRecords } from '../../../ingest/chunks/framed-records.ts';
import { testSeed as seed, seededRandom } from '../../support/random.ts';

const comma = 44;

test(`cells that are said to be plain are what is between delimiters, in any bytes (seed ${seed})`, () => {
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
    if (!scanRecords(buffer, start, limit, scan).plainCells) continue;
    plain++;
    const records: string[] = [];
    const onRecord = (from: number, to: number) => records.push(buffer.toString('latin1', from, to));
    scanRecords(buffer, start, limit, { ...scan, onRecord });
    const cells = records.flatMap((record) => record.split(String.fromCharCode(scan.delimiter)));
    expect.soft(cells.filter((cell) => !/^("[^"]*"|[^"]*)$/.test(cell))).toEqual([]);
  }
  // All are looked at.
  expect(plain).toBeGreaterThan(1_500);
});

test.each([-1, 0])(
  'a quoted cell of %i bytes more than the longest there may be is a cell, or its quote is text',
  (more) => {
    for (const before of ['', 'a,', `${'a\n'.repeat(500_000)}b,`]) {
      const text = `${before}"${'x'.repeat(maxQuotedBytes + more - 1)}\n",c\nd\n`;
      const buffer = Buffer.from(text);
      const { lines, multiLine } = scanRecords(buffer, 0, buffer.length, { delimiter: comma, final: true });
      expect({ lines, multiLine }).toEqual({ lines: text.split('\n').length - 1, multiLine: more < 0 });
    }
  },
);

test('cells are plain where quotes are around whole cells without delimiters, quotes and line ends', () => {
  const arePlain = (text: string) => {
    const buffer = Buffer.from(`x,${text}`);
    return scanRecords(buffer, 0, buffer.length, { delimiter: comma, final: false }).plainCells;
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

/** Lines and lengths of records, in the order in which a statement gets them. */
function* framesOf(pieces: Iterable<Buffer>): Generator<string> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const line = piece.readBigUInt64LE(at);
      at += 8;
      let length = 0;
      for (let bits = 0, byte = 128; byte > 127; bits += 7) {
        byte = piece[at++] ?? 0;
        length += (byte & 127) << bits;
      }
      yield `${line} ${length} ${piece.toString('latin1', at, at + Math.min(length, 9))}`;
      at += length;
    }
  }
}

test(`a chunk has the same records however much of it is looked at at a time (seed ${seed})`, () => {
  const next = seededRandom(seed);
  const cell = () => {
    const [length, kind] = [Math.floor(next() ** 6 * maxQuotedBytes * 1.1), next()];
    if (kind < 0.1) return `"${'x'.repeat(length)}`;
    return kind < 0.5 ? 'x'.repeat(length % 9) : `"${`${'a'.repeat(999)}\n`.repeat(length / 1000)}""\r\n"`;
  };
  const line = () => `${cell()},${cell()},${cell()}${next() < 0.9 ? '\n' : '\r\n\n'}`;
  const body = Buffer.from(`${Array.from({ length: 40 }, line).join('')}a,b`);
  expect(body.length).toBeGreaterThan(2 * maxQuotedBytes);
  const expected: string[] = [];
  const onRecord = (from: number, end: number, before: number) =>
    void expected.push(`${before} ${end - from} ${body.toString('latin1', from, Math.min(end, from + 9))}`);
  const { last, lines } = scanRecords(body, 0, body.length, { delimiter: comma, final: true, onRecord });
  onRecord(last + 1, body.length, lines);
  expect([...framesOf(framedRecords(body, { firstLine: 0, delimiter: ',' }))]).toEqual(expected);
});

test.each([undefined, ','])(
  'no list is made of the records of a chunk, of which there may be millions (delimiter %s)',
  (delimiter) => {
    const body = Buffer.alloc(3 << 20, `${'a'.repeat(127)}\n`);
    const pieces = framedRecords(body, { firstLine: 1, ...(delimiter && { delimiter }) });
    const first = pieces.next().value ?? Buffer.alloc(0);
    // What was not looked at yet is gone then.
    body.fill('\n', 2 << 20);
    expect([...framesOf([first, ...pieces])]).toHaveLength((2 << 20) / 128);
  },
);
