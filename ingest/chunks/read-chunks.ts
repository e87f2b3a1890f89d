import { Readable } from 'node:stream';
import { parse as parseCsv } from 'csv-parse/sync';
import { csvRecords, ndjsonRecords, tsvRecords } from '../event/line-records.ts';
import { openBytes } from '../input/byte-source.ts';
import { parquetChunks } from '../parquet/chunks.ts';
import { cutChunks } from './cut-chunks.ts';
import type { LineRun } from './line-range.ts';
import { type ChunkReadOptions, type Content, requireColumns, type SendableChunk } from './sendable-chunk.ts';

/** The chunks of a file. @throws {InputError} for a file that cannot be read or whose columns do not fit */
export function chunksOf(source: ChunkReadOptions): AsyncGenerator<SendableChunk> {
  return source.fileFormat.format.name === 'parquet' ? parquetChunks(source) : lineChunks(source);
}

async function* lineChunks(source: ChunkReadOptions): AsyncGenerator<SendableChunk> {
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
function evenChunks({ chunkBytes, parallel }: ChunkReadOptions, size: number | undefined): number {
  if (size === undefined || size < 2 * leastChunkBytes) return chunkBytes;
  const rounds = Math.ceil(size / (parallel * chunkBytes));
  return Math.min(chunkBytes, Math.ceil(size / (parallel * rounds)) + lineSlack);
}

const lineEnd = Buffer.from('\n');
