import { eventColumns } from '../../catalog/events.ts';
import { insertData, type Store, select } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import { type RetryOptions, retrying } from '../../clickhouse/retry.ts';
import type { SendableChunk } from '../chunks/sendable-chunk.ts';
import { insertSettings } from '../event/insert-settings.ts';
import { heldColumns, type JudgeOptions, judgedColumns, judgeRecords } from '../event/judge.ts';
import { InputError } from '../input/input-error.ts';
import { together } from '../ledger/batch-calls.ts';
import type { RejectLimit } from '../rejects/reject-limit.ts';
import { describeRejected, type RejectedRow } from '../rejects/rejected-rows.ts';
import { type BundledChunk, dropTogether, stageTogether } from './bundles.ts';
import {
  dropStaged,
  publishStaged,
  sendStaged,
  stagedCounts,
  stagedRejects,
  stagedSample,
} from './staging.ts';

export interface SendOptions {
  readonly store: Store;
  readonly file: string;
  readonly judge: JudgeOptions;
  readonly dedupe?: boolean;
  readonly dryRun?: boolean;
  readonly rejectLimit?: RejectLimit | undefined;
  /** Ends the waiting for a ClickHouse that does not answer, with an AbortError. */
  readonly signal?: AbortSignal | undefined;
  readonly onRetry?: ((error: Error) => void) | undefined;
  /** Sends a chunk when it is its turn among those of other loads; absent: at once. */
  readonly inTurn?: InTurn | undefined;
}

type InTurn = (send: () => Promise<void>) => Promise<void>;

/** What became of the records of a chunk. */
export interface SentRows {
  /** Events stored. */
  readonly rows: number;
  readonly rejectedRows: number;
  /** Events left out because their event_id was present. */
  readonly duplicates: number;
  /** Records that the condition of the mapping left out. */
  readonly leftOut: number;
  /** The first rejected rows, in the order of the file. */
  readonly rejects: readonly RejectedRow[];
  /** Of a dry run: the first events as a table. */
  readonly sample?: string;
}

/** Rejected rows that are read back to be shown; all of them are kept. */
const maxShown = 10;

/** Sends chunks; each record of one becomes an event or a rejected row, in one statement. */
export class Sender {
  readonly #options: SendOptions;
  /** How often a statement had to be tried again. */
  interruptions = 0;

  constructor(options: SendOptions) {
    this.#options = options;
  }

  get #retries(): RetryOptions {
    return {
      signal: this.#options.signal,
      onRetry: (error) => {
        this.interruptions++;
        this.#options.onRetry?.(error);
      },
    };
  }

  /**
   * Stores a chunk. Sending it again changes nothing.
   * @param loadTime what its rows carry as `loaded_at`
   * @param loadId the load that its rejected rows belong to
   * @param onSent called when ClickHouse has it and only has to count it
   * @throws {InputError} when more records are rejected than the limit admits; nothing of the chunk is stored then
   */
  async send(chunk: SendableChunk, loadTime: string, loadId: string, onSent: () => void): Promise<SentRows> {
    const { dedupe, dryRun, rejectLimit, inTurn } = this.#options;
    const held = dedupe || dryRun || rejectLimit || chunk.source.condition;
    if (held) return this.#sendHeldBack(chunk, loadTime, loadId);
    if (inTurn && chunk.bundled && chunk.token === undefined) {
      return this.#sendBundled(chunk, { ...chunk, bundled: chunk.bundled, loadTime, loadId }, inTurn);
    }
    await this.#insert('incoming', chunk, loadTime, loadId);
    if (await this.#inCluster()) await this.#insert('publisher_events', chunk, loadTime, loadId);
    onSent();
    return { ...(await this.#stored(chunk)), duplicates: 0, leftOut: 0 };
  }

  /** Judges a chunk together with those of other loads, and stores it by itself. */
  async #sendBundled(
    chunk: SendableChunk,
    bundled: Omit<BundledChunk, 'judge' | 'file'>,
    inTurn: InTurn,
  ): Promise<SentRows> {
    const { store, judge, file } = this.#options;
    const { id, loadId } = bundled;
    await retrying(() => stageTogether(store, { ...bundled, judge, file }), this.#retries);
    const staged = { chunk: id, loadId, token: id };
    await inTurn(() => retrying(() => sendStaged(store, staged, false), this.#retries));
    if (await this.#inCluster()) await retrying(() => publishStaged(store, staged), this.#retries);
    // What a failure leaves there is nobody else's, and gone after a day.
    await retrying(() => dropTogether(store, id), this.#retries);
    return { ...(await this.#stored(chunk)), duplicates: 0, leftOut: 0 };
  }

  /** Judges a chunk first and stores it, or what of it is new, when it is known what is in it. */
  async #sendHeldBack(chunk: SendableChunk, loadTime: string, loadId: string): Promise<SentRows> {
    const { store, file, dedupe = false, dryRun, rejectLimit } = this.#options;
    await this.#insert('incoming_staging', chunk, loadTime, loadId);
    const { id, token = id } = chunk;
    const staged = { chunk: id, loadId, token };
    try {
      const held = await retrying(() => stagedCounts(store, staged, dedupe), this.#retries);
      if (rejectLimit && !rejectLimit.admit(chunk.rows, held.rejectedRows)) {
        const rejects = await retrying(() => stagedRejects(store, staged, 5), this.#retries);
        throw tooMany(file, chunk, rejects, held.rejectedRows, rejectLimit);
      }
      if (dryRun) {
        const rejects = await retrying(() => stagedRejects(store, staged, maxShown), this.#retries);
        const sample = await retrying(() => stagedSample(store, staged), this.#retries);
        return { ...held, rejects, sample };
      }
      await retrying(() => sendStaged(store, staged, dedupe), this.#retries);
      if (await this.#inCluster()) await retrying(() => publishStaged(store, staged), this.#retries);
      return { ...(await this.#stored(chunk)), duplicates: held.duplicates, leftOut: held.leftOut };
    } finally {
      await dropStaged(store, [id]);
    }
  }

  /** In a cluster the publishers' side follows when the events are on every shard: a retry adds what either lacks. */
  async #inCluster(): Promise<boolean> {
    return (await retrying(() => layoutOf(this.#options.store), this.#retries)) !== undefined;
  }

  async #insert(
    table: 'incoming' | 'incoming_staging' | 'publisher_events',
    { id, token = id, source, firstLine, stream }: SendableChunk,
    loadTime: string,
    loadId: string,
  ): Promise<void> {
    const { store, file, judge } = this.#options;
    const select = judgeRecords(source, judge);
    const eventsOnly = [...eventColumns, 'chunk', 'loaded_at'].join(', ');
    const statement =
      table === 'publisher_events'
        ? {
            into: `${table} (${eventsOnly})`,
            select: `SELECT ${eventsOnly} FROM (${select}) WHERE empty(faults) AND publisher_id != ''`,
          }
        : { into: `${table} (${(source.condition ? heldColumns : judgedColumns).join(', ')})`, select };
    const insert = async () => {
      // Left there by an attempt that was interrupted.
      if (table === 'incoming_staging') await dropStaged(store, [id]);
      await insertData(store, {
        ...statement,
        format: source.format,
        data: stream(),
        params: { chunk: id, loadTime, loadId, file, firstLine },
        settings: { ...insertSettings(token, loadId), ...source.settings },
      });
    };
    const { inTurn } = this.#options;
    const send = () => retrying(insert, this.#retries);
    await (inTurn ? inTurn(send) : send());
  }

  /** What ClickHouse has of a chunk: counted, not derived. */
  async #stored({ id }: SendableChunk): Promise<Omit<SentRows, 'duplicates' | 'leftOut'>> {
    const { store } = this.#options;
    const { rows, rejectedRows } = await retrying(() => storedRows(store, id), this.#retries);
    if (rejectedRows === 0) return { rows, rejectedRows, rejects: [] };
    const first = `SELECT toFloat64(line) AS line, faults FROM rejected_rows AS r FINAL WHERE chunk = {chunk:String} ORDER BY r.line LIMIT ${maxShown}`;
    const rejects = await retrying(() => select<RejectedRow>(store, first, { chunk: id }), this.#retries);
    return { rows, rejectedRows, rejects };
  }
}

interface StoredRows {
  readonly rows: number;
  readonly rejectedRows: number;
}

const storedRows = together<string, StoredRows>(async (store, chunks) => {
  const query = `
    SELECT chunk, toFloat64(sum(c.good)) AS rows, toFloat64(sum(c.bad)) AS rejectedRows FROM (
      SELECT chunk, d.events AS good, 0 AS bad FROM chunk_days AS d WHERE chunk IN {chunks:Array(String)}
      UNION ALL
      SELECT chunk, 0 AS good, uniqExact(line) AS bad FROM rejected_rows WHERE chunk IN {chunks:Array(String)} GROUP BY chunk
    ) AS c GROUP BY chunk`;
  const stored = await select<StoredRows & { chunk: string }>(store, query, { chunks });
  const none = { rows: 0, rejectedRows: 0 };
  return chunks.map((chunk) => stored.find((each) => each.chunk === chunk) ?? none);
});

function tooMany(
  file: string,
  { unit, firstLine }: SendableChunk,
  rejects: readonly RejectedRow[],
  rejectedRows: number,
  limit: RejectLimit,
): InputError {
  const examples = rejects.map((row) => `  ${describeRejected(file, unit, row)}`);
  const more = rejectedRows > examples.length ? [`  … and ${rejectedRows - examples.length} more`] : [];
  return new InputError(
    [
      `${file}: more than ${limit} rows are faulty; nothing of the chunk from ${unit} ${firstLine} was loaded`,
      ...examples,
      ...more,
    ].join('\n'),
  );
}
