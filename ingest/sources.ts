import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parse as parseCsv } from 'csv-parse/sync';
import { asyncBufferFromFile, parquetMetadataAsync, parquetSchema } from 'hyparquet';
import { cutChunks, type KnownChunk } from './chunks.ts';
import { explainCsv, explainNdjson, explainParquet, type RowFault } from './explain.ts';
import { readInput } from './files.ts';
import { type FileFormat, InputError } from './formats.ts';
import type { SentChunk } from './ledger.ts';
import { eventFields, requiredFields } from './statement.ts';

/** A chunk as it is sent, whatever the format. */
export interface Sendable extends SentChunk {
  readonly content: () => Readable;
  readonly explain: () => RowFault | undefined | Promise<RowFault | undefined>;
  /** For messages: `lines 1–5000`. */
  readonly where: string;
  readonly known?: { readonly loaded: boolean };
}

export interface Source {
  /** Path, or `-` for standard input. */
  readonly file: string;
  readonly fileFormat: FileFormat;
  readonly chunkBytes: number;
  readonly knownChunks: (head: string) => Promise<readonly KnownChunk[]>;
  readonly onBytes: (bytes: number) => void;
}

/** The lines of a file, cut into chunks. @throws {InputError} for a header that does not fit */
export async function* lineChunks(source: Source): AsyncGenerator<Sendable> {
  const { file, fileFormat, chunkBytes, knownChunks } = source;
  const csv = fileFormat.format.name === 'csv';
  const chunks = cutChunks(readInput(file, fileFormat, source.onBytes), {
    file,
    csv,
    chunkBytes,
    knownChunks,
    onHeader: (header) => requireColumns(file, (parseCsv(header) as string[][])[0] ?? []),
  });
  for await (const { header, body, ...chunk } of chunks) {
    yield {
      ...chunk,
      bytes: body.length,
      content: () => Readable.from(csv ? [header, '\n', body] : [body], { objectMode: false }),
      explain: () => (csv ? explainCsv({ ...chunk, body }, header) : explainNdjson({ ...chunk, body })),
      where: `lines ${chunk.firstLine}–${chunk.firstLine + chunk.rows - 1}`,
    };
  }
}

/** A Parquet file is one chunk: its footer is at the end, so no part of it can be read alone. */
export async function* parquetChunk({ file, knownChunks, onBytes }: Source): AsyncGenerator<Sendable> {
  if (file === '-') throw new InputError('-: Parquet cannot be read from standard input, it needs a file');
  const metadata = await parquetMetadataAsync(await asyncBufferFromFile(file)).catch((cause: unknown) => {
    throw new InputError(`${file}: is not a Parquet file, or it is cut off`, { cause });
  });
  requireColumns(
    file,
    parquetSchema(metadata).children.map(({ element }) => element.name),
  );
  const rows = Number(metadata.num_rows);
  if (rows === 0) return;
  const hash = createHash('sha256');
  let bytes = 0;
  await pipeline(createReadStream(file), async (source: AsyncIterable<Buffer>) => {
    for await (const data of source) {
      hash.update(data);
      bytes += data.length;
      onBytes(data.length);
    }
  });
  const chunk = hash.digest('hex');
  const known = (await knownChunks(chunk)).find((candidate) => candidate.chunk === chunk);
  yield {
    chunk,
    head: chunk,
    bytes,
    rows,
    content: () => createReadStream(file),
    explain: () => explainParquet(file, rows),
    where: `rows 1–${rows}`,
    ...(known && { known }),
  };
}

function requireColumns(file: string, columns: readonly string[]): void {
  const unknown = columns.find((name) => !eventFields.some((field) => field === name));
  if (unknown !== undefined) {
    throw new InputError(
      `${file}: column ${unknown} is not a field of an event; there are ${eventFields.join(', ')}`,
    );
  }
  const missing = requiredFields.find((name) => !columns.includes(name));
  if (missing) throw new InputError(`${file}: column ${missing} is missing`);
}
