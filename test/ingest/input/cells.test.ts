import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { parse as parseCsv } from 'csv-parse/sync';
import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { sameNames } from '../../../ingest/event/mapping.ts';
import { plainReading } from '../../../ingest/event/reading.ts';
import { csv } from '../../../ingest/formats/csv.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { useFolder } from '../../support/folder.ts';
import { testSeed as seed, seededRandom } from '../../support/random.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const folder = useFolder();

/** A record as the loader takes it apart: no cells where its quotes are broken. */
interface CutRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * The records and cells of a CSV file without a header, cut by the loader and taken apart by its SQL; how many records were
 * counted when its chunks were cut, and how the records of each chunk were taken apart.
 */
async function cutCsv(content: string, { delimiter = ',', chunkBytes = 1 << 20 } = {}) {
  const file = join(folder, 'cells.csv');
  await writeFile(file, content);
  const table = 'CREATE OR REPLACE TABLE cells (line UInt32, cells Array(String)) ENGINE = Memory';
  await db.store.command({ query: table });
  const { chunks, close } = await csv.open(new LocalFile(file), {
    reading: { ...plainReading(file), delimiter, header: false, mappingOf: sameNames },
    chunkBytes,
    onBytes: () => {},
  });
  let counted = 0;
  const selects: string[] = [];
  for await (const { source, stream, firstLine, rows } of chunks(async () => [])) {
    counted += rows;
    selects.push(source.select);
    const { stream: answer } = await db.store.exec({
      query: `INSERT INTO cells SELECT at_line, cells FROM (${source.select}) FORMAT ${source.format}`,
      values: Readable.from(stream(), { objectMode: false }),
      query_params: { firstLine },
    });
    await finished(answer.resume());
  }
  await close();
  const records = await select<CutRecord>(db.store, 'SELECT line, cells FROM cells ORDER BY line');
  return { records, counted, selects };
}

const delimiters = [',', ';', '|', '\t', ' '] as const;

/** A record as two programs read it: csv-parse knows no blanks outside quotes, the loader leaves them out. */
interface Written {
  readonly record: string;
  readonly forOracle: string;
}

/** Records of every kind of cell whose quotes are right, with line ends inside quotes where `multiLine`. */
function randomRecords(delimiter: string, count: number, multiLine: boolean): Written[] {
  const random = seededRandom(seed);
  const one = <T>(...choices: readonly [T, ...T[]]): T =>
    choices[Math.floor(random() * choices.length)] ?? choices[0];
  const blanks = delimiter === '\t' ? ' ' : delimiter === ' ' ? '\t' : one(' ', '\t');
  const ends = multiLine ? (['\n', '\r\n', '\n\n'] as const) : ([''] as const);
  const text = () =>
    Array.from({ length: Math.floor(random() * 5) }, () =>
      one('a', 'ü', '夏', '😀', ' ', '\\', '\\N', "'", '0', '.*', '[', '\r\u00e9'),
    ).join('');
  const cell = (): Written => {
    const plain = text();
    const inQuotes = `"${text()}${one('', '""', delimiter, ...ends, `""${delimiter}""`)}${text()}"`;
    const before = one('', '', blanks, blanks + blanks);
    const after = one('', '', blanks);
    return one(
      { record: plain, forOracle: plain },
      { record: '', forOracle: '' },
      { record: '""', forOracle: '""' },
      { record: inQuotes, forOracle: inQuotes },
      { record: `${before}${inQuotes}${after}`, forOracle: inQuotes },
      // A quote that does not begin a cell is a character like any other.
      { record: `x${plain}"y"`, forOracle: `x${plain}"y"` },
    );
  };
  return Array.from({ length: count }, () => {
    const cells = [{ record: 'x', forOracle: 'x' }, ...Array.from({ length: one(0, 1, 2, 5) }, cell)];
    const trailing = one('', '', delimiter, delimiter.repeat(3));
    // The first cell is sometimes one in quotes.
    const first = random() < 0.3 ? cells.slice(1) : cells;
    const written = (name: keyof Written) => first.map((each) => each[name]).join(delimiter) + trailing;
    return { record: written('record'), forOracle: written('forOracle') };
  }).filter(({ record }) => record.replace(/\r+$/, '') !== '');
}

/** `relax_quotes`: a quote inside a cell without quotes is kept, as the loader keeps it. */
function oracle(content: string, delimiter: string): string[][] {
  return parseCsv(content, {
    ...{ delimiter, relax_quotes: true, relax_column_count: true, skip_empty_lines: true },
    record_delimiter: ['\n', '\r\n'],
  });
}

test.each(delimiters.flatMap((delimiter) => [[delimiter, false] as const, [delimiter, true] as const]))(
  `cells between %j are those of csv-parse, with line ends in quotes: %s (seed ${seed})`,
  async (delimiter, multiLine) => {
    const random = seededRandom(seed + 1);
    const written = randomRecords(delimiter, 400, multiLine);
    const lineEnds = written.map(() => (random() < 0.3 ? '\r\n' : '\n') + (random() < 0.1 ? '\r\n\n' : ''));
    const content = (name: keyof Written) =>
      `x\n${written.map((each, n) => `${each[name].replace(/\r+$/, '')}${lineEnds[n]}`).join('')}`;
    const expected = oracle(content('forOracle'), delimiter);
    for (const sizes of [{}, { chunkBytes: 300 }]) {
      const found = await cutCsv(content('record'), { delimiter, ...sizes });
      expect(found.counted).toBe(expected.length);
      expect(found.records.map(({ cells }) => cells)).toEqual(expected);
    }
  },
);

test('one cell with a delimiter, anywhere in a chunk, has the quotes of all looked at; without it none are', async () => {
  const plain = Array.from({ length: 60 }, (_, n) => `"a-${n}",${n},"b"`);
  const cut = (lines: readonly string[]) => cutCsv(`${lines.join('\n')}\n`);
  const { records, selects } = await cut(plain);
  expect(records.map(({ cells }) => cells)).toEqual(plain.map((_, n) => [`a-${n}`, `${n}`, 'b']));
  expect(selects).toHaveLength(1);
  for (const odd of [0, 1, 30, 59]) {
    const lines = plain.with(odd, '"a,b",1,"b"');
    const found = await cut(lines);
    expect(found.records.map(({ cells }) => cells)).toEqual(
      lines.map((_, n) => (n === odd ? ['a,b', '1', 'b'] : [`a-${n}`, `${n}`, 'b'])),
    );
    expect(found.selects).toHaveLength(1);
    expect(found.selects).not.toEqual(selects);
  }
});

test('a record keeps the number of its line behind cells with line ends and blank lines', async () => {
  const content = 'a,1\n\n"b\n\n",2\r\n\r\nc,3\n"d\r\n",4\n\n\ne,5';
  for (const sizes of [{}, { chunkBytes: 8 }, { chunkBytes: 1 }]) {
    const { records } = await cutCsv(content, sizes);
    expect(records.map(({ line, cells }) => [line, cells[1]])).toEqual([
      [1, '1'],
      [3, '2'],
      [7, '3'],
      [8, '4'],
      [12, '5'],
    ]);
  }
});

test('a record whose first quote lies behind the size of a chunk is not cut at a line end in quotes', async () => {
  for (const chunkBytes of [1, 5, 6, 20]) {
    const { records } = await cutCsv('x\nlong,"x\ny"\nb,1', { chunkBytes });
    expect(records.map(({ line, cells }) => [line, ...cells])).toEqual([
      [1, 'x'],
      [2, 'long', 'x\ny'],
      [4, 'b', '1'],
    ]);
  }
});

// A space between quotes is no fault where it separates cells.
test.each(delimiters.filter((each) => each !== ' '))(
  'broken quotes spoil the record they are in and no other: %j',
  async (d) => {
    const broken = ['"a"b', '"a" b"', '"a""', `"a"${d}"b" x`, `x${d}"a"b"c"`, ` "a" "b"`];
    const records = broken.flatMap((record) => [`good${d}"1"`, record]);
    // An open quote goes on to the next one, as csv-parse reads it too; these close on their own line.
    const lines = [
      ...records.filter((record) => record !== '"a""'),
      `good${d}2`,
      `"never closed${d}3`,
      'last',
    ];
    for (const chunkBytes of [1 << 20, 30]) {
      const found = await cutCsv(lines.join('\n'), { delimiter: d, chunkBytes });
      expect(found.counted).toBe(lines.length);
      const good = found.records.filter(({ cells }) => cells.length > 0).map(({ line }) => line);
      const isGood = (line: string) => line.startsWith('good') || line === 'last';
      expect(good).toEqual(lines.flatMap((line, n) => (isGood(line) ? [n + 1] : [])));
    }
  },
);

test('a quote that is not closed within 1 MiB spoils its own line, however the file is cut', async () => {
  const filler = Array.from({ length: 24_000 }, (_, n) => `filler-${n},${'x'.repeat(40)}`);
  const lines = ['first,1', '"open,2', ...filler, 'close",3', 'last,4'];
  for (const chunkBytes of [4 << 20, 500_000]) {
    const found = await cutCsv(lines.join('\n'), { chunkBytes });
    expect(found.counted).toBe(lines.length);
    expect(found.records.filter(({ cells }) => cells.length !== 2).map(({ line }) => line)).toEqual([2]);
  }
});

test('a long record of several cells in quotes is one record, however the file is cut', async () => {
  const long = (letter: string) => `"${`${letter.repeat(99)}\n`.repeat(7_000)}"`;
  const content = `a,b,c\n${long('x')},${long('y')},z\nlast,1,2\n`;
  for (const chunkBytes of [4 << 20, 1_000_000, 1_000]) {
    const { records, counted } = await cutCsv(content, { chunkBytes });
    expect(records.map(({ line, cells }) => [line, cells.length, cells[2]])).toEqual([
      [1, 3, 'c'],
      [2, 3, 'z'],
      [14_003, 3, '2'],
    ]);
    expect(counted).toBe(3);
  }
});

test(`any text has the same records however it is cut (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const characters = [...'\n\n\r"",,aü \t\0\\', '\r\n', '""'];
  for (let round = 0; round < 10; round++) {
    const text = Array.from({ length: 1 + below(60) }, () => characters[below(characters.length)]).join('');
    const whole = await cutCsv(`x\n${text}`);
    const cut = await cutCsv(`x\n${text}`, { chunkBytes: 1 + below(40) });
    expect(cut.records, JSON.stringify(text)).toEqual(whole.records);
    expect([whole.counted, cut.counted]).toEqual([whole.records.length, whole.records.length]);
  }
});

test('a carriage return at the begin of a line is part of it, wherever a chunk begins', async () => {
  for (const chunkBytes of [1, 1 << 20]) {
    const { records } = await cutCsv('x\n\ra,1\n\r\n\r\r\n\rb,2\n\r', { chunkBytes });
    expect(records.map(({ line, cells }) => [line, ...cells])).toEqual([
      [1, 'x'],
      [2, '\ra', '1'],
      [5, '\rb', '2'],
    ]);
  }
});
