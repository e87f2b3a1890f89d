import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { openBytes, readInput } from '../../../ingest/input/byte-source.ts';
import { InputError } from '../../../ingest/input/input-error.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { fileOf } from '../../support/compiled.ts';
import { useFolder } from '../../support/folder.ts';
import { framedText, zstdFrames } from '../../support/zstd.ts';

const folder = useFolder();

/** A file of that name, as the loader reads it. */
async function read(name: string, content: string | Buffer): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return text(readInput(new LocalFile(path)));
}

/** Must fail with a message that begins with the file. */
async function refused(name: string, content: string | Buffer, reason: string): Promise<void> {
  const failure = await read(name, content).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(InputError);
  expect(String(failure)).toMatch(new RegExp(`^Error: ${join(folder, name)}: .*${reason}`));
}

const whole = framedText();
const frames = Object.entries(zstdFrames);
const skippable = Buffer.from('502a4d18030000006162635f2a4d1800000000', 'hex');
const packings: readonly (readonly [string, Buffer])[] = [
  ['gzip', gzipSync(whole)],
  ['gzip, two members', Buffer.concat([gzipSync(whole.slice(0, 999)), gzipSync(whole.slice(999))])],
  ...frames.map(([options, frame]) => [`zstd ${options}`, frame] as const),
  [
    'zstd, a skippable frame first',
    Buffer.concat([skippable, ...frames.slice(0, 1).map(([, frame]) => frame)]),
  ],
];

test.each(frames)('a .zst that zstd %s made is unpacked', async (_, frame) => {
  expect(await read('e.ndjson.zst', frame)).toBe(whole);
});

test('all frames of a .zst are unpacked, also between frames to be skipped', async () => {
  const packed = Buffer.concat(frames.flatMap(([, frame]) => [skippable, frame]));
  expect(await read('e.ndjson.zst', packed)).toBe(whole.repeat(frames.length));
});

test('.br and .gz are unpacked', async () => {
  expect(await read('e.ndjson.br', brotliCompressSync(whole))).toBe(whole);
  expect(await read('e.ndjson.gz', gzipSync(whole))).toBe(whole);
});

describe('the first bytes tell packed data under any name', () => {
  for (const [packing, packed] of packings) {
    test.each(['e.ndjson', 'e.ndjson.gz', 'e.csv.zst'])(`${packing} named %s`, async (name) => {
      expect(await read(name, packed)).toBe(whole);
    });
  }

  test.each(packings.filter(([name]) => ['gzip', 'zstd -'].includes(name)))(
    '%s as standard input',
    async (_, packed) => {
      expect(await readStdin(packed)).toBe(whole);
    },
  );

  test('but only its name tells brotli', async () => {
    await expect(read('e.ndjson', brotliCompressSync(whole))).rejects.toThrow('the text is not UTF-8');
  });
});

/** What a process that reads its standard input gets, whose first piece is a single byte. */
async function readStdin(content: Buffer): Promise<string> {
  const byteSource = pathToFileURL(fileOf('ingest/input/byte-source')).href;
  const standardInput = pathToFileURL(fileOf('ingest/input/standard-input')).href;
  const script = `import { readInput } from '${byteSource}';
    import { standardInput } from '${standardInput}';
    for await (const piece of readInput(standardInput)) process.stdout.write(piece);`;
  const reader = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  reader.stdin.write(content.subarray(0, 1), () => reader.stdin.end(content.subarray(1)));
  return text(reader.stdout);
}

describe('text that is named as packed data', () => {
  test.each(['e.csv.gz', 'e.csv.zst'])('is read as text: %s', async (name) => {
    expect(await read(name, whole)).toBe(whole);
    expect(await read(name, 'é'.repeat(40_000))).toBe('é'.repeat(40_000));
    expect(await read(name, Buffer.from(`\ufeff${whole}`, 'utf16le'))).toBe(whole);
  });

  test('is refused where it is no text', async () => {
    const noise = Buffer.from(Array.from({ length: 5_000 }, (_, n) => (n * 151) % 256));
    await refused('e.csv.gz', noise, 'it is named as gzip, but holds neither gzip data nor text');
    await refused('e.csv.zst', noise, 'it is named as zstd, but holds neither zstd data nor text');
    await refused('e.csv.br', whole, '(the brotli data is damaged|it is truncated)');
  });
});

const damaged = (packed: Buffer) =>
  Buffer.from(packed).fill(0xff, packed.length >> 1, (packed.length >> 1) + 20);
const withMore = (packed: Buffer) => Buffer.concat([packed, Buffer.from('more')]);
const twice = (packed: Buffer, gap = 0) => Buffer.concat([packed, Buffer.alloc(gap), packed]);
/** That is not made of the same over and over: damage in its middle is damage of what it holds. */
const varied = Array.from({ length: 300 }, (_, n) => `${(n * n * 7_919) % 100_003} of ${n}\n`).join('');
const [gzip, brotli] = [gzipSync(varied), brotliCompressSync(varied)];

test.each([
  ['gzip, cut off', gzip.subarray(0, -40), 'ends too early: it is truncated'],
  // What the damaged bytes say may also be that more should come.
  ['gzip, damaged', damaged(gzip), '(gzip data is damaged|truncated)'],
  ['gzip, and more', withMore(gzip), 'gzip data is damaged'],
  ['gzip, two with a gap', twice(gzip, 512), 'more bytes follow the end'],
  ['brotli, cut off', brotli.subarray(0, -40), 'ends too early: it is truncated'],
  ['brotli, damaged', damaged(brotli), '(damaged|truncated)'],
  ['brotli, two one after the other', twice(brotli), 'more bytes follow the end'],
  ['brotli, and more', withMore(brotli), 'more bytes follow'],
])('a packed file that is broken says so: %s', async (kind, content, reason) => {
  await refused(kind.startsWith('gzip') ? 'e.ndjson.gz' : 'e.ndjson.br', content, reason);
});

describe('files that hold no text are refused with what to do', () => {
  const zip = 'PK\x03\x04\x14\x00';
  test.each([
    ['Parquet', 'PAR1\x15\x04', 'it is a Parquet file .--format parquet, or'],
    ['encrypted Parquet', 'PARE\x15\x04', 'it is an encrypted Parquet file'],
    ['a zip archive', `${zip}events.csv`, 'it is a zip archive; unpack it first'],
    ['a workbook', `${zip}[Content_Types].xml`, 'it is an Excel workbook; save the sheet as "CSV UTF-8"'],
    ['an old workbook', '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'it is an Excel workbook'],
    ['bzip2', 'BZh91AY&SY', 'packed with bzip2; unpack it first'],
    ['xz', '\xfd7zXZ\x00\x00', 'packed with xz; unpack it first'],
    ['UTF-32', '\xff\xfe\x00\x00a\x00\x00\x00', 'UTF-32 text; save it as UTF-8'],
  ])('%s', async (_, start, reason) => {
    const content = Buffer.concat([Buffer.from(start, 'latin1'), Buffer.alloc(5_000, 7)]);
    for (const name of ['e.csv', 'e.ndjson.gz']) await refused(name, content, reason);
    await refused('e.csv.gz', gzipSync(content), reason);
  });

  test.each(['PARENT_ACCOUNT', 'PAR1', 'BZh'])('text that begins with %s is read', async (name) => {
    expect(await read('e.csv', `${name},Länge\n1,2\n`)).toBe(`${name},Länge\n1,2\n`);
  });

  test('data that is packed twice', async () => {
    await refused(
      'e.csv.gz',
      gzipSync(gzipSync(whole)),
      'the gzip data holds packed data again; unpack it first',
    );
  });
});

test('a packed file can be closed before its end', async () => {
  const path = join(folder, 'closed.ndjson.gz');
  await writeFile(path, gzipSync(Buffer.alloc(50 << 20, 'x')));
  for (let round = 0; round < 20; round++) {
    const source = await openBytes(new LocalFile(path), () => {});
    if (round % 2) await source.read(Buffer.alloc(1 << 20));
    await source.close();
  }
});

test('the bytes of the file itself are counted', async () => {
  const path = join(folder, 'counted.ndjson');
  for (const content of [Buffer.from(whole), gzipSync(whole), Buffer.from(whole, 'utf16le')]) {
    await writeFile(path, content);
    let counted = 0;
    await buffer(readInput(new LocalFile(path), (bytes) => (counted += bytes)));
    expect(counted).toBe(content.length);
  }
});
