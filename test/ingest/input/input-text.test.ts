import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { formatOf } from '../../../ingest/formats/formats.ts';
import { openBytes, readInput } from '../../../ingest/input/byte-source.ts';
import { InputError } from '../../../ingest/input/input-error.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { crToLf, toUtf8 } from '../../../ingest/input/text.ts';
import { ObjectStores } from '../../../ingest/objects/object-stores.ts';
import { expandFiles } from '../../../ingest/places/expand-files.ts';
import { useFolder } from '../../support/folder.ts';

const stores = new ObjectStores({ env: {} });
const folder = useFolder();

async function read(content: string | Buffer): Promise<Buffer> {
  const path = join(folder, 'e.csv');
  await writeFile(path, content);
  const asPieces = await buffer(readInput(new LocalFile(path)));
  expect((await readInto(path, 1_000)).equals(asPieces)).toBe(true);
  await writeFile(path, gzipSync(content));
  expect((await buffer(readInput(new LocalFile(path)))).equals(asPieces)).toBe(true);
  return asPieces;
}

/** As the loader reads it, into targets of that size. */
async function readInto(path: string, targetBytes: number, reading = {}): Promise<Buffer> {
  const source = await openBytes(new LocalFile(path), () => {}, undefined, reading);
  const parts: Buffer[] = [];
  for (;;) {
    const target = Buffer.alloc(targetBytes);
    const length = await source.read(target);
    if (length === 0) break;
    parts.push(target.subarray(0, length));
  }
  await source.close();
  return Buffer.concat(parts);
}

async function* inPieces(content: Buffer, pieceBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += pieceBytes) {
    yield Buffer.from(content.subarray(at, at + pieceBytes));
  }
}

/** UTF-16 of either byte order. */
function utf16(text: string, order: 'utf-16le' | 'utf-16be'): Buffer {
  const encoded = Buffer.from(text, 'utf16le');
  return order === 'utf-16le' ? encoded : encoded.swap16();
}

// Characters of one to four bytes in UTF-8, so that any of them may lie across the border of a piece.
const rows = Array.from(
  { length: 30_000 },
  (_, n) => `${n}\tKampagne ü\t夏のセール\t😀 ${'x'.repeat(n % 7)}\r\n`,
);
const sheet = `event_id\tname\r\n${rows.join('')}`;
const orders = ['utf-16le', 'utf-16be'] as const;

describe.each(orders)('%s', (order) => {
  test('is read as UTF-8, with a byte order mark and without', async () => {
    expect((await read(utf16(`\ufeff${sheet}`, order))).toString()).toBe(sheet);
    expect((await read(utf16(sheet, order))).toString()).toBe(sheet);
  });

  test.each([1, 2, 3, 5])('is read alike in pieces of %i bytes', async (pieceBytes) => {
    const text = sheet.slice(0, 3_000);
    const pieces = inPieces(utf16(text, order), pieceBytes);
    expect((await buffer(toUtf8(pieces, order))).toString()).toBe(text);
  });

  test.each<[string, (whole: Buffer) => Buffer]>([
    ['ends within a character', (whole) => whole.subarray(0, -1)],
    ['ends within a pair', (whole) => Buffer.concat([whole, utf16('\ud83d', order)])],
    ['has half a pair', (whole) => Buffer.concat([whole, utf16('\ud83dx', order), whole])],
    ['has the other half', (whole) => Buffer.concat([whole, utf16('x\ude00', order), whole])],
    ['lost a byte', (whole) => Buffer.concat([whole.subarray(0, 9_001), whole.subarray(9_002), whole])],
  ])('that %s is refused, not repaired', async (_, damage) => {
    await expect(read(damage(utf16(`\ufeff${sheet}`, order)))).rejects.toThrow(
      `${join(folder, 'e.csv')}: the ${order.toUpperCase()} text is damaged or truncated`,
    );
    await expect(read(damage(utf16(`\ufeff${sheet}`, order)))).rejects.toBeInstanceOf(InputError);
  });
});

test('UTF-8 is read as it is, without its byte order mark', async () => {
  expect((await read(`\ufeff${sheet}`)).toString()).toBe(sheet);
  // Every byte but the CR, which may be the first line end.
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, n) => (n % 242) + 14));
  const path = join(folder, 'bytes.csv');
  await writeFile(path, bytes);
  expect((await readInto(path, 1_000, { encoding: 'utf-8' })).equals(bytes)).toBe(true);
  await expect(readInto(path, 1_000)).rejects.toThrow(`${path}: the text is not UTF-8`);
});

describe('line ends', () => {
  test('CR alone becomes LF', async () => {
    const lines = sheet.replaceAll('\r\n', '\r');
    expect((await read(lines)).toString()).toBe(lines.replaceAll('\r', '\n'));
    expect((await read('a,b\r')).toString()).toBe('a,b\n');
    expect((await read('a,b\r\r1,2')).toString()).toBe('a,b\n\n1,2');
    expect((await read(utf16(`\ufeff${lines}`, 'utf-16le'))).toString()).toBe(lines.replaceAll('\r', '\n'));
  });

  test.each([
    ['LF', 'a,b\n1,"x\ry"\n'],
    ['CRLF', 'a,b\r\n1,"x\ry"\r\n'],
    ['LF and CRLF', 'a,b\r\n1,2\n3,"x\ry"\r\n'],
    ['CRLF converted twice', 'a,b\r\r\n1,2\r\r\n'],
    ['none', 'a,b'],
  ])('%s: nothing is changed', async (_, text) => {
    const content = text.repeat(20_000);
    expect((await read(content)).toString()).toBe(content);
  });

  test.each([1, 2, 3, 4, 7, 100])('in pieces of %i bytes a CRLF among CRs is kept', async (pieceBytes) => {
    const text = 'a,b\r1,2\r\n"x\r\ny"\r\r\r\n\n\r3,4\r';
    const found = await buffer(crToLf(inPieces(Buffer.from(text), pieceBytes)));
    expect(found.toString()).toBe('a,b\n1,2\r\n"x\r\ny"\n\n\r\n\n\n3,4\n');
  });
});

describe('the files of an argument', () => {
  test('a folder: its files by name, without what is hidden and without folders', async () => {
    const home = join(folder, 'many');
    await mkdir(join(home, 'inner'), { recursive: true });
    const names = Array.from({ length: 3_000 }, (_, n) => `part-${String(n).padStart(5, '0')}.csv`);
    await Promise.all([...names, '.hidden', 'inner/x.csv'].map((name) => writeFile(join(home, name), '')));
    await symlink(join(home, 'inner'), join(home, 'link'));
    const paths = names.map((name) => join(home, name));
    expect((await expandFiles([home], stores)).map(({ name }) => name)).toEqual(paths);
    const again = await expandFiles([`${home}/part-*.csv`, home, ...paths], stores);
    expect(again.map(({ name }) => name)).toEqual(paths);
    await symlink('loop.csv', join(home, 'inner', 'loop.csv'));
    await expect(expandFiles([join(home, 'inner')], stores)).rejects.toThrow(
      `${join(home, 'inner', 'loop.csv')}: it is a link that leads to itself`,
    );
    await symlink(join(home, 'missing'), join(home, 'broken.csv'));
    await expect(expandFiles([home], stores)).rejects.toThrow(
      `${join(home, 'broken.csv')}: there is no such file`,
    );
  });

  test.each(['missing.csv', 'missing-*.csv', 'e.csv/x.csv', 'empty'])('%s is named', async (name) => {
    await writeFile(join(folder, 'e.csv'), '');
    await mkdir(join(folder, 'empty'), { recursive: true });
    await expect(expandFiles([join(folder, name)], stores)).rejects.toThrow(`${join(folder, name)}: `);
  });

  test('a folder in place of a file is named', async () => {
    await expect(openBytes(new LocalFile(folder), () => {})).rejects.toThrow(`${folder}: it is a folder`);
  });
});

test.each([
  [
    'e.txt',
    'e.txt: the name does not tell the format; end it in .ndjson, .jsonl, .json, .csv, .tsv, .parquet',
  ],
  ['e.parquet.gz', 'e.parquet.gz: Parquet is compressed inside; unpack it first'],
  ['e.xlsx', 'e.xlsx: Excel workbooks cannot be read; save the sheet as "CSV UTF-8"'],
  ['e.csv.zip', 'e.csv.zip: archives cannot be read; unpack it first'],
  ['e.tar.gz', 'e.tar.gz: archives cannot be read; unpack it first'],
  ['e.csv.xz', 'e.csv.xz: this packing cannot be read; unpack it first'],
])('%s is refused with what to do', (name, message) => {
  expect(() => formatOf(new LocalFile(name))).toThrow(message);
});
