import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { parquetSchema } from 'hyparquet';
import { fileError, InputError } from '../input/input-error.ts';
import { parquetColumns } from '../parquet/columns.ts';
import { openParquet, type ParquetFile, type ParquetPart } from '../parquet/file.ts';
import { magic } from '../parquet/footer.ts';
import { parquetSource } from '../sources/parquet-source.ts';
import { Pieces } from './chunk-names.ts';
import type { ChunkReadOptions, SendableChunk } from './sendable-chunk.ts';

/**
 * The chunks of a Parquet file: runs of its row groups, each sent as a file of its own. They are read from the
 * file twice, to name them and to send them, and never held.
 */
export async function* parquetChunks(options: ChunkReadOptions): AsyncGenerator<SendableChunk> {
  const { file, reading, knownChunks, onBytes, signal } = options;
  if (file === '-') throw new InputError('-: Parquet cannot be read from standard input, it needs a file');
  const parquet = await openParquet(file);
  const schema = parquetSchema(parquet.metadata).children.map(({ element }) => element);
  const mapping = reading.mappingOf(schema.map(({ name }) => name));
  const source = parquetSource(parquetColumns(file, schema, mapping), mapping);
  onBytes(bytesOutside(parquet));
  const { fingerprint } = reading;
  const pieces = new Pieces();
  const plainPieces = new Pieces();
  for (const part of parquet.parts) {
    const { firstRow, rows, start, end } = part;
    const named = nameOf(part, fingerprint);
    const plain = fingerprint === '' ? undefined : nameOf(part, '');
    for await (const data of bytesOf(file, part, signal)) {
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
      stream: () => ownFile(file, part, digest, fingerprint),
      firstLine: firstRow,
      known,
      otherwise: known ? [] : candidates,
    };
  }
}

/** A part as a file of its own. @throws {InputError} before its end if it is not what was named any more */
async function* ownFile(
  file: string,
  part: ParquetPart,
  digest: string,
  fingerprint: string,
): AsyncGenerator<Buffer> {
  const named = nameOf(part, fingerprint);
  yield magic;
  for await (const data of bytesOf(file, part)) {
    named.update(data);
    yield data;
  }
  if (named.digest('hex') !== digest) throw new InputError(`${file}: was changed while it was loaded`);
  yield part.foot;
}

/** The foot comes first, so that the name is known before the foot is sent. */
function nameOf({ foot }: ParquetPart, fingerprint: string) {
  return createHash('sha256').update(fingerprint).update(foot);
}

async function* bytesOf(
  file: string,
  { start, end }: ParquetPart,
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(file, { start, end: end - 1, highWaterMark: 1 << 20, signal });
  } catch (cause) {
    throw fileError(file, cause);
  }
}

/** Bytes that belong to no chunk. */
function bytesOutside({ size, parts }: ParquetFile): number {
  return size - parts.reduce((sum, { start, end }) => sum + end - start, 0);
}
