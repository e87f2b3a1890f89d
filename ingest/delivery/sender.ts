import { randomBytes } from 'node:crypto';
import { eventColumns } from '../../catalog/events.ts';
import { insertData } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import { retrying } from '../../clickhouse/retry.ts';
import type { SendableChunk } from '../chunks/sendable-chunk.ts';
import { insertSettings } from '../event/insert-settings.ts';
import { heldColumns, type JudgeOptions, judgedColumns, judgeRecords } from '../event/judge.ts';
import type { ChunkBalance, Ledger } from '../ledger/ledger.ts';
import { type RejectLimit, tooMany } from '../rejects/reject-limit.ts';
import type { RejectedRow } from '../rejects/rejected-rows.ts';
import { type Batch, type BatchedChunk, sendAgainTogether, sendTogether, storeBatch } from './batches.ts';
import { firstRejects, rejectedAmong, shownRejects, storedRows } from './chunk-outcome.ts';
import type { OddDays } from './odd-days.ts';
import {
  dropStaged,
  heldBy,
  type StagedCounts,
  stagedCounts,
  stagedRejects,
  stagedSample,
  stagedTimes,
} from './staging.ts';

/** What a load says of how its chunks are sent. */
export interface SendOptions extends Ledger {
  readonly dedupe?: boolean;
  /** Everything is checked and nothing stored. */
  readonly dryRun?: boolean;
  readonly hold?: Hold;
  readonly rejectLimit?: RejectLimit;
  /** Sends a chunk when it is its turn among those of other loads; absent: at once. */
  readonly inTurn?: (send: () => Promise<void>) => Promise<void>;
  /** How many loads are under way, whose small chunks are stored together; absent: this one alone. */
  readonly loads?: () => number;
}

interface SenderOptions extends SendOptions {
  readonly file: string;
  readonly judge: JudgeOptions;
}

/** A dry run keeps everything held back, also what is loaded already, until a load puts it in the place of others. */
export interface Hold {
  readonly load: string;
  /** Loads that it replaces: their bytes may come again, read in another way. */
  readonly replaced: readonly string[];
}

/** What became of the records of a chunk. */
export interface SentRows extends ChunkBalance, OddDays {
  /** The first rejected rows, in the order of the file. */
  readonly rejects: readonly RejectedRow[];
  /** Of a dry run: the first events as a table. */
  readonly sample?: string;
  /** Of a dry run: whether some event has another time than midnight. */
  readonly hasTimes?: boolean;
  /** What it was stored with. */
  readonly batch?: Batch;
}

/** How a chunk is sent. */
export interface Sending {
  /** What its rows carry as `loaded_at`. */
  readonly loadTime: string;
  /** The load that its rejected rows belong to; empty in a dry run. */
  readonly loadId: string;
  /** What keeps it from being stored twice, where it is sent by itself. */
  readonly token: string;
  /** Nothing of it was sent before: it need not be sent by itself, under its own token. */
  readonly first: boolean;
  /** Called when ClickHouse has it and only has to count it. */
  readonly onSent: () => void;
  /** Notes in the ledger under which token it is about to be stored, if that is not its own. */
  readonly note: (token: string) => Promise<void>;
  /** Called right before it is stored, each time. */
  readonly before: () => Promise<void>;
}

/** Sends chunks; each record of one becomes an event or a rejected row, in one statement. */
export class Sender {
  readonly #options: SenderOptions;
  readonly #ledger: Ledger;
  /** Stands for a load in a dry run: two of the same bytes at the same time have nothing to do with each other. */
  readonly #dryRun = `dry-run-${randomBytes(6).toString('hex')}`;
  /** How often a statement had to be tried again. */
  interruptions = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
    const onRetry = (error: Error) => {
      this.interruptions++;
      options.onRetry?.(error);
    };
    this.#ledger = { ...options, onRetry };
  }

  /** Whether what a dry run has judged is going to be stored. */
  get holds(): boolean {
    return this.#options.hold !== undefined;
  }

  /** Whether chunks are counted before they are stored. */
  get counts(): boolean {
    const { dedupe, dryRun, rejectLimit } = this.#options;
    return Boolean(dedupe || dryRun || rejectLimit);
  }

  /**
   * Stores a chunk. Sending it again changes nothing.
   * @throws {InputError} when more records are rejected than the limit admits; nothing of the chunk is stored then
   */
  async send(chunk: SendableChunk, sending: Sending): Promise<SentRows> {
    if (this.counts || chunk.source.condition) return this.#sendHeldBack(chunk, sending);
    const { loads } = this.#options;
    const { bundled } = chunk;
    if (sending.first && loads && bundled) {
      const sent = await this.#sendTogether(chunk, bundled, sending, loads);
      if (sent) return sent;
    }
    await this.#insert('incoming', chunk, sending);
    if (await this.#inCluster()) await this.#insert('publisher_events', chunk, sending);
    sending.onSent();
    return this.#stored(chunk);
  }

  /** Stores a chunk again that was sent with others under this token, from what is held back. */
  async sendBatchAgain(chunk: SendableChunk, token: string, { loadId, before }: Sending): Promise<SentRows> {
    const { store, loads = () => 1 } = this.#options;
    await sendAgainTogether(store, { token, loadId, before, loads, retries: this.#ledger });
    return this.#stored(chunk);
  }

  /** With chunks of other loads, in one statement; undefined where ClickHouse refuses that, and nothing is stored. */
  async #sendTogether(
    chunk: SendableChunk,
    bundled: BatchedChunk['bundled'],
    { loadTime, loadId, note, before }: Sending,
    loads: () => number,
  ): Promise<SentRows | undefined> {
    const { store, judge, file } = this.#options;
    const { id, head, bytes } = chunk;
    const batch = await sendTogether(store, {
      ...{ id, head, bytes, bundled, judge, loadTime, loadId, file, note, before, loads },
      retries: this.#ledger,
    });
    return batch && { ...(await this.#stored(chunk)), batch };
  }

  /** Judges a chunk first and stores it, or what of it is new, when it is known what is in it. */
  async #sendHeldBack(chunk: SendableChunk, sending: Sending): Promise<SentRows> {
    const { store, dryRun, hold, rejectLimit } = this.#options;
    const loadId = hold?.load ?? (dryRun ? this.#dryRun : sending.loadId);
    const { id } = chunk;
    const batch = heldBy(id, loadId);
    await this.#insert('incoming_staging', chunk, { ...sending, loadId });
    try {
      const held = await this.#heldCounts(chunk, batch);
      if (dryRun) {
        const rejects = await stagedRejects(this.#ledger, batch, shownRejects);
        const sample = await retrying(() => stagedSample(store, batch), this.#ledger);
        const hasTimes = await stagedTimes(this.#ledger, batch, this.#options.judge.timezone);
        return { ...held, rejects, sample, hasTimes };
      }
      const staged = { batch, chunks: [id], token: sending.token, loads: [sending.loadId] };
      await storeBatch(this.#ledger, staged, sending.before, this.#deduped(chunk)).catch((error: unknown) => {
        // Held back once more, it is counted again.
        rejectLimit?.takeBack(chunk.rows, held.rejectedRows);
        throw error;
      });
      // Behind it what was held back is let go, and nobody would hear meanwhile that the count has failed.
      return await this.#stored(chunk, held);
    } finally {
      // What cannot be dropped expires after a day, and is dropped before the chunk is held back again.
      if (!this.holds) await dropStaged(store, [batch]).catch(() => {});
    }
  }

  /**
   * Judges a chunk and counts what would be stored of it. The caller stores it from what is held back, and lets go of that.
   * @throws {InputError} when more records are rejected than the limit admits
   */
  async holdBack(chunk: SendableChunk, sending: Sending): Promise<SentRows> {
    const batch = heldBy(chunk.id, sending.loadId);
    await this.#insert('incoming_staging', chunk, sending);
    const held = await this.#heldCounts(chunk, batch);
    if (held.rejectedRows === 0) return { ...held, rejects: [] };
    const rejects = await stagedRejects(this.#ledger, batch, shownRejects);
    return { ...held, rejects };
  }

  /** @throws {InputError} when more records are rejected than the limit admits */
  async #heldCounts(chunk: SendableChunk, batch: string): Promise<StagedCounts> {
    const { file, rejectLimit } = this.#options;
    const counting = { batch, records: chunk.rows, dedupe: this.#deduped(chunk) };
    const held = await stagedCounts(this.#ledger, counting);
    if (!rejectLimit || rejectLimit.admit(chunk.rows, held.rejectedRows)) return held;
    const rejects = await stagedRejects(this.#ledger, batch, 5);
    throw tooMany(file, chunk, rejects, held.rejectedRows, rejectLimit);
  }

  #deduped({ id }: SendableChunk): string | undefined {
    return this.#options.dedupe ? id : undefined;
  }

  async #inCluster(): Promise<boolean> {
    return (await retrying(() => layoutOf(this.#options.store), this.#ledger)) !== undefined;
  }

  async #insert(
    table: 'incoming' | 'incoming_staging' | 'publisher_events',
    { id, source, firstLine, stream }: SendableChunk,
    { loadTime, loadId, token, before }: Sending,
  ): Promise<void> {
    const { store, file, judge } = this.#options;
    const judged = judgeRecords(source, judge);
    const eventsOnly = [...eventColumns, 'chunk', 'loaded_at'].join(', ');
    const held = heldBy(id, loadId);
    const statements = {
      incoming: { into: `incoming (${judgedColumns.join(', ')})`, select: judged },
      incoming_staging: {
        into: `incoming_staging (${(source.condition ? heldColumns : judgedColumns).join(', ')}, batch)`,
        select: `SELECT *, {batch:String} AS batch FROM (${judged})`,
      },
      publisher_events: {
        into: `publisher_events (${eventsOnly})`,
        select: `SELECT ${eventsOnly} FROM (${judged}) WHERE empty(faults) AND publisher_id != ''`,
      },
    };
    const insert = async () => {
      // Left there by an attempt that was interrupted.
      if (table === 'incoming_staging') await dropStaged(store, [held]);
      else await before();
      await insertData(store, {
        ...statements[table],
        format: source.format,
        data: stream(),
        params: {
          ...{ chunk: id, loadTime, loadId, file, firstLine },
          ...(table === 'incoming_staging' && { batch: held }),
        },
        settings: { ...insertSettings(token, loadId), ...source.settings },
      });
    };
    const { inTurn } = this.#options;
    const send = () => retrying(insert, this.#ledger);
    await (inTurn ? inTurn(send) : send());
  }

  /**
   * What ClickHouse has of a chunk: counted.
   * @param held what was found when it was judged; absent: it was stored at once, and no record was left out
   */
  async #stored(
    { id, rows: records }: Pick<SendableChunk, 'id' | 'rows'>,
    held?: StagedCounts,
  ): Promise<SentRows> {
    const stored = await storedRows(this.#ledger, id);
    const { duplicates, leftOut } = held ?? { duplicates: 0, leftOut: 0 };
    const rejectedRows = rejectedAmong(stored, held?.rejectedRows ?? records - stored.rows);
    const sent = { ...stored, rejectedRows, duplicates, leftOut };
    if (rejectedRows === 0) return { ...sent, rejects: [] };
    return { ...sent, rejects: await firstRejects(this.#ledger, id) };
  }
}
