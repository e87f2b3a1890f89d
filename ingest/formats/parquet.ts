import type { Hash } from 'node:crypto';
import { ChunkChain } from '../chunks/chunk-chain.ts';
import type { OpenInput, ReadOptions } from '../chunks/sendable-chunk.ts';
import { typedColumns } from '../event/typed-columns.ts';
import type { Input } from '../input/input.ts';
import { fileError, InputChanged } from '../input/input-error.ts';
import { parquetColumns } from '../parquet/columns.ts';
import { openParquet, type ParquetFile, type ParquetPart } from '../parquet/file.ts';
import { magic } from '../parquet/footer.ts';
import type { Format } from './format.ts';

export const parquet: Format = {
  name: 'parquet',
  endings: ['parquet'],
  mediaTypes: ['application/vnd.apache.parquet', 'application/parquet'],
  clickhouse: 'Parquet',
  open,
};

/**
 * Chunks are runs of row groups, each sent as a file of its own. They are read twice, to name them and to send them; those
 * of an object are held in between, so that they come over the network once, unless they are too large for that.
 */
async function open(input: Input, { reading, onBytes, signal }: ReadOptions): Promise<OpenInput> {
  const file = input.name;
  const opened = await openParquet(input);
  const schema = parquetColumns(file, opened.metadata);
  const mapping = reading.mappingOf(schema.map(({ name }) => name));
  const source = typedColumns('Parquet', file, schema, mapping);
  const chain = new ChunkChain(reading, Buffer.alloc(0));
  onBytes(bytesOutside(opened));
  return {
    begins: opened.parts[0] ? chain.head(opened.parts[0].foot) : '',
    close: async () => {},
    chunks: async function* (knownChunks) {
      for (const part of opened.parts) {
        const { firstRow, rows, start, end, foot } = part;
        const head = chain.head(foot);
        const known = await knownChunks(head);
        const begin = chain.begin();
        const hash = begin.copy().update(foot);
        let held: Buffer | undefined;
        const hold = () => {
          if (end - start <= mostHeldBytes) held = Buffer.allocUnsafeSlow(end - start);
          return held;
        };
        for await (const data of bytesOf(input, part, hold, signal)) {
          hash.update(data);
          onBytes(data.length);
        }
        const content = hash.digest('hex');
        chain.pass(content);
        const candidates = known.map((each) => ({ ...each, matches: each.content === content }));
        yield {
          ...{ id: chain.nameOf(content), head, content, candidates },
          bytes: end - start,
          rows: rows * reading.eventsPerRecord,
          source,
          release: () => {
            held = undefined;
          },
          stream: () => (held ? heldFile(held, foot) : ownFile(input, part, begin.copy(), content)),
          firstLine: firstRow,
          lastLine: firstRow + rows - 1,
          firstByte: start,
          unit: 'row',
        };
      }
    },
  };
}

async function* heldFile(held: Buffer, foot: Buffer): AsyncGenerator<Buffer> {
  yield* [magic, held, foot];
}

/**
 * A part as a file of its own. The foot, which comes first in its content, is sent last.
 * @throws {InputError} before its end if it is not what was named any more
 */
async function* ownFile(
  input: Input,
  part: ParquetPart,
  hash: Hash,
  content: string,
): AsyncGenerator<Buffer> {
  hash.update(part.foot);
  yield magic;
  for await (const data of bytesOf(input, part)) {
    hash.update(data);
    yield data;
  }
  if (hash.digest('hex') !== content) throw new InputChanged(`${input.name}: was changed while it was read`);
  yield part.foot;
}

/** @param hold memory for all of it, asked for where it would have to be fetched again */
async function* bytesOf(
  input: Input,
  { start, end }: ParquetPart,
  hold?: () => Buffer | undefined,
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  try {
    const reader = await input.readFrom(start, signal);
    try {
      const held = reader.size === undefined ? hold?.() : undefined;
      for (let at = 0; at < end - start; ) {
        const length = Math.min(end - start - at, pieceBytes);
        const piece = held?.subarray(at, at + length) ?? Buffer.allocUnsafeSlow(length);
        const bytes = await reader.read(piece);
        if (bytes === 0) return;
        yield piece.subarray(0, bytes);
        at += bytes;
      }
    } finally {
      await reader.close();
    }
  } catch (cause) {
    throw fileError(input.name, cause);
  }
}

const pieceBytes = 1 << 20;
/** Three chunks are in memory at a time, as with text that is held. */
const mostHeldBytes = 48 << 20;

/** Bytes that belong to no chunk. */
function bytesOutside({ size, parts }: ParquetFile): number {
  return size - parts.reduce((sum, { start, end }) => sum + end - start, 0);
}
