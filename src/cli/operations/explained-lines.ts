import { basename, join } from 'node:path';
import { familyOf } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';
import type { Store } from '../../../clickhouse/client.ts';
import type { Reads } from '../../../clickhouse/reader.ts';
import { judgedPieces } from '../../../ingest/chunks/judged-pieces.ts';
import type { SendableChunk } from '../../../ingest/chunks/sendable-chunk.ts';
import type { JudgeOptions } from '../../../ingest/event/judge.ts';
import { MappingError, sameNames, type ValidMapping } from '../../../ingest/event/mapping.ts';
import { type FileReading, mappedReading } from '../../../ingest/event/reading.ts';
import { lineIn } from '../../../ingest/event/record-place.ts';
import { quoted } from '../../../ingest/event/sql.ts';
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
  readonly first_byte: number;
  readonly bytes: number;
}

/** What its file says of a chunk today. */
export interface ChunkLines {
  readonly chunk: string;
  readonly file: string;
  /** `unread`: it was not looked at. */
  readonly found: 'unchanged' | 'changed' | 'missing' | 'unreadable' | 'unread';
  /** Of what was not read. */
  readonly why?: string;
  /** The rest is there for what is unchanged. */
  readonly unit?: SendableChunk['unit'];
  readonly first_line?: number;
  readonly last_line?: number;
  /** Records of the row, and the lines of the first ones; absent where they were loaded through another mapping. */
  readonly records?: number;
  readonly record_lines?: readonly number[];
}

export interface LookedAt {
  /** How the files were loaded. */
  readonly mapping: ValidMapping;
  readonly format?: FormatName;
  /** Where files may have gone. */
  readonly movedTo?: string;
  /** However large they are. */
  readonly allFiles?: boolean | undefined;
}

/** Lines that are told of a chunk. */
const mostLines = 20;
/** What is read without `allFiles`. */
const mostBytes = 1 << 30;
/** What a chunk costs beside its bytes is as much as these cost. */
const leastBytes = 1 << 20;

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
  let bytesRead = 0;
  for (const file of new Set(places.map((each) => each.file))) {
    const own = places.filter((each) => each.file === file);
    const inputs = inputsOf(file, looked.movedTo);
    const upTo = own.reduce((most, { first_byte, bytes }) => Math.max(most, first_byte + bytes), 0);
    if (inputs.length > 0) bytesRead += Math.max(upTo, own.length * leastBytes);
    const isTooMuch = inputs.length > 0 && bytesRead > mostBytes && !looked.allFiles;
    const why = file.includes('://')
      ? 'it is no local file'
      : isTooMuch && 'there is more than 1 GiB to read: --all-files reads it';
    if (why) found.push(...own.map(({ chunk }) => ({ chunk, file, found: 'unread' as const, why })));
    else {
      const recordsOf = (chunk: SendableChunk, id: string) => recordsOfRow(reader, row, chunk, id, judge);
      const names = new Set(own.map(({ chunk }) => chunk));
      found.push(...(await linesOf(store, inputs, names, { file, ...looked }, recordsOf)));
    }
  }
  return found;
}

type RecordsOf = (chunk: SendableChunk, id: string) => Promise<Pick<ChunkLines, 'records' | 'record_lines'>>;

async function linesOf(
  store: Store,
  inputs: readonly LocalFile[],
  left: Set<string>,
  { file, mapping, format }: LookedAt & { readonly file: string },
  recordsOf: RecordsOf,
): Promise<ChunkLines[]> {
  const found: ChunkLines[] = [];
  let others: Pick<ChunkLines, 'found' | 'why'> = { found: 'missing' };
  for (const input of inputs) {
    if (left.size === 0) break;
    const { name } = input;
    others = { found: 'changed' };
    try {
      const looked = { input, reading: lenient(name, mapping), ...(format && { format }) };
      for await (const { chunk, ids } of chunksAgain(store, looked, left)) {
        const { unit, firstLine: first_line, lastLine: last_line } = chunk;
        for (const id of ids) {
          const records = id === chunk.id ? await recordsOf(chunk, id) : {};
          found.push({ chunk: id, file: name, found: 'unchanged', unit, first_line, last_line, ...records });
          left.delete(id);
        }
      }
    } catch (error) {
      if (!(error instanceof InputError || error instanceof MappingError)) throw error;
      others = { found: 'unreadable', why: error.message };
    }
  }
  return [...found, ...[...left].map((chunk) => ({ chunk, file, ...others }))];
}

/** What is where a file may be. The ledger has those of a replacement in one line, with what they replaced. */
function inputsOf(file: string, movedTo: string | undefined): LocalFile[] {
  const [files = file, isReplacement] = file.split(/ (?=--replaces)/);
  const paths = [files, ...(isReplacement ? files.split(' ') : [])];
  const moved = movedTo === undefined ? [] : paths.map((path) => join(movedTo, basename(path)));
  return [...new Set([...paths, ...moved])]
    .map((path) => new LocalFile(path))
    .filter((input) => sizeOf(input) !== undefined);
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

/** The records of a chunk that are events of a row, and were not rejected. */
async function recordsOfRow(
  reader: Reads,
  { plan, row }: ExplainedRow,
  chunk: SendableChunk,
  id: string,
  judge: JudgeOptions,
): Promise<Required<Pick<ChunkLines, 'records' | 'record_lines'>>> {
  const { owner } = familyOf(catalog, plan.breakdown.family);
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

const number = (value: number | undefined) => formatNumber(value ?? 0);

/** A line for people on each chunk that was found, and on each file whose chunks were not. */
export function describeLines(found: readonly ChunkLines[]): string[] {
  const told = found.map(({ file, ...each }) => {
    const { found: how, why, unit = '', first_line, last_line, records, record_lines = [] } = each;
    if (how === 'missing') return `${file}: there is no such file here (--moved-to names another folder)`;
    if (how === 'unread') return `${file}: not read, ${why}`;
    if (how === 'unreadable') return `${why}`;
    if (how === 'changed')
      return `${file}: has other bytes now, or was loaded with options (--mapping, --skip-lines, …): give the same here`;
    const range = `${file}, ${unit}s ${number(first_line)} to ${number(last_line)}: unchanged`;
    if (records === undefined)
      return `${range}, loaded through another mapping: give it (--mapping, --map, …) to see which ${unit}s belong to the row`;
    const more = records - record_lines.length;
    const lines = `${record_lines.map(number).join('; ')}${more > 0 ? ` and ${number(more)} more` : ''}`;
    return `${range}; the row has ${counted(records, 'record')} there: ${unit} ${lines}`;
  });
  return [...new Set(told)];
}
