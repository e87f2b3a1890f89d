import { parse as parseCsv } from 'csv-parse/sync';
import type { RecordSource } from '../event/record-source.ts';
import { type ByteSource, openBytes } from '../input/byte-source.ts';
import { InputError } from '../input/input-error.ts';
import { cellSource } from '../sources/cell-source.ts';
import { jsonSource } from '../sources/json-source.ts';
import type { Framing } from '../sources/text-records.ts';
import { cutChunks } from './cut-chunks.ts';
import { framedRecords } from './framed-records.ts';
import { parquetChunks } from './parquet-chunks.ts';
import type { ChunkReadOptions, SendableChunk } from './sendable-chunk.ts';
import type { Piece } from './take-chunk.ts';

/** The chunks of a file. @throws {InputError} for a file that cannot be read or whose columns do not fit */
export function chunksOf(options: ChunkReadOptions): AsyncGenerator<SendableChunk> {
  return options.fileFormat.format.name === 'parquet' ? parquetChunks(options) : textChunks(options);
}

async function* textChunks(options: ChunkReadOptions): AsyncGenerator<SendableChunk> {
  const { fileFormat, reading, knownChunks, beginChunk } = options;
  const { format, compression } = fileFormat;
  const delimiter = format.name === 'tsv' ? '\t' : reading.delimiter;
  let sourceOf = (_framing: Framing, _plainCells = false): RecordSource => {
    throw new Error('the first line comes before the first chunk');
  };
  const bytes = await openBytes(options.file, compression, options.onBytes, options.signal);
  const chunks = cutChunks(bytes, {
    file: options.file,
    skipLines: reading.skipLines,
    header: format.name !== 'ndjson' && reading.header,
    ...(format.name === 'csv' && { csvDelimiter: delimiter.charCodeAt(0) }),
    fingerprint: reading.fingerprint,
    salt: reading.salt,
    chunkBytes: evenChunks(options, bytes),
    pieceBytes: options.pieceBytes ?? pieceBytes,
    parallel: options.parallel,
    knownChunks,
    beginChunk,
    onFirstLine: (line) => {
      if (format.name === 'ndjson') {
        const mapping = reading.mappingOf();
        sourceOf = (framing) => jsonSource(framing, mapping, reading.ignoreUnknown);
        return;
      }
      const columns = columnsOf(options, line, delimiter);
      const mapping = reading.mappingOf(columns);
      const kind = format.name === 'csv' ? 'csv' : 'tsv';
      sourceOf = (framing, plainCells) =>
        cellSource({ framing, format: kind, delimiter, columns, mapping, plainCells });
    },
  });
  try {
    for await (const { held, pieces, multiLine, plainCells, ...chunk } of chunks) {
      const framing = format.name === 'csv' ? { delimiter } : {};
      const { firstLine } = chunk;
      yield {
        ...chunk,
        // Only of what is sent: to make it takes as long as to read a small file.
        get source() {
          return sourceOf(multiLine ? 'records' : 'lines', plainCells);
        },
        stream: () => (multiLine ? recordsOf(pieces(), framing) : linesOf(pieces())),
        ...(held && {
          bundled: {
            get source() {
              return sourceOf('records');
            },
            records: (mark) => Buffer.concat([...framedRecords(held, { ...framing, firstLine }, mark)]),
          },
        }),
      };
    }
  } finally {
    await bytes.close();
  }
}

async function* linesOf(pieces: AsyncIterable<Piece>): AsyncGenerator<Buffer> {
  for await (const { bytes } of pieces) yield bytes;
  yield lineEnd;
}

async function* recordsOf(
  pieces: AsyncIterable<Piece>,
  framing: { readonly delimiter?: string },
): AsyncGenerator<Buffer> {
  for await (const { bytes, firstLine } of pieces) yield* framedRecords(bytes, { ...framing, firstLine });
}

/** The names of the columns; without a header 1, 2, … @throws {InputError} for a line that names none */
function columnsOf(
  { file, fileFormat, reading }: ChunkReadOptions,
  line: string,
  delimiter: string,
): readonly string[] {
  const cells = fileFormat.format.name === 'csv' ? csvCells(file, line, delimiter) : line.split('\t');
  if (!reading.header) return cells.map((_, n) => `${n + 1}`);
  const twice = cells.find((name, n) => name !== '' && cells.indexOf(name) !== n);
  if (twice !== undefined) throw new InputError(`${file}: column ${twice} appears twice`);
  return cells;
}

function csvCells(file: string, line: string, delimiter: string): string[] {
  try {
    return (parseCsv(line, { delimiter, relax_quotes: true }) as string[][])[0] ?? [];
  } catch (cause) {
    throw new InputError(`${file}: the first line is not CSV; is --format right?`, { cause });
  }
}

/** Large enough for few reads, small enough for two of them to be no matter. */
const pieceBytes = 4 << 20;
/** Two chunks on their way and a third that is read take 200 MB of the process's 300, which is what is left beside Node. */
const mostHeldBytes = 48 << 20;
/** A smaller chunk costs more than what an idle sender would have done. */
const minChunkBytes = 16 << 20;
/** What whole lines may add to a chunk, so that no small one is left at the end. */
const lineSlack = 64 << 10;

/** The size of chunks of a file that keeps every sender busy to its end. */
function evenChunks(options: ChunkReadOptions, { size, readAgain }: ByteSource): number {
  const chunkBytes = readAgain ? options.chunkBytes : Math.min(options.chunkBytes, mostHeldBytes);
  if (size === undefined) return chunkBytes;
  // More than there is, for which no memory is set aside.
  if (size < 2 * minChunkBytes) return Math.min(chunkBytes, size + 1);
  const rounds = Math.ceil(size / (options.parallel * chunkBytes));
  return Math.min(chunkBytes, Math.ceil(size / (options.parallel * rounds)) + lineSlack);
}

const lineEnd = Buffer.from('\n');
