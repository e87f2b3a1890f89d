import { createHash } from 'node:crypto';
import { parquetSchema } from 'hyparquet';
import { Pieces } from '../chunks/chunk-names.ts';
import type { ChunkReadOptions, SendableChunk } from '../chunks/sendable-chunk.ts';
import type { Input } from '../input/input.ts';
import { fileError, InputError } from '../input/input-error.ts';
import { parquetColumns } from '../parquet/columns.ts';
import { openParquet, type ParquetFile, type ParquetPart } from '../parquet/file.ts';
import { magic } from '../parquet/footer.ts';
import { parquetSource } from '../parquet/record-source.ts';
import type { Format } from './format.ts';

export const parquet: Format = {
  name: 'parquet',
  endings: ['parquet'],
  clickhouse: 'Parquet',
  chunksOf: parquetChunks,
};

/**
 * The chunks of a Parquet file: runs of its row groups, each sent as a file of its own. They are read from the
 * file twice, to name them and to send them, and never held.
 */
async function* parquetChunks(input: Input, options: ChunkReadOptions): AsyncGenerator<SendableChunk> {
  const { reading, knownChunks, onBytes, signal } = options;
  const file = input.name;
  const opened = await openParquet(input);
  const schema = parquetSchema(opened.metadata).children.map(({ element }) => element);
  const mapping = reading.mappingOf(schema.map(({ name }) => name));
  const source = parquetSource(parquetColumns(file, schema, mapping), mapping);
  onBytes(bytesOutside(opened));
  const { fingerprint } = reading;
  const pieces = new Pieces();
  const plainPieces = new Pieces();
  for (const part of opened.parts) {
    const { firstRow, rows, start, end } = part;
    const named = nameOf(part, fingerprint);
    const plain = fingerprint === '' ? undefined : nameOf(part, '');
    for await (const data of bytesOf(input, part, signal)) {
      named.update(data);
      plain?.update(data);
      onBytes(data.length);
    }
    const digest = named.digest('hex');
    const id = pieces.take(digest);
    const content = plain?.digest('hex') ?? digest;
    // Of all of its content, however it is read.
    const firstLineHash = plainPieces.take(content);
    const candidates = await knownChunks(firstLineHash);
    const known = candidates.find((each) => each.id === id);
    yield {
      id,
      firstLineHash,
      content,
      bytes: end - start,
      rows,
      source,
      release: () => {},
      stream: () => ownFile(input, part, digest, fingerprint),
      firstLine: firstRow,
      unit: 'row',
      known,
      otherwise: known ? [] : candidates,
    };
  }
}

/** A part as a file of its own. @throws {InputError} before its end if it is not what was named any more */
async function* ownFile(
  input: Input,
  part: ParquetPart,
  digest: string,
  fingerprint: string,
): AsyncGenerator<Buffer> {
  const named = nameOf(part, fingerprint);
  yield magic;
  for await (const data of bytesOf(input, part)) {
    named.update(data);
    yield data;
  }
  if (named.digest('hex') !== digest) throw new InputError(`${input.name}: was changed while it was loaded`);
  yield part.foot;
}

/** The foot comes first, so that the name is known before the foot is sent. */
function nameOf({ foot }: ParquetPart, fingerprint: string) {
  return createHash('sha256').update(fingerprint).update(foot);
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
