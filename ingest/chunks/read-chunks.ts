import { Readable } from 'node:stream';
import { parse as parseCsv } from 'csv-parse/sync';
import { eventFields, requiredFields, type TypedFields } from '../event/event-insert.ts';
import { csvRecords, type LineRecord, ndjsonRecords, tsvRecords } from '../event/line-records.ts';
import { openBytes } from '../input/byte-source.ts';
import { type FileFormat, type Format, InputError } from '../input/file-format.ts';
import type { SentChunk } from '../load/ledger.ts';
import { parquetChunks } from '../parquet/chunks.ts';
import { cutChunks, type KnownChunk } from './cut-chunks.ts';
import type { LineRun } from './line-range.ts';

/** Bytes to send, and how to read them. Each call begins anew, so that they can be sent again. */
export interface Content {
  readonly format: Format;
  /** Absent: all fields are text. */
  readonly typed?: TypedFields;
  readonly stream: () => Readable;
}

/** A chunk as it is sent, whatever the format. */
export interface SendableChunk extends SentChunk {
  /** What keeps it from being stored twice; absent: its name. */
  readonly token?: string;
  readonly content: Content;
  /** Its lines, or some of them, one by one; for a chunk that was refused. */
  readonly records: (only?: LineRun) => Iterable<LineRecord> | AsyncIterable<LineRecord>;
  /** Some of its lines, in their order, as they can be sent. */
  readonly contentOf: (runs: readonly LineRun[]) => Content;
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
  /** Chunks sent at a time. */
  readonly parallel: number;
  /** Columns that no event has are left out instead of refused. */
  readonly ignoreUnknown: boolean;
  readonly knownChunks: (head: string) => Promise<readonly KnownChunk[]>;
  /** See `ChunkOptions`. */
  readonly beginChunk: (head: string) => Promise<readonly KnownChunk[]>;
  readonly onBytes: (bytes: number) => void;
  /** Ends the reading, with an AbortError. */
  readonly signal?: AbortSignal;
}

/** The chunks of a file. @throws {InputError} for a file that cannot be read or whose columns do not fit */
export function chunksOf(source: Source): AsyncGenerator<SendableChunk> {
  return source.fileFormat.format.name === 'parquet' ? parquetChunks(source) : lineChunks(source);
}

async function* lineChunks(source: Source): AsyncGenerator<SendableChunk> {
  const { file, fileFormat, knownChunks, beginChunk } = source;
  const { format, compression } = fileFormat;
  let columns: readonly string[] = [];
  const bytes = await openBytes(file, compression, source.onBytes, source.signal);
  const chunks = cutChunks(bytes, {
    file,
    header: format.name !== 'ndjson',
    csv: format.name === 'csv',
    chunkBytes: evenChunks(source, bytes.size),
    knownChunks,
    beginChunk,
    onHeader: (header) => {
      columns = format.name === 'csv' ? ((parseCsv(header) as string[][])[0] ?? []) : header.split('\t');
      requireColumns(source, columns);
    },
  });
  try {
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
        records: (
          { line, start, end }: Omit<LineRun, 'lines'> = { line: firstLine, start: 0, end: body.length },
        ) => {
          const part = body.subarray(start, end);
          if (format.name === 'ndjson') return ndjsonRecords(part, line);
          return (format.name === 'csv' ? csvRecords : tsvRecords)(part, line, columns);
        },
        contentOf: (runs) => contentOf(runs.map(({ start, end }) => body.subarray(start, end))),
        where: `from line ${firstLine}`,
      };
    }
  } finally {
    await bytes.close();
  }
}

/** A smaller chunk costs more than what an idle sender would have done. */
const leastChunkBytes = 16 << 20;
/** What whole lines may add to a chunk, so that no small one is left at the end. */
const lineSlack = 64 << 10;

/** The size of chunks of a file that keeps every sender busy to its end. */
function evenChunks({ chunkBytes, parallel }: Source, size: number | undefined): number {
  if (size === undefined || size < 2 * leastChunkBytes) return chunkBytes;
  const rounds = Math.ceil(size / (parallel * chunkBytes));
  return Math.min(chunkBytes, Math.ceil(size / (parallel * rounds)) + lineSlack);
}

const lineEnd = Buffer.from('\n');

/** @throws {InputError} for columns that make no events */
export function requireColumns({ file, ignoreUnknown }: Source, columns: readonly string[]): void {
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
