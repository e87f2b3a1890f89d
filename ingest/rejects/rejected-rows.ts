import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setImmediate as pause } from 'node:timers/promises';
import { type Store, select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import type { LineRun } from '../chunks/line-range.ts';
import { faultsOf, type LineFault, type LineFields } from '../event/event-rules.ts';
import type { LineRecord } from '../event/line-records.ts';
import { deleteChunk } from '../load/delete-chunk.ts';

/** A line that is no event, as it came. */
export interface RejectedRow {
  readonly line: number;
  readonly faults: readonly LineFault[];
  readonly raw: Buffer;
  readonly fields: LineFields;
}

/**
 * A rejected line: where it is, and why only where that is not told again by reading it. A file can be wrong from its
 * first line to its last, and hold millions of them.
 */
export interface RejectedLine extends LineRun {
  readonly row?: RejectedRow;
}

/** The lines of a chunk that was refused, told apart: it is only kept where they are. */
export interface Examined {
  readonly good: readonly LineRun[];
  readonly rejected: readonly RejectedLine[];
  /** Rejected, but only the engine can tell whether it refuses them too. */
  readonly doubtful: readonly RejectedLine[];
}

/** Between two pauses, in which the load can say that it lives. */
const linesAtOnce = 5_000;

/** Reads a refused chunk line by line. @param ignoreUnknown whether fields that no event has are no fault */
export async function examine(
  records: Iterable<LineRecord> | AsyncIterable<LineRecord>,
  ignoreUnknown: boolean,
): Promise<Examined> {
  const good: GoodRun[] = [];
  const rejected: RejectedLine[] = [];
  const doubtful: RejectedLine[] = [];
  const take = (record: LineRecord) => {
    const judged = judge(record, ignoreUnknown);
    if (!judged) {
      extend(good, record);
      return;
    }
    const { line, start, end } = record;
    // What has no place in the chunk (Parquet) is not found again in a moment.
    const rejectedLine = { line, lines: 1, start, end, ...(end === 0 && { row: judged.row }) };
    (judged.doubtful ? doubtful : rejected).push(rejectedLine);
  };
  let examined = 0;
  if (Symbol.asyncIterator in records) {
    for await (const record of records) {
      if (++examined % linesAtOnce === 0) await pause();
      take(record);
    }
  } else {
    // Not `for await`, too: its wait for each line was a fifth of the time.
    for (const record of records) {
      if (++examined % linesAtOnce === 0) await pause();
      take(record);
    }
  }
  return { good, rejected, doubtful };
}

type GoodRun = { -readonly [Name in keyof LineRun]: LineRun[Name] };

/** Adds a line to the last run where nothing but a line end is between them. */
function extend(runs: GoodRun[], { line, start, end }: LineRecord): void {
  const last = runs.at(-1);
  const gap = start - (last?.end ?? 0);
  const next = last && line === last.line + last.lines;
  if (last && next && (gap === 1 || gap === 2 || end === 0)) {
    last.end = end;
    last.lines++;
  } else runs.push({ line, lines: 1, start, end });
}

/** What is wrong with a line; undefined when it is an event. */
function judge(
  { line, raw, quick, read }: LineRecord,
  ignoreUnknown: boolean,
): { row: RejectedRow; doubtful: boolean } | undefined {
  if (quick && faultsOf(quick, ignoreUnknown).length === 0) return undefined;
  const { fields, faults: unread, doubtful = false } = read();
  const faults = unread.length > 0 ? unread : faultsOf(fields, ignoreUnknown);
  return faults.length === 0 ? undefined : { row: { line, raw, fields, faults }, doubtful };
}

/** Reads rejected lines once more, each by itself. */
export async function* readRejected(
  chunk: { records(only: LineRun): Iterable<LineRecord> | AsyncIterable<LineRecord> },
  lines: Iterable<RejectedLine>,
  ignoreUnknown: boolean,
): AsyncGenerator<RejectedRow> {
  for (const rejected of lines) {
    if (rejected.row) yield rejected.row;
    else {
      for await (const record of chunk.records(rejected)) {
        const judged = judge(record, ignoreUnknown);
        if (judged) yield judged.row;
      }
    }
  }
}

/**
 * Forgets what an earlier attempt has rejected of a chunk, which may have read it by other rules, or found it at
 * other lines; not what is replayed.
 */
export async function forgetRejected(store: Store, chunk: string): Promise<void> {
  const open = "replay_id = ''";
  const query = `SELECT 1 FROM rejected_rows WHERE chunk = {chunk:String} AND ${open} LIMIT 1`;
  if ((await retrying(() => select(store, query, { chunk }))).length === 0) return;
  await deleteChunk(store, 'rejected_rows', chunk, open);
}

/**
 * Keeps rejected rows until they are replayed; keeping them again changes nothing, nor what was replayed since.
 * @param rejected reads them; called again where they have to be sent again
 */
export async function keepRejected(
  store: Store,
  origin: { readonly loadId: string; readonly file: string; readonly chunk: string },
  rejected: () => AsyncIterable<RejectedRow>,
): Promise<void> {
  await retrying(async () => {
    const { stream } = await store.exec({
      query: `INSERT INTO rejected_rows (chunk, load_id, file, line, faults, raw, fields)
              SELECT {chunk:String}, {loadId:String}, {file:String}, line, faults, base64Decode(raw), fields
              FROM input('line UInt64, faults Array(Tuple(String, String)), raw String, fields Map(String, String)')
              WHERE line NOT IN (SELECT r.line FROM rejected_rows AS r FINAL WHERE r.chunk = {chunk:String} AND r.replay_id != '')
              FORMAT JSONEachRow`,
      query_params: { ...origin },
      // Half a surrogate pair is kept as it was written.
      clickhouse_settings: { input_format_json_throw_on_bad_escape_sequence: 0 },
      values: Readable.from(jsonLines(rejected()), { objectMode: false }),
    });
    await finished(stream.resume());
  });
}

async function* jsonLines(rows: AsyncIterable<RejectedRow>): AsyncGenerator<string> {
  let text = '';
  for await (const { line, faults, raw, fields } of rows) {
    const row = {
      line,
      faults: faults.map(({ field, reason }) => [field, reason]),
      // A raw line need not be text.
      raw: raw.toString('base64'),
      fields: Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
    };
    text += `${JSON.stringify(row)}\n`;
    if (text.length < 1 << 20) continue;
    yield text;
    text = '';
  }
  yield text;
}
