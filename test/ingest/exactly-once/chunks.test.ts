import { expect, test } from 'vitest';
import { type Chunk, type ChunkOptions, cutChunks } from '../../../ingest/chunks/cut-chunks.ts';
import type { ByteSource } from '../../../ingest/input/byte-source.ts';
import { testSeed as seed, seededRandom } from '../../support/random.ts';

/** Hands out bytes as a pipe or an unpacker might. */
function source(content: Buffer, pieceBytes: () => number): ByteSource {
  let at = 0;
  return {
    read: async (target) => {
      expect(target.length).toBeGreaterThan(0);
      const length = content.copy(target, 0, at, Math.min(content.length, at + Math.max(1, pieceBytes())));
      at += length;
      return length;
    },
    close: async () => {},
  };
}

/** The same from a file. */
function fileSource(content: Buffer, pieceBytes: () => number): ByteSource {
  const readAgain = async (target: Buffer, start: number) => content.copy(target, 0, start);
  return { ...source(content, pieceBytes), readAgain };
}

const wanted: ChunkOptions = {
  file: 'events',
  skipLines: 0,
  header: false,
  fingerprint: '',
  salt: '',
  onFirstLine: () => {},
  knownChunks: async () => [],
  beginChunk: async () => [],
  chunkBytes: 500,
  pieceBytes: 200,
  parallel: 2,
};

async function cut(content: Buffer, options: Partial<ChunkOptions>, pieceBytes: () => number, from = source) {
  const chunks = [];
  for await (const chunk of cutChunks(from(content, pieceBytes), { ...wanted, ...options })) {
    const { id, firstLineHash, rows, firstLine, multiLine } = chunk;
    const text = (await textsOf(chunk)).join('');
    expect(text.length).toBe(chunk.bytes);
    chunks.push({ id, firstLineHash, rows, firstLine, multiLine, text });
  }
  return chunks;
}

async function textsOf({ pieces }: Chunk): Promise<string[]> {
  const texts: string[] = [];
  for await (const { bytes } of pieces()) texts.push(`${bytes}`);
  return texts;
}

test.each([
  ['lines', { header: false }],
  ['CSV with quoted line ends', { csvDelimiter: 44, header: true }],
])(`%s are cut alike however they arrive (seed ${seed})`, async (_, options) => {
  const next = seededRandom(seed);
  for (let round = 0; round < 40; round++) {
    const lines = Array.from({ length: 60 }, (_, n) => {
      const text = 'x'.repeat(Math.floor(next() * 90));
      return 'csvDelimiter' in options && next() < 0.3 ? `${n},"${text}\n,""${text}"` : `${n},${text}`;
    });
    const end = next() < 0.5 ? '\r\n' : '\n';
    const content = Buffer.from(
      (options.header ? ['a,b', ...lines] : lines).join(end) + (next() < 0.5 ? end : ''),
    );
    const whole = await cut(content, options, () => content.length);
    const heads = whole.map(({ text }) => text.split(end)[0]);
    expect(new Set(whole.map(({ firstLineHash }) => firstLineHash)).size).toBe(new Set(heads).size);
    expect(whole.reduce((sum, { rows }) => sum + rows, 0)).toBe(lines.length);
    for (const pieces of [() => 1, () => 7, () => Math.floor(next() * 700)]) {
      expect(await cut(content, options, pieces)).toEqual(whole);
      expect(await cut(content, options, pieces, fileSource)).toEqual(whole);
    }
  }
});

test('a file is cut again where it was cut before, whatever the size of chunks is now', async () => {
  const next = seededRandom(seed);
  const lines = Array.from({ length: 200 }, (_, n) => `${n},${'x'.repeat(Math.floor(next() * 90))}`);
  const content = Buffer.from(`${lines.join('\n')}\n`);
  const before = await cut(content, { chunkBytes: 700 }, () => content.length);
  const knownChunks = async (firstLineHash: string) =>
    before
      .filter((chunk) => chunk.firstLineHash === firstLineHash)
      .map(({ id, text }) => ({ id, bytes: Buffer.byteLength(text), content: '', loadedRows: undefined }));
  for (const chunkBytes of [100, 1_000, 1_000_000]) {
    for (const from of [source, fileSource]) {
      const options = { chunkBytes, pieceBytes: 50, knownChunks };
      expect(await cut(content, options, () => Math.floor(next() * 90), from)).toEqual(before);
    }
  }
});

test('memory of chunks that are released is used again, that of chunks on their way is not touched', async () => {
  const next = seededRandom(seed);
  const lines = Array.from({ length: 60_000 }, (_, n) => `${n},${'x'.repeat(Math.floor(next() * 900))}`);
  const content = Buffer.from(`${lines.join('\n')}\n`);
  const memories = new Set<ArrayBufferLike | undefined>();
  const onTheirWay: Chunk[] = [];
  const texts: string[] = [];
  const release = () => {
    const chunk = onTheirWay.shift();
    texts.push(`${chunk?.held}`);
    chunk?.release();
  };
  const pieces = source(content, () => Math.floor(next() * 2e6));
  for await (const chunk of cutChunks(pieces, { ...wanted, chunkBytes: 1_500_000 })) {
    memories.add(chunk.held?.buffer);
    onTheirWay.push(chunk);
    while (onTheirWay.length > 2 || (onTheirWay.length > 0 && next() < 0.3)) release();
  }
  while (onTheirWay.length > 0) release();
  expect(texts.length).toBeGreaterThan(15);
  expect(texts.join('\n')).toBe(lines.join('\n'));
  expect(memories.size).toBeLessThan(7);
});

test.each([
  [900_000, 1],
  [1_200_000, 4],
  [5_000_000, 8],
  [9_000_000, 10],
])('%i records are cut so that two senders have as much to do', async (records, chunks) => {
  const content = Buffer.alloc(2 * records, 'a\n');
  const found = fileSource(content, () => content.length);
  const sizes: number[] = [];
  const large = { chunkBytes: 1 << 30, pieceBytes: 1 << 16 };
  for await (const { rows } of cutChunks({ ...found, size: content.length }, { ...wanted, ...large }))
    sizes.push(rows);
  expect(sizes).toHaveLength(chunks);
  expect(sizes.reduce((sum, rows) => sum + rows)).toBe(records);
  expect(Math.min(...sizes)).toBeGreaterThan(0.5 * Math.max(...sizes));
});
