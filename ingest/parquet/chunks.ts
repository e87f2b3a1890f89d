import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { parquetSchema } from 'hyparquet';
import { type LineRun, lastLine } from '../chunks/line-range.ts';
import { type ChunkReadOptions, requireColumns, type SendableChunk } from '../chunks/sendable-chunk.ts';
import { formats } from '../input/file-format.ts';
import { InputError } from '../input/input-error.ts';
import { openParquet, type ParquetFile, type ParquetPart } from './file.ts';
import { magic } from './footer.ts';
import { parquetRecords } from './rows.ts';
import { typedFieldsOf } from './typed-fields.ts';

/**
 * The chunks of a Parquet file: runs of its row groups, each sent as a file of its own. They are read from the
 * file twice, to name them and to send them, and never held.
 */
export async function* parquetChunks(source: ChunkReadOptions): AsyncGenerator<SendableChunk> {
  const { file, knownChunks, onBytes, signal } = source;
  if (file === '-') throw new InputError('-: Parquet cannot be read from standard input, it needs a file');
  const parquet = await openParquet(file);
  const schema = parquetSchema(parquet.metadata).children.map(({ element }) => element);
  requireColumns(
    source,
    schema.map(({ name }) => name),
  );
  const typed = typedFieldsOf(schema);
  onBytes(bytesOutside(parquet));
  for (const part of parquet.parts) {
    const { firstRow, rows, start, end } = part;
    const named = nameOf(part);
    for await (const data of bytesOf(file, part, signal)) {
      named.update(data);
      onBytes(data.length);
    }
    const id = named.digest('hex');
    yield {
      id,
      firstLineHash: id,
      bytes: end - start,
      rows,
      content: {
        format: formats.parquet,
        typed,
        stream: () => Readable.from(ownFile(file, part, id), { objectMode: false }),
      },
      records: (only) =>
        parquetRecords(file, only?.line ?? firstRow, only ? lastLine(only) : firstRow + rows - 1),
      contentOf: (runs) => ({
        format: formats.ndjson,
        stream: () => Readable.from(ndjsonRows(file, runs), { objectMode: false }),
      }),
      damaged: false,
      known: (await knownChunks(id)).find((known) => known.id === id),
      where: `from row ${firstRow}`,
    };
  }
}

const lineEnd = Buffer.from('\n');

/** Rows of a Parquet file as NDJSON, read once more: held all together they would be larger than the file. */
async function* ndjsonRows(file: string, runs: readonly LineRun[]): AsyncGenerator<Buffer> {
  const rows: Buffer[] = [];
  let next = 0;
  for await (const { line, raw } of parquetRecords(file, runs[0]?.line ?? 1, lastLine(runs.at(-1)))) {
    if (line > lastLine(runs[next])) next++;
    if (line < (runs[next]?.line ?? line)) continue;
    rows.push(raw, lineEnd);
    if (rows.length > 10_000) yield Buffer.concat(rows.splice(0));
  }
  yield Buffer.concat(rows);
}

/** A part as a file of its own. @throws {InputError} before its end if it is not what was named any more */
async function* ownFile(file: string, part: ParquetPart, id: string): AsyncGenerator<Buffer> {
  const named = nameOf(part);
  yield magic;
  for await (const data of bytesOf(file, part)) {
    named.update(data);
    yield data;
  }
  if (named.digest('hex') !== id) throw new InputError(`${file}: was changed while it was loaded`);
  yield part.foot;
}

/** The foot comes first, so that the name is known before the foot is sent. */
function nameOf({ foot }: ParquetPart) {
  return createHash('sha256').update(foot);
}

function bytesOf(file: string, { start, end }: ParquetPart, signal?: AbortSignal): AsyncIterable<Buffer> {
  return createReadStream(file, { start, end: end - 1, highWaterMark: 1 << 20, signal });
}

/** Bytes that belong to no chunk. */
function bytesOutside({ size, parts }: ParquetFile): number {
  return size - parts.reduce((sum, { start, end }) => sum + end - start, 0);
}
