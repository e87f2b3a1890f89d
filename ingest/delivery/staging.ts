import { text } from 'node:stream/consumers';
import { eventColumns } from '../../catalog/events.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { onShards } from '../../clickhouse/cluster/on-nodes.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import { insertSettings } from '../event/insert-settings.ts';
import { judgedColumns } from '../event/judge.ts';
import { fileOrder, lineIn } from '../event/record-place.ts';
import { inRuns } from '../ledger/change-chunks.ts';
import { ask, type ChunkBalance, type Ledger, repeated } from '../ledger/ledger.ts';
import { commentOf } from '../ledger/loads-at-work.ts';
import type { RejectedRow } from '../rejects/rejected-rows.ts';
import { hasTime, inFuture, isEarly, type OddDays } from './odd-days.ts';

/** What is held back of a batch, which is one chunk or several: its events would be stored. */
export interface StagedCounts extends ChunkBalance, OddDays {}

const held = 'batch = {batch:String}';
const isEvent = '(empty(faults) AND NOT left_out)';
/** How many events a dry run shows. */
const sampleRows = 5;

/** The partition that a chunk is held back in by itself: no other load's. */
export const heldBy = (chunk: string, loadId: string): string => `${chunk} ${loadId}`;

/**
 * Held-back events whose event_id is not yet present on their day. What an earlier attempt at the same chunk stored does not
 * count as present. Only ids of the chunk are remembered: all those of a day of 10 million events took 2.5 times the CPU,
 * and memory for as many as there are.
 */
const isNew = `(event_id, day) NOT IN (
  SELECT event_id, day FROM events WHERE chunk != {chunk:String}
    AND day IN (SELECT DISTINCT day FROM incoming_staging WHERE ${held})
    AND event_id IN (SELECT event_id FROM incoming_staging WHERE ${held}))`;

const counted = `toFloat64(countIf(notEmpty(faults))) AS rejectedRows, toFloat64(countIf(${isEvent})) AS good,
  toFloat64(countIf(left_out)) AS leftOut,
  toFloat64(countIf(${isEvent} AND ${inFuture})) AS future, toFloat64(countIf(${isEvent} AND ${isEarly})) AS early`;
type Counted = Omit<StagedCounts, 'rows' | 'duplicates'> & { readonly good: number };

/** A chunk that is held back. */
interface HeldChunk {
  readonly batch: string;
  /** How many were cut. */
  readonly records: number;
  /** Its name, if events whose id is present are left out. */
  readonly dedupe: string | undefined;
}

/** Counts what is held back of a chunk, each record once. */
export async function stagedCounts(ledger: Ledger, chunk: HeldChunk): Promise<StagedCounts> {
  const { batch, records, dedupe } = chunk;
  const counts = await (dedupe === undefined
    ? countedTogether(ledger, batch)
    : countedFrom(ledger, chunk, `incoming_staging WHERE ${held}`));
  const { rows, duplicates, rejectedRows, leftOut } = counts;
  if (rows + duplicates + rejectedRows + leftOut <= records) return counts;
  // An insert whose answer was lost has gone on beside the one that came in its place. A token of theirs would not do: a
  // killed server can remember that of a part which it has lost.
  const once = `(SELECT event_id, day, faults, left_out FROM incoming_staging WHERE ${held} LIMIT 1 BY line)`;
  return countedFrom(ledger, chunk, once);
}

async function countedFrom(
  ledger: Ledger,
  { batch, dedupe }: HeldChunk,
  from: string,
): Promise<StagedCounts> {
  const isNewEvent = `uniqExactIf((event_id, day), ${isEvent} AND ${isNew})`;
  const query = `SELECT ${counted}, ${dedupe === undefined ? 'good' : `toFloat64(${isNewEvent})`} AS rows FROM ${from}`;
  const params = { batch, chunk: dedupe ?? '' };
  const [row] = await ask<Counted & { readonly rows: number }>(ledger, query, params);
  if (!row) throw new Error('ClickHouse sent no row');
  const { good, ...counts } = row;
  return { ...counts, duplicates: good - counts.rows };
}

const countedTogether = repeated<string, StagedCounts>(async (store, batches) => {
  const query = `SELECT ${counted}, batch FROM incoming_staging WHERE batch IN {batches:Array(String)} GROUP BY batch`;
  const found = await select<Counted & { readonly batch: string }>(store, query, { batches });
  const none = { good: 0, rejectedRows: 0, leftOut: 0, future: 0, early: 0 };
  return batches.map((batch) => {
    const { good, rejectedRows, leftOut, future, early } = found.find((row) => row.batch === batch) ?? none;
    return { rows: good, duplicates: 0, rejectedRows, leftOut, future, early };
  });
});

/** The first held-back rejected rows, in the order of the file. */
export function stagedRejects(ledger: Ledger, batch: string, max: number): Promise<RejectedRow[]> {
  // Twice as many: an insert whose answer was lost may have gone on beside the one that came in its place.
  const query = `SELECT toFloat64(f.line) AS line, faults FROM (
      SELECT line, faults FROM incoming_staging AS s WHERE ${held} AND notEmpty(faults)
      ORDER BY ${fileOrder('s.line')} LIMIT {twice:UInt32}) AS f
    ORDER BY ${fileOrder('f.line')} LIMIT 1 BY f.line LIMIT {max:UInt32}`;
  return ask<RejectedRow>(ledger, query, { batch, max, twice: 2 * max });
}

/** Whether some held-back event has another time than midnight. */
export async function stagedTimes(ledger: Ledger, batch: string, timezone: string): Promise<boolean> {
  const query = `SELECT 1 FROM incoming_staging WHERE ${held} AND ${isEvent} AND ${hasTime} LIMIT 1`;
  return (await ask(ledger, query, { batch, timezone })).length > 0;
}

/** The first held-back events as a table for people; columns without a value are left out. */
export async function stagedSample(store: Store, batch: string): Promise<string> {
  const first = `SELECT * FROM incoming_staging AS s WHERE ${held} AND ${isEvent} ORDER BY ${fileOrder('s.line')} LIMIT ${sampleRows}`;
  const used = eventColumns.map((name) => `countIf(toString(${name}) NOT IN ('', '0', 'false')) AS ${name}`);
  const [counts] = await select<Record<string, string>>(store, `SELECT ${used.join(', ')} FROM (${first})`, {
    batch,
  });
  const shown = eventColumns.filter((name) => Number(counts?.[name]) > 0);
  if (shown.length === 0) return '';
  const answer = await store.exec({
    query: `SELECT ${lineIn('s.line')} AS line, ${shown.map((name) => `toString(s.${name}) AS ${name}`).join(', ')} FROM (${first}) AS s FORMAT PrettyCompactMonoBlock`,
    query_params: { batch },
    clickhouse_settings: { output_format_pretty_color: 0, output_format_pretty_row_numbers: 0 },
  });
  return text(answer.stream);
}

/** The chunks of which something is held back in a batch, and their heads. */
export function stagedChunks(
  ledger: Ledger,
  batch: string,
): Promise<{ readonly id: string; readonly head: string }[]> {
  return ask(ledger, `SELECT DISTINCT chunk AS id, head FROM incoming_staging WHERE ${held}`, { batch });
}

/** The batches in which something of these chunks is held back beside others. */
export async function batchesOf(store: Store, chunks: readonly string[]): Promise<string[]> {
  const query =
    "SELECT DISTINCT batch FROM incoming_staging WHERE chunk IN {chunks:Array(String)} AND head != ''";
  return (await select<{ batch: string }>(store, query, { chunks })).map(({ batch }) => batch);
}

export interface StagedBatch {
  readonly batch: string;
  /** What of it is stored. */
  readonly chunks: readonly string[];
  /** Who it is for. */
  readonly loads: readonly string[];
  /** What keeps it from being stored twice. */
  readonly token: string;
  /** Nothing of it is stored: its load time is now, and not that of when it was held back. */
  readonly isAnew?: boolean;
}

/**
 * Stores what is held back, or what of it is new. Repeating it changes nothing.
 * @param dedupe the chunk of the batch, if events whose id is present are left out
 */
export async function sendStaged(
  store: Store,
  { batch, chunks, loads, token, isAnew = false }: StagedBatch,
  dedupe?: string,
): Promise<void> {
  const columns = judgedColumns.join(', ');
  const all = `SELECT ${columns} FROM incoming_staging WHERE ${held} AND chunk IN {chunks:Array(String)} AND NOT left_out`;
  const select =
    dedupe === undefined
      ? `${all} ORDER BY chunk, line LIMIT 1 BY chunk, line`
      : `SELECT ${columns} FROM (${all} AND empty(faults) AND ${isNew} ORDER BY event_id, line LIMIT 1 BY event_id, day)
         UNION ALL ${all} AND notEmpty(faults) ORDER BY line`;
  await store.command({
    query: `INSERT INTO incoming (${columns}) ${logComment(loads)} ${isAnew ? `SELECT * REPLACE (now64(6, 'UTC') AS loaded_at) FROM (${select})` : select}`,
    query_params: { batch, chunks, chunk: dedupe ?? '' },
    clickhouse_settings: insertSettings(token),
  });
}

/** Names the loads of a batch, which may be many, in the text of the statement: the client sends settings in the address. */
const logComment = (loads: readonly string[]): string => `SETTINGS log_comment = ${quoted(commentOf(loads))}`;

/** Sends what of chunks is in `events` to the publishers' side of a cluster. */
export async function publish(store: Store, { chunks, loads, token }: StagedBatch): Promise<void> {
  const columns = [...eventColumns, 'chunk', 'loaded_at'].join(', ');
  await store.command({
    query: `INSERT INTO publisher_events (${columns}) ${logComment(loads)} SELECT ${columns} FROM events
      WHERE chunk IN {chunks:Array(String)} AND publisher_id != ''
        AND day IN (SELECT day FROM chunk_days WHERE chunk IN {chunks:Array(String)})`,
    query_params: { chunks },
    clickhouse_settings: insertSettings(token),
  });
}

/** Lets go of held-back batches. */
export async function dropStaged(store: Store, batches: readonly string[]): Promise<void> {
  await inRuns(batches, async (some) => {
    // Parameters of a command are in its address.
    const drops = some.map((batch) => `DROP PARTITION ${quoted(batch)}`);
    const query = `ALTER TABLE incoming_staging ${drops.join(', ')}`;
    await onShards(store, (shard) => shard.store.command({ query }));
  });
}
