import { describe, expect, test } from 'vitest';
import { ChunkChain } from '../../../ingest/chunks/chunk-chain.ts';
import { LineReader } from '../../../ingest/chunks/line-reader.ts';
import type { KnownChunks } from '../../../ingest/chunks/sendable-chunk.ts';
import { type Chunk, cutChunks } from '../../../ingest/chunks/text-chunks.ts';
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
    unit: 'line',
  };
}

/** The same from a file. */
function fileSource(content: Buffer, pieceBytes: () => number): ByteSource {
  const readAgain = async (target: Buffer, start: number) => content.copy(target, 0, start);
  return { ...source(content, pieceBytes), readAgain };
}

interface CutOptions {
  readonly header?: boolean;
  readonly csvDelimiter?: number;
  readonly chunkBytes?: number;
  readonly pieceBytes?: number;
  readonly knownChunks?: KnownChunks;
}

async function* chunksOf(bytes: ByteSource, options: CutOptions): AsyncGenerator<Chunk> {
  const { csvDelimiter, chunkBytes = 500, pieceBytes = 200, knownChunks = async () => [] } = options;
  const file = 'events';
  const reader = new LineReader(bytes, { file, ...(csvDelimiter && { csvDelimiter }) });
  const header = options.header ? await reader.takeHeader() : Buffer.alloc(0);
  const text = { file, source: bytes, reader, chunkBytes, pieceBytes };
  yield* cutChunks(text, new ChunkChain({ salt: '', fingerprint: '' }, header), knownChunks);
}

async function cut(content: Buffer, options: CutOptions, pieceBytes: () => number, from = source) {
  const chunks = [];
  for await (const chunk of chunksOf(from(content, pieceBytes), options)) {
    const { id, head, content, rows, firstLine, multiLine } = chunk;
    const text = (await textsOf(chunk)).join('');
    expect(text.length).toBe(chunk.bytes);
    chunks.push({ id, head, content, rows, firstLine, multiLine, text });
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
    for (const name of ['id', 'head'] as const)
      expect(new Set(whole.map((chunk) => chunk[name])).size).toBe(whole.length);
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
  const knownChunks = async (head: string) =>
    before
      .filter((chunk) => chunk.head === head)
      .map(({ id, content, text }) => ({ id, content, bytes: text.length, loadedRows: undefined }));
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
  for await (const chunk of chunksOf(pieces, { chunkBytes: 1_500_000 })) {
    memories.add(chunk.held?.buffer);
    onTheirWay.push(chunk);
    while (onTheirWay.length > 2 || (onTheirWay.length > 0 && next() < 0.3)) release();
  }
  while (onTheirWay.length > 0) release();
  expect(texts.length).toBeGreaterThan(15);
  expect(texts.join('\n')).toBe(lines.join('\n'));
  expect(memories.size).toBeLessThan(7);
});

test('equal records are chunks of their own, and known only behind what was before them', async () => {
  const content = Buffer.from('a\n'.repeat(6));
  const chunks = await cut(content, { chunkBytes: 4, pieceBytes: 4 }, () => content.length);
  expect(chunks.map(({ text }) => text)).toEqual(['a\na', 'a\na', 'a\na']);
  expect(new Set(chunks.map(({ id }) => id)).size).toBe(3);
  expect(new Set(chunks.map(({ head }) => head)).size).toBe(3);
  const more = await cut(Buffer.concat([Buffer.from('b\n'), content]), { chunkBytes: 4 }, () => 9);
  for (const { id } of more) expect(chunks.map((chunk) => chunk.id)).not.toContain(id);
});

test('a chunk ends with the piece that makes its records enough', async () => {
  const content = Buffer.alloc(2 * 1_200_000, 'a\n');
  const found = fileSource(content, () => content.length);
  const sizes: number[] = [];
  const large = { chunkBytes: 1 << 30, pieceBytes: 1 << 16 };
  for await (const { rows } of chunksOf({ ...found, size: content.length }, large)) sizes.push(rows);
  expect(sizes.slice(0, -1).every((rows) => rows >= 500_000 && rows < 550_000)).toBe(true);
  expect(sizes.reduce((sum, rows) => sum + rows)).toBe(1_200_000);
});

describe.each([
  ['read again', fileSource],
  ['held', source],
])('records that are very short make chunks of as many as others (%s)', (_, from) => {
  test.each([
    ['lines', '', undefined],
    ['lines behind a very long one', `${'x'.repeat(3 << 20)}\n`, undefined],
    ['CSV with quotes', '"a"\n', 44],
    ['CSV of which a quote is open', '"a\n', 44],
  ])('%s', async (_, first, csvDelimiter) => {
    const content = Buffer.from(`${first}${'a\n'.repeat(1_600_000)}b`);
    const large = { chunkBytes: 1 << 30, pieceBytes: 1 << 30, ...(csvDelimiter && { csvDelimiter }) };
    const sizes: number[] = [];
    const bytes = from(content, () => content.length);
    for await (const { rows } of chunksOf(bytes, large)) sizes.push(rows);
    const records = content.toString('latin1').split('\n').length;
    expect(sizes).toEqual([500_000, 500_000, 500_000, records - 1_500_001, 1]);
  });
});
