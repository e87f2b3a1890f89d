import { insertData, type Store, select } from '../../clickhouse/client.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { together } from './batch-calls.ts';
import type { Load, WaitOptions } from './load.ts';

export interface SentChunk {
  /** Its name everywhere: a sha256, hex, of its content, of all that is before it in the input, and of how it is read. */
  readonly id: string;
  /** How the ledger finds what begins where it does: see `ChunkChain.head`. */
  readonly head: string;
  /** sha256 of the input up to its end, hex; the same however it is read. */
  readonly content: string;
  /** Line of the file that it begins with, from 1, or record or row where there are no lines. */
  readonly firstLine: number;
  /** Where it begins in the input, after that was unpacked, from 0. */
  readonly firstByte: number;
  readonly bytes: number;
  /** Records. */
  readonly rows: number;
}

/**
 * The record of every chunk ever sent and what became of it. What is asked and written through it (`ask`, `tell`, `repeated`) is
 * repeated until ClickHouse answers.
 */
export interface Ledger extends WaitOptions {
  readonly store: Store;
  /** Called when ClickHouse does not answer and is tried again. */
  readonly onRetry?: (error: Error) => void;
}

/** The rows of a small answer. */
export function ask<Row>(ledger: Ledger, query: string, params: Record<string, unknown>): Promise<Row[]> {
  return retrying(() => select<Row>(ledger.store, query, params), ledger);
}

/** Writes what can be written twice. */
export async function tell(ledger: Ledger, query: string, params: Record<string, unknown>): Promise<void> {
  await retrying(() => ledger.store.command({ query, query_params: params }), ledger);
}

/** As `together`, of what can be done twice: calls that have failed together are made again together. */
export function repeated<Item, Answer>(
  work: (store: Store, items: readonly Item[]) => Promise<readonly Answer[]>,
): (ledger: Ledger, item: Item) => Promise<Answer> {
  const once = together(work);
  return (ledger, item) => retrying(() => once(ledger.store, item), ledger);
}

/**
 * Now, or after all that the ledger has of these chunks, should the clock have been set back. Names of chunks as text: parameters of
 * an insert are in its address.
 */
function laterThan(chunks: readonly ChunkRecord[]): string {
  const all = (name: 'head' | 'chunk') => `[${chunks.map((each) => quoted(each[name])).join(', ')}]`;
  return `greatest(now64(6, 'UTC'), (
    SELECT max(s.sent_at) + INTERVAL 1 MICROSECOND FROM load_chunks AS s
    WHERE head IN (SELECT toFixedString(unhex(arrayJoin(${all('head')})), 32)) AND chunk IN ${all('chunk')}))`;
}

/** Records a chunk of a load, and that it is sent or loaded now. */
export async function recordChunk(
  ledger: Ledger,
  load: Load,
  { head, id: chunk, content, firstLine, firstByte, bytes, rows: records }: SentChunk,
  time: keyof typeof recordChunks = 'claimed',
  outcome: Partial<ChunkOutcome> = {},
): Promise<void> {
  const none = { batch: '', rows: 0, rejectedRows: 0, duplicates: 0, leftOut: 0 };
  const place = { firstLine, firstByte, bytes };
  const record = { head, chunk, content, loadId: load.id, ...place, records, ...none, ...outcome };
  await recordChunks[time](ledger, record);
}

/** What becomes of the records of a chunk. */
export interface ChunkBalance {
  /** Events stored. */
  readonly rows: number;
  readonly rejectedRows: number;
  /** Events left out because their event_id was present on their day, or came earlier. */
  readonly duplicates: number;
  /** Records that the condition of a mapping left out. */
  readonly leftOut: number;
}

interface ChunkOutcome extends ChunkBalance {
  /** The token under which it is sent with other chunks. */
  readonly batch: string;
}

const recordChunks = { claimed: recorder(), sent_at: recorder('sent_at'), loaded_at: recorder('loaded_at') };

interface ChunkRecord extends ChunkOutcome {
  readonly head: string;
  readonly chunk: string;
  readonly content: string;
  readonly loadId: string;
  readonly firstLine: number;
  readonly firstByte: number;
  readonly bytes: number;
  readonly records: number;
}

function recorder(time?: 'sent_at' | 'loaded_at') {
  return repeated<ChunkRecord, void>(async (store, records) => {
    await insertData(store, {
      into: `load_chunks (head, chunk, load_id, bytes, records, rows, rejected_rows, duplicate_rows, left_out_rows, content, batch,
                          first_line, first_byte${time ? `, ${time}` : ''})`,
      select: `
        SELECT unhex(head), chunk, loadId, bytes, records, rows, rejectedRows, duplicates, leftOut, unhex(content), batch,
               firstLine, firstByte${time ? `, ${laterThan(records)}` : ''}
        FROM input('head String, chunk String, content String, loadId String, firstLine UInt64, firstByte UInt64, bytes UInt64,
          records UInt64, batch String, rows UInt64, rejectedRows UInt64, duplicates UInt64, leftOut UInt64')`,
      format: 'JSONEachRow',
      data: [records.map((record) => JSON.stringify(record)).join('\n')],
      settings: {},
    });
    return records.map(() => undefined);
  });
}
