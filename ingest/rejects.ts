import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setImmediate as pause } from 'node:timers/promises';
import { type Store, select } from '../clickhouse/client.ts';
import { deleteChunk } from './deletion.ts';
import { faultsOf, type LineFault, type LineFields } from './line.ts';
import type { LineRun } from './line-runs.ts';
import type { LineRecord } from './records.ts';
import { retrying } from './retry.ts';

/** A line that is no event, as it came. */
export interface RejectedRow {
  readonly line: number;
  readonly faults: readonly LineFault[];
  readonly raw: Buffer;
  readonly fields: LineFields;
}

/** The lines of a chunk that was refused, told apart: of most it is only kept where they are. */
export interface Examined {
  readonly good: readonly LineRun[];
  readonly rejected: readonly RejectedRow[];
  /** Rejected, but only the engine can tell whether it refuses them too. */
  readonly doubtful: readonly (RejectedRow & LineRun)[];
}

/** Between two pauses, in which the load can say that it lives. */
const linesAtOnce = 5_000;

/** Reads a refused chunk line by line. @param ignoreUnknown whether fields that no event has are no fault */
export async function examine(
  records: Iterable<LineRecord> | AsyncIterable<LineRecord>,
  ignoreUnknown: boolean,
): Promise<Examined> {
  const good: GoodRun[] = [];
  const rejected: RejectedRow[] = [];
  const doubtful: (RejectedRow & LineRun)[] = [];
  const take = (record: LineRecord) => {
    const row = judge(record, ignoreUnknown);
    if (!row) extend(good, record);
    else if (row.doubtful) doubtful.push({ ...row, start: record.start, end: record.end, lines: 1 });
    else rejected.push(row);
  };
  let examined = 0;
  if (Symbol.asyncIterator in records) {
    for await (const record of records) {
      if (++examined % linesAtOnce === 0) await pause();
      take(record);
    }
  } else {
    // `for await` would wait a fifth of the time.
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
): (RejectedRow & { doubtful: boolean }) | undefined {
  if (quick && faultsOf(quick, ignoreUnknown).length === 0) return undefined;
  const { fields, faults: unread, doubtful = false } = read();
  const faults = unread.length > 0 ? unread : faultsOf(fields, ignoreUnknown);
  // A line that is kept must not keep its whole chunk.
  return faults.length === 0 ? undefined : { line, raw: Buffer.from(raw), fields, faults, doubtful };
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

/** Keeps rejected rows until they are replayed; keeping them again changes nothing, nor what was replayed since. */
export async function keepRejected(
  store: Store,
  origin: { readonly loadId: string; readonly file: string; readonly chunk: string },
  rejected: readonly RejectedRow[],
): Promise<void> {
  if (rejected.length === 0) return;
  const rows = rejected.map(({ line, faults, raw, fields }) => ({
    line,
    faults: faults.map(({ field, reason }) => [field, reason]),
    // A raw line need not be text.
    raw: raw.toString('base64'),
    fields: Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
  }));
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
      values: Readable.from([rows.map((row) => JSON.stringify(row)).join('\n')], { objectMode: false }),
    });
    await finished(stream.resume());
  });
}
