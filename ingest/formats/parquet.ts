import type { Hash } from 'node:crypto';
import { ChunkChain } from '../chunks/chunk-chain.ts';
import type { OpenInput, ReadOptions } from '../chunks/sendable-chunk.ts';
import { readColumns, typedColumns } from '../event/typed-columns.ts';
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
 * Chunks are runs of row groups, each sent as a file of its own. They are read twice, to name them and to send them, and
 * never held.
 */
async function open(input: Input, { reading, onBytes, signal }: ReadOptions): Promise<OpenInput> {
  const file = input.name;
  const opened = await openParquet(input);
  const schema = parquetColumns(opened.metadata);
  const mapping = reading.mappingOf(schema.map(({ name }) => name));
  const source = typedColumns('Parquet', readColumns(file, schema, mapping), mapping);
  const chain = new ChunkChain(reading, Buffer.alloc(0));
  onBytes(bytesOutside(opened));
  return {
    begins: opened.parts[0] ? chain.head(opened.parts[0].foot) : '',
    close: async () => {},
    chunks: async function* (knownChunks) {
      for (const part of opened.parts) {
        const { firstRow, rows, start, end, foot } = part;
        const head = chain.head(foot);
        const begin = chain.begin();
        const hash = begin.copy().update(foot);
        for await (const data of bytesOf(input, part, signal)) {
          hash.update(data);
          onBytes(data.length);
        }
        const content = hash.digest('hex');
        chain.pass(content);
        const known = await knownChunks(head);
        const candidates = known.map((each) => ({ ...each, matches: each.content === content }));
        yield {
          ...{ id: chain.nameOf(content), head, content, candidates },
          bytes: end - start,
          rows: rows * reading.eventsPerRecord,
          source,
          release: () => {},
          stream: () => ownFile(input, part, begin.copy(), content),
          firstLine: firstRow,
          firstByte: start,
          unit: 'row',
        };
      }
    },
  };
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
  if (hash.digest('hex') !== content)
    throw new InputChanged(`${input.name}: was changed while it was loaded`);
  yield part.foot;
}

async function* bytesOf(
  input: Input,
  { start, end }: ParquetPart,
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  try {
    const reader = await input.readFrom(start, signal);
    try {
      for (let left = end - start; left > 0; ) {
        const piece = Buffer.allocUnsafeSlow(Math.min(left, pieceBytes));
        const bytes = await reader.read(piece);
        if (bytes === 0) return;
        yield piece.subarray(0, bytes);
        left -= bytes;
      }
    } finally {
      await reader.close();
    }
  } catch (cause) {
    throw fileError(input.name, cause);
  }
}

const pieceBytes = 1 << 20;

/** Bytes that belong to no chunk. */
function bytesOutside({ size, parts }: ParquetFile): number {
  return size - parts.reduce((sum, { start, end }) => sum + end - start, 0);
}
