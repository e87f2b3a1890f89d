import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parse as parseCsv } from 'csv-parse/sync';
import { asyncBufferFromFile, parquetMetadataAsync, parquetSchema } from 'hyparquet';
import { cutChunks, type KnownChunk } from './chunks.ts';
import { readInput } from './files.ts';
import { type FileFormat, type Format, formats, InputError } from './formats.ts';
import type { SentChunk } from './ledger.ts';
import { csvRecords, type LineRecord, ndjsonRecords, parquetRecords, tsvRecords } from './records.ts';
import { eventFields, requiredFields } from './statement.ts';

/** Bytes to send, and how to read them. Each call begins anew, so that they can be sent again. */
export interface Content {
  readonly format: Format;
  readonly stream: () => Readable;
}

/** A chunk as it is sent, whatever the format. */
export interface SendableChunk extends SentChunk {
  /** What keeps it from being stored twice; absent: its name. */
  readonly token?: string;
  readonly content: Content;
  /** Its lines, one by one; for a chunk that was refused. */
  readonly records: () => Iterable<LineRecord> | AsyncIterable<LineRecord>;
  /** Some of its lines, as they can be sent. */
  readonly contentOf: (records: readonly LineRecord[]) => Content;
  /** It has a NUL byte, which the engine would take as text: its lines are to be examined. */
  readonly damaged: boolean;
  /** What an earlier run left of it in the ledger. */
  readonly known: KnownChunk | undefined;
  /** For messages: `from line 1`. */
  readonly where: string;
}

export interface Source {
  /** Path, or `-` for standard input. */
  readonly file: string;
  readonly fileFormat: FileFormat;
  readonly chunkBytes: number;
  /** Columns that no event has are left out instead of refused. */
  readonly ignoreUnknown: boolean;
  readonly knownChunks: (head: string) => Promise<readonly KnownChunk[]>;
  readonly onBytes: (bytes: number) => void;
}

/** The chunks of a file. @throws {InputError} for a file that cannot be read or whose columns do not fit */
export function chunksOf(source: Source): AsyncGenerator<SendableChunk> {
  return source.fileFormat.format.name === 'parquet' ? parquetChunk(source) : lineChunks(source);
}

async function* lineChunks(source: Source): AsyncGenerator<SendableChunk> {
  const { file, fileFormat, chunkBytes, knownChunks } = source;
  const { format, compression } = fileFormat;
  let columns: readonly string[] = [];
  const chunks = cutChunks(readInput(file, compression, source.onBytes), {
    file,
    header: format.name !== 'ndjson',
    csv: format.name === 'csv',
    chunkBytes,
    knownChunks,
    onHeader: (header) => {
      columns = format.name === 'csv' ? ((parseCsv(header) as string[][])[0] ?? []) : header.split('\t');
      requireColumns(source, columns);
    },
  });
  for await (const { header, body, firstLine, ...chunk } of chunks) {
    const contentOf = (lines: readonly Buffer[]): Content => {
      const parts = header.length > 0 ? [header, ...lines] : lines;
      return {
        format,
        stream: () =>
          Readable.from(
            parts.flatMap((part) => [part, lineEnd]),
            { objectMode: false },
          ),
      };
    };
    yield {
      ...chunk,
      bytes: body.length,
      damaged: body.includes(0),
      content: contentOf([body]),
      records: () => {
        if (format.name === 'ndjson') return ndjsonRecords(body, firstLine);
        return (format.name === 'csv' ? csvRecords : tsvRecords)(body, firstLine, columns);
      },
      contentOf: (records) => contentOf([joined(records)]),
      where: `from line ${firstLine}`,
    };
  }
}

const lineEnd = Buffer.from('\n');

function joined(records: readonly LineRecord[]): Buffer {
  return Buffer.concat(records.flatMap(({ raw }, n) => (n === 0 ? [raw] : [lineEnd, raw])));
}

/** A Parquet file is one chunk: its footer is at the end, so no part of it can be read alone. */
async function* parquetChunk(source: Source): AsyncGenerator<SendableChunk> {
  const { file, knownChunks, onBytes } = source;
  if (file === '-') throw new InputError('-: Parquet cannot be read from standard input, it needs a file');
  const metadata = await parquetMetadataAsync(await asyncBufferFromFile(file)).catch((cause: unknown) => {
    throw new InputError(`${file}: is not a Parquet file, or it is cut off`, { cause });
  });
  requireColumns(
    source,
    parquetSchema(metadata).children.map(({ element }) => element.name),
  );
  const rows = Number(metadata.num_rows);
  if (rows === 0) return;
  const hash = createHash('sha256');
  let bytes = 0;
  await pipeline(createReadStream(file), async (content: AsyncIterable<Buffer>) => {
    for await (const data of content) {
      hash.update(data);
      bytes += data.length;
      onBytes(data.length);
    }
  });
  const chunk = hash.digest('hex');
  yield {
    chunk,
    head: chunk,
    bytes,
    rows,
    content: { format: formats.parquet, stream: () => createReadStream(file) },
    records: () => parquetRecords(file, rows),
    contentOf: (records) => ({
      format: formats.ndjson,
      stream: () => Readable.from([joined(records)], { objectMode: false }),
    }),
    damaged: false,
    known: (await knownChunks(chunk)).find((known) => known.chunk === chunk),
    where: 'from row 1',
  };
}

function requireColumns({ file, ignoreUnknown }: Source, columns: readonly string[]): void {
  const unknown = columns.find((name) => !eventFields.some((field) => field === name));
  if (unknown !== undefined && !ignoreUnknown) {
    throw new InputError(
      `${file}: column ${unknown} is not a field of an event; there are ${eventFields.join(', ')}. --ignore-unknown leaves it out`,
    );
  }
  const twice = columns.find((name, n) => columns.indexOf(name) !== n);
  if (twice !== undefined) throw new InputError(`${file}: column ${twice} is there twice`);
  const missing = requiredFields.find((name) => !columns.includes(name));
  if (missing) throw new InputError(`${file}: column ${missing} is missing`);
}
