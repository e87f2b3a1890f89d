import { basename, join } from 'node:path';
import type { Store } from '../../../clickhouse/client.ts';
import { quoted } from '../../../clickhouse/quoted.ts';
import type { Reads } from '../../../clickhouse/reader.ts';
import { judgedPieces } from '../../../ingest/chunks/judged-pieces.ts';
import type { ReadOptions, SendableChunk } from '../../../ingest/chunks/sendable-chunk.ts';
import type { JudgeOptions } from '../../../ingest/event/judge.ts';
import { MappingError, sameNames, type ValidMapping } from '../../../ingest/event/mapping.ts';
import { type FileReading, mappedReading } from '../../../ingest/event/reading.ts';
import { lineIn } from '../../../ingest/event/record-place.ts';
import type { FormatName } from '../../../ingest/formats/formats.ts';
import { chunksAgain } from '../../../ingest/history/chunks-again.ts';
import { sizeOf } from '../../../ingest/input/input.ts';
import { InputError } from '../../../ingest/input/input-error.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { reportTimezone } from '../../../ingest/load/report-timezone.ts';
import type { ExplainedRow } from '../../report/explain/explain-request.ts';
import { sourceParameters } from '../../report/from-clause.ts';
import { counted, formatNumber } from '../command/command.ts';

/** A chunk of a file that adds to a row. */
export interface ChunkPlace {
  readonly chunk: string;
  /** As the ledger has it. */
  readonly file: string;
}

/** What its file says of a chunk today. */
export interface ChunkLines {
  readonly chunk: string;
  readonly file: string;
  /** `unread`: it was not looked for, or not everywhere. */
  readonly found: 'unchanged' | 'changed' | 'missing' | 'unreadable' | 'unread';
  /** Why a chunk, or which of its records are of the row, is not known. */
  readonly why?: string;
  /** The rest is there for what is unchanged. */
  readonly unit?: SendableChunk['unit'];
  readonly first_line?: number;
  readonly last_line?: number;
  /** Records of the row, and the lines of the first ones; absent where these are not known. */
  readonly records?: number;
  readonly record_lines?: readonly number[];
}

export interface LookedAt {
  /** How the files were loaded. */
  readonly mapping: ValidMapping;
  readonly format?: FormatName;
  /** Where files may have gone. */
  readonly movedTo?: string;
  /** What is read of them, about. */
  readonly maxBytes: number;
}

/** Lines that are told of a chunk. */
const mostLines = 20;
const tooMuch = 'more is only read with --all-files';
const filesUnknown =
  'these chunks are in no file here that the replacement names; which files a folder or pattern stood for is not known';
/** Larger chunks of Parquet are not sent to be judged: each is one statement, and held in memory. */
const mostTypedBytes = 128 << 20;

/** Looks for the chunks of a row in their files, and there for the records of the row. What cannot be read is no error. */
export async function explainedLines(
  store: Store,
  reader: Reads,
  row: ExplainedRow,
  places: readonly ChunkPlace[],
  looked: LookedAt,
): Promise<ChunkLines[]> {
  const { mapping } = looked;
  const judge: JudgeOptions = {
    reportTimezone: await reportTimezone(store),
    timezone: mapping.timezone?.name ?? 'UTC',
    dates: mapping.dates,
    // What was rejected is known, and need not be rejected again.
    roundMoney: true,
    requireEventId: false,
  };
  const found: ChunkLines[] = [];
  const bound = boundOf(looked.maxBytes);
  for (const file of new Set(places.map((each) => each.file))) {
    const names = new Set(places.filter((each) => each.file === file).map(({ chunk }) => chunk));
    const recordsOf = (chunk: SendableChunk, id: string) => recordsOfRow(reader, row, chunk, id, judge);
    found.push(...(await linesOf(store, file, names, { ...looked, bound }, recordsOf)));
  }
  return found;
}

/** Ends all reading once so many bytes were read. */
function boundOf(maxBytes: number): Pick<ReadOptions, 'onBytes'> & { readonly signal: AbortSignal } {
  const reading = new AbortController();
  let left = maxBytes;
  const onBytes = (bytes: number) => {
    left -= bytes;
    if (left < 0) reading.abort();
  };
  return { onBytes, signal: reading.signal };
}

type OfRow = Pick<ChunkLines, 'records' | 'record_lines' | 'why'>;
type RecordsOf = (chunk: SendableChunk, id: string) => Promise<OfRow>;

async function linesOf(
  store: Store,
  file: string,
  left: Set<string>,
  { mapping, format, movedTo, bound }: LookedAt & { readonly bound: ReturnType<typeof boundOf> },
  recordsOf: RecordsOf,
): Promise<ChunkLines[]> {
  const found: ChunkLines[] = [];
  const { why, inputs } = inputsOf(file, movedTo);
  let others: Pick<ChunkLines, 'found' | 'why'> = why ? { found: 'unread', why } : { found: 'missing' };
  for (const input of inputs) {
    if (left.size === 0) break;
    const { name } = input;
    try {
      bound.signal.throwIfAborted();
      const looked = { input, reading: lenient(name, mapping), format, ...bound };
      for await (const { chunk, ids } of chunksAgain(store, looked, left)) {
        const { unit, firstLine: first_line, lastLine: last_line } = chunk;
        for (const id of ids) {
          const records = await recordsOf(chunk, id);
          found.push({ chunk: id, file: name, found: 'unchanged', unit, first_line, last_line, ...records });
          left.delete(id);
        }
      }
      if (others.found === 'missing') others = { found: 'changed' };
    } catch (error) {
      if (bound.signal.aborted) others = { found: 'unread', why: tooMuch };
      // ClickHouse may refuse a piece: what else is known is told all the same.
      else
        others = {
          found: 'unreadable',
          why: error instanceof InputError ? error.message : `${name}: ${messageOf(error)}`,
        };
    }
  }
  return [...found, ...[...left].map((chunk) => ({ chunk, file, ...others }))];
}

/** What is where a file may be, and what is to be said where that does not have a chunk. */
function inputsOf(
  file: string,
  movedTo: string | undefined,
): { readonly inputs: readonly LocalFile[]; readonly why?: string } {
  if (file.includes('://')) return { inputs: [], why: 'it is no local file, and is not read' };
  // The ledger has the files of a replacement as they were given, and then what they replaced.
  const [given = file, isReplacement] = file.split(/ (?=--replaces)/);
  const paths = isReplacement ? [file, given, ...given.split(' ')] : [file];
  const moved = movedTo === undefined ? [] : paths.map((path) => join(movedTo, basename(path)));
  const inputs = [...new Set([...paths, ...moved])]
    .map((path) => new LocalFile(path))
    .filter((input) => sizeOf(input) !== undefined);
  return { inputs, ...(isReplacement && { why: filesUnknown }) };
}

/** Reads what was loaded with any flags: what is not an event is left out when the records of a row are told. */
function lenient(file: string, mapping: ValidMapping): FileReading {
  const reading = mappedReading(file, { ...mapping, ignoreUnknown: true });
  return {
    ...reading,
    mappingOf: (columns) => {
      try {
        return reading.mappingOf(columns);
      } catch (error) {
        // It has other columns, so it was loaded through another mapping.
        if (error instanceof InputError || error instanceof MappingError) return sameNames(columns);
        throw error;
      }
    },
  };
}

/** The records of a chunk, called `id` in the ledger, that are events of a row, and were not rejected. */
async function recordsOfRow(
  reader: Reads,
  { plan, row }: ExplainedRow,
  chunk: SendableChunk,
  id: string,
  judge: JudgeOptions,
): Promise<OfRow> {
  if (id !== chunk.id)
    return {
      why: 'loaded through another mapping: give it (--mapping, --map, …) to see which belong to the row',
    };
  if (chunk.unit === 'row' && chunk.bytes > mostTypedBytes)
    return { why: 'the chunk has more than 128 MiB, so it is not told which belong to the row' };
  const { owner } = plan.family;
  let records = 0;
  const lines: number[] = [];
  for await (const piece of judgedPieces(chunk, judge)) {
    const conditions = [
      piece.isEvent,
      `e.${owner} = {account:String}`,
      `toDate(e.event_time, ${quoted(judge.reportTimezone)}) BETWEEN {first:Date} AND {last:Date}`,
      ...Object.keys(row).map((key) => `e.${key} = {row_${key}:String}`),
      'e.line NOT IN (SELECT r.line FROM rejected_rows AS r WHERE chunk = {chunk:String})',
    ];
    const ids = Object.entries(row).map(([key, value]) => [`row_${key}`, value]);
    const [counted] = await reader.rows<{ records: number; lines: number[] }>({
      ...piece,
      query: `SELECT toFloat64(count()) AS records, groupArraySorted(${mostLines})(toFloat64(at)) AS lines
        FROM (SELECT DISTINCT ${lineIn('e.line')} AS at FROM (${piece.records}) AS e WHERE ${conditions.join(' AND ')})`,
      params: { ...piece.params, ...sourceParameters(plan), ...Object.fromEntries(ids), chunk: id },
    });
    records += counted?.records ?? 0;
    lines.push(...(counted?.lines ?? []));
  }
  return { records, record_lines: lines.slice(0, mostLines) };
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
const number = (value: number | undefined) => formatNumber(value ?? 0);

/** A line for people on each chunk that was found, and on each file whose chunks were not. */
export function describeLines(found: readonly ChunkLines[]): string[] {
  const told = found.map(({ file, ...each }) => {
    const { found: how, why, unit = '', first_line, last_line, records, record_lines = [] } = each;
    if (how === 'missing')
      return `${file}: there is no file to read at this path (--moved-to names another folder)`;
    if (how === 'unread') return `${file}: ${why}`;
    if (how === 'unreadable') return `${why}`;
    if (how === 'changed')
      return `${file}: the file has other bytes now, or it was loaded with other options (--mapping, --skip-lines, …): give the same options here`;
    const range = `${file}, ${unit}s ${number(first_line)} to ${number(last_line)}: unchanged`;
    if (records === undefined) return `${range}; ${why}`;
    if (records === 0) return `${range}; none of its records belongs to the row`;
    const more = records - record_lines.length;
    const lines = `${record_lines.map(number).join('; ')}${more > 0 ? ` and ${number(more)} more` : ''}`;
    return `${range}; the row has ${counted(records, 'record')} there: ${unit} ${lines}`;
  });
  return [...new Set(told)];
}
