import { text } from 'node:stream/consumers';
import { eventColumns } from '../../catalog/events.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { onShards } from '../../clickhouse/cluster/on-nodes.ts';
import { insertSettings } from '../event/insert-settings.ts';
import { judgedColumns } from '../event/judge.ts';
import type { RejectedRow } from '../rejects/rejected-rows.ts';

/** What is held back of a chunk. */
export interface StagedCounts {
  /** Events that would be stored. */
  readonly rows: number;
  readonly rejectedRows: number;
  /** Events whose event_id is present on their day, or appears earlier in the chunk. */
  readonly duplicates: number;
  readonly leftOut: number;
}

const held = 'chunk = {chunk:String} AND load_id = {loadId:String}';
const isEvent = '(empty(faults) AND NOT left_out)';
/** How many events a dry run shows. */
const sampleRows = 5;

/**
 * Events of a held-back chunk whose event_id is not yet present on their day. What an earlier attempt at the same chunk
 * stored does not count as present. Only ids of the chunk are remembered: all those of a day of 10 million events took
 * 2.5 times the CPU, and memory for as many as there are.
 */
const isNew = `(event_id, day) NOT IN (
  SELECT event_id, day FROM events WHERE chunk != {chunk:String}
    AND day IN (SELECT DISTINCT day FROM incoming_staging WHERE ${held})
    AND event_id IN (SELECT event_id FROM incoming_staging WHERE ${held}))`;

/** What of a chunk a load holds back. */
export interface HeldBack {
  readonly chunk: string;
  readonly loadId: string;
}

/** @param dedupe whether events whose id is present are left out */
export async function stagedCounts(
  store: Store,
  { chunk, loadId }: HeldBack,
  dedupe: boolean,
): Promise<StagedCounts> {
  const query = `
    SELECT toFloat64(countIf(notEmpty(faults))) AS rejectedRows, toFloat64(countIf(${isEvent})) AS good,
           toFloat64(countIf(left_out)) AS leftOut,
           ${dedupe ? `toFloat64(uniqExactIf((event_id, day), ${isEvent} AND ${isNew}))` : 'good'} AS rows
    FROM incoming_staging WHERE ${held}`;
  const [row] = await select<{ rejectedRows: number; good: number; leftOut: number; rows: number }>(
    store,
    query,
    { chunk, loadId },
  );
  if (!row) throw new Error(`ClickHouse did not count the rows of chunk ${chunk}`);
  const { rejectedRows, good, leftOut, rows } = row;
  return { rows, rejectedRows, duplicates: good - rows, leftOut };
}

/** The first rejected rows of a held-back chunk, in the order of the file. */
export function stagedRejects(
  store: Store,
  { chunk, loadId }: HeldBack,
  max: number,
): Promise<RejectedRow[]> {
  const query = `SELECT toFloat64(line) AS line, faults FROM incoming_staging AS s
    WHERE ${held} AND notEmpty(faults) ORDER BY s.line LIMIT {max:UInt32}`;
  return select<RejectedRow>(store, query, { chunk, loadId, max });
}

/** The first events of a held-back chunk as a table for people; columns without a value are left out. */
export async function stagedSample(store: Store, { chunk, loadId }: HeldBack): Promise<string> {
  const first = `SELECT * FROM incoming_staging AS s WHERE ${held} AND ${isEvent} ORDER BY s.line LIMIT ${sampleRows}`;
  const used = eventColumns.map((name) => `countIf(toString(${name}) NOT IN ('', '0', 'false')) AS ${name}`);
  const [counts] = await select<Record<string, string>>(store, `SELECT ${used.join(', ')} FROM (${first})`, {
    chunk,
    loadId,
  });
  const shown = eventColumns.filter((name) => Number(counts?.[name]) > 0);
  if (shown.length === 0) return '';
  const answer = await store.exec({
    query: `SELECT line, ${shown.map((name) => `toString(s.${name}) AS ${name}`).join(', ')} FROM (${first}) AS s FORMAT PrettyCompactMonoBlock`,
    query_params: { chunk, loadId },
    clickhouse_settings: { output_format_pretty_color: 0, output_format_pretty_row_numbers: 0 },
  });
  return text(answer.stream);
}

export interface StagedChunk extends HeldBack {
  /** What keeps it from being stored twice. */
  readonly token: string;
}

/** Stores a held-back chunk, or what of it is new. Repeating it changes nothing. */
export async function sendStaged(
  store: Store,
  { chunk, loadId, token }: StagedChunk,
  dedupe: boolean,
): Promise<void> {
  const columns = judgedColumns.join(', ');
  const all = `SELECT ${columns} FROM incoming_staging WHERE ${held} AND NOT left_out`;
  const select = dedupe
    ? `SELECT ${columns} FROM (${all} AND empty(faults) AND ${isNew} ORDER BY event_id, line LIMIT 1 BY event_id, day)
       UNION ALL ${all} AND notEmpty(faults) ORDER BY line`
    : `${all} ORDER BY line LIMIT 1 BY line`;
  await store.command({
    query: `INSERT INTO incoming (${columns}) ${select}`,
    query_params: { chunk, loadId },
    clickhouse_settings: insertSettings(token, loadId),
  });
}

/** Sends what of a chunk is in `events` to the publishers' side of a cluster. */
export async function publishStaged(store: Store, { chunk, loadId, token }: StagedChunk): Promise<void> {
  const columns = [...eventColumns, 'chunk', 'loaded_at'].join(', ');
  await store.command({
    query: `INSERT INTO publisher_events (${columns}) SELECT ${columns} FROM events
      WHERE chunk = {chunk:String} AND publisher_id != ''
        AND day IN (SELECT day FROM chunk_days WHERE chunk = {chunk:String})`,
    query_params: { chunk },
    clickhouse_settings: insertSettings(token, loadId),
  });
}

/** Lets go of held-back chunks. */
export async function dropStaged(store: Store, chunks: readonly string[]): Promise<void> {
  const drops = chunks.map((_, n) => `DROP PARTITION {c${n}:String}`);
  const query_params = Object.fromEntries(chunks.map((chunk, n) => [`c${n}`, chunk]));
  const query = `ALTER TABLE incoming_staging ${drops.join(', ')}`;
  await onShards(store, (shard) => shard.store.command({ query, query_params }));
}
