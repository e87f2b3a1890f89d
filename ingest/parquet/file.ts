import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync, type RowGroup } from 'hyparquet';
import type { Input } from '../input/input.ts';
import { InputError, naming } from '../input/input-error.ts';
import { feetOf, isEncrypted, magic, type RowGroupRun } from './footer.ts';

/** A file whose footer agrees with itself and with the size of the file. */
export interface ParquetFile {
  readonly metadata: FileMetaData;
  /** Bytes. */
  readonly size: number;
  readonly parts: readonly ParquetPart[];
}

export interface ParquetPart extends RowGroupRun {
  /** What makes it a file, after the magic bytes and its own bytes. */
  readonly foot: Buffer;
}

/** What makes a chunk. A row group is never cut. Changed, files loaded before are not recognised any more. */
const leastRows = 500_000;
const mostBytes = 192 << 20;

/** Of an input that was sent. While a footer is taken apart nobody else gets an answer: 1.5 s for one of this size. */
const mostFooterBytes = 4 << 20;

/** Reads the footer only. @throws {InputError} for a file that cannot be read, is damaged or is encrypted */
export async function openParquet(input: Input): Promise<ParquetFile> {
  const path = input.name;
  const file = await bufferOf(input);
  const size = file.byteLength;
  const ending = Buffer.from(await file.slice(Math.max(0, size - 8), size));
  if (ending.toString('latin1').endsWith('PARE')) throw encrypted(path);
  if (input.isSent && ending.length === 8 && ending.readUInt32LE() > mostFooterBytes)
    throw new InputError(
      `${path}: its footer has over ${mostFooterBytes >> 20} MiB, or is damaged; send less at once, or larger row groups`,
    );
  const metadata = await parquetMetadataAsync(file, { geoparquet: false }).catch((cause: unknown) => {
    // What went wrong when the file was read.
    if (cause instanceof InputError) throw cause;
    throw new InputError(`${path}: is not a Parquet file, or it is cut off`, { cause });
  });
  const end = size - 8 - metadata.metadata_length;
  const footer = new Uint8Array(await file.slice(end, size - 8));
  const groups = metadata.row_groups.map((group, n) => placed(path, metadata, group, n, end));
  const rows = groups.reduce((sum, group) => sum + group.rows, 0);
  if (rows !== Number(metadata.num_rows)) {
    throw damaged(path, `it is to have ${metadata.num_rows} rows, its row groups have ${rows}`);
  }
  refuseOverlaps(
    path,
    groups.flatMap(({ columns }) => columns),
  );
  return { metadata, size, parts: partsOf(path, footer, metadata, runsOf(groups)) };
}

/** @throws {InputError} for an input that is not there or comes only once */
async function bufferOf(input: Input): Promise<AsyncBuffer> {
  const byteLength = await naming(input.name, () => input.size());
  if (byteLength === undefined)
    throw new InputError(
      `${input.name}: Parquet cannot be read from standard input or a pipe, it needs a file`,
    );
  return {
    byteLength,
    slice: async (start, end = byteLength) => {
      const bytes = new Uint8Array(end - start);
      await naming(input.name, () => input.readRange(Buffer.from(bytes.buffer), start));
      return bytes.buffer;
    },
  };
}

function partsOf(
  path: string,
  footer: Uint8Array,
  metadata: FileMetaData,
  runs: readonly RowGroupRun[],
): ParquetPart[] {
  try {
    if (isEncrypted(footer)) throw encrypted(path);
    const footOf = feetOf(footer, metadata);
    return runs.map((run) => ({ ...run, foot: footOf(run) }));
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw damaged(path, `the footer cannot be read: ${cause.message}`);
  }
}

interface Range {
  readonly start: number;
  readonly end: number;
}

interface PlacedGroup extends Range {
  readonly rows: number;
  readonly columns: readonly Range[];
}

/** Where the bytes of a row group are. @param limit where the footer begins */
function placed(
  path: string,
  { schema }: FileMetaData,
  group: RowGroup,
  index: number,
  limit: number,
): PlacedGroup {
  const name = `row group ${index + 1}`;
  const rows = Number(group.num_rows);
  if (!(Number.isSafeInteger(rows) && rows >= 0)) throw damaged(path, `${name} is to have ${rows} rows`);
  const leaves = schema.filter(({ type }) => type !== undefined);
  if (group.columns.length !== leaves.length) {
    throw damaged(path, `${name} has ${group.columns.length} columns instead of ${leaves.length}`);
  }
  const columns = group.columns.map((column, n): Range => {
    if (column.file_path) throw new InputError(`${path}: has columns in another file, ${column.file_path}`);
    if (column.crypto_metadata || column.encrypted_column_metadata) throw encrypted(path);
    const { path_in_schema, num_values, total_compressed_size, data_page_offset, dictionary_page_offset } =
      column.meta_data ?? {};
    const what = `${name}, column ${path_in_schema?.join('.') ?? n + 1}`;
    // Without a dictionary some writers set 0.
    const first = Number(data_page_offset);
    const dictionary = Number(dictionary_page_offset ?? 0);
    const start = dictionary > 0 ? Math.min(dictionary, first) : first;
    const end = start + Number(total_compressed_size);
    const whole = [first, dictionary, end].every(Number.isSafeInteger);
    if (rows > 0 && !(whole && start >= magic.length && first < end && end <= limit)) {
      throw damaged(path, `${what} is to be at bytes ${start} to ${end}`);
    }
    const flat = path_in_schema?.length === 1 && leaves[n]?.repetition_type !== 'REPEATED';
    if (flat && Number(num_values) !== rows) {
      throw damaged(path, `${what} has ${num_values} values for ${rows} rows`);
    }
    return { start, end };
  });
  const start = columns.reduce((least, column) => Math.min(least, column.start), limit);
  const end = columns.reduce((most, column) => Math.max(most, column.end), 0);
  return { rows, start, end, columns: rows > 0 ? columns : [] };
}

function refuseOverlaps(path: string, columns: readonly Range[]): void {
  const inOrder = [...columns].sort((a, b) => a.start - b.start);
  for (const [n, { start }] of inOrder.entries()) {
    if (start < (inOrder[n - 1]?.end ?? 0)) throw damaged(path, `two columns are to be at byte ${start}`);
  }
}

/** Which row groups make a chunk follows from the file alone, so that it is always cut alike. */
function runsOf(groups: readonly PlacedGroup[]): RowGroupRun[] {
  const runs: (RowGroupRun & { groups: number[] })[] = [];
  let firstRow = 1;
  for (const [index, { rows, start, end }] of groups.entries()) {
    if (rows === 0) continue;
    const last = runs.at(-1);
    const joined = last && { start: Math.min(last.start, start), end: Math.max(last.end, end) };
    if (last && joined && last.rows < leastRows && joined.end - joined.start <= mostBytes) {
      last.groups.push(index);
      runs.splice(-1, 1, { ...last, ...joined, rows: last.rows + rows });
    } else {
      runs.push({ firstRow, rows, start, end, groups: [index] });
    }
    firstRow += rows;
  }
  return runs;
}

function damaged(path: string, what: string): InputError {
  return new InputError(`${path}: is a damaged Parquet file: ${what}`);
}

function encrypted(path: string): InputError {
  return new InputError(`${path}: is encrypted, which is not supported; write it without encryption`);
}
