import { finished } from 'node:stream/promises';
import { ClickHouseError, type ClickHouseSettings } from '@clickhouse/client';
import { type Store, select } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import { type RetryOptions, retrying } from '../../clickhouse/retry.ts';
import { type LineRun, linesOf, without } from '../chunks/line-range.ts';
import type { Content, SendableChunk } from '../chunks/sendable-chunk.ts';
import { type EventTable, insertEvents, insertSettings } from '../event/event-insert.ts';
import { InputError } from '../input/input-error.ts';
import type { RejectLimit } from '../rejects/reject-limit.ts';
import { examine, type RejectedLine, type RejectedRow, readRejected } from '../rejects/rejected-rows.ts';
import { countNew, dropStaged } from './dedupe-staging.ts';

export interface SendOptions {
  readonly store: Store;
  readonly file: string;
  readonly ignoreUnknown?: boolean;
  readonly dedupe?: boolean;
  readonly dryRun?: boolean;
  readonly rejectLimit?: RejectLimit;
  /** Ends the waiting for a ClickHouse that does not answer, with an AbortError. */
  readonly signal?: AbortSignal;
  readonly onRetry?: (error: Error) => void;
}

export interface SentRows {
  /** Events counted now. */
  readonly rows: number;
  readonly rejectedRows: number;
  /** Reads the rejected rows, or the first of them, in the order of the file; as often as it is called. */
  readonly readRejected: (most?: number) => AsyncIterable<RejectedRow>;
  /** Events left out because their event_id was present. */
  readonly duplicates: number;
}

/** What can be wrong with the lines of a chunk, as the engine names it; anything else is the engine's trouble. */
const dataErrors =
  /PARSE|CONSTRAINT|THROW_IF|INCORRECT_DATA|ENUM|OUT_OF_BOUND|OVERFLOW|TYPE_MISMATCH|ILLEGAL|UNEXPECTED|BOOL|ESCAPE|QUOTED/;

/** Sends chunks. The fast path sends bytes; only a chunk that the engine refuses is read line by line. */
export class Sender {
  readonly #options: SendOptions;
  readonly #table: EventTable;
  /** How often a statement had to be tried again. */
  interruptions = 0;

  constructor(options: SendOptions) {
    this.#options = options;
    this.#table = options.dryRun ? 'events_check' : options.dedupe ? 'events_staging' : 'events';
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
   * Stores a chunk whole but for the lines that are no events, which it returns. Sending it again changes
   * nothing.
   * @param loadTime what its rows carry as `loaded_at`
   * @throws {InputError} when more lines are rejected than the limit admits; nothing of the chunk is stored then
   */
  async send(chunk: SendableChunk, loadTime: string): Promise<SentRows> {
    const { rejectLimit } = this.#options;
    const refused = chunk.damaged || (await this.#store(chunk, chunk.content, loadTime));
    if (!refused) {
      rejectLimit?.admit(chunk.rows, 0);
      const duplicates = await this.#countNew(chunk);
      return { rows: await this.#countStored(chunk, chunk.rows), ...this.#rejected(chunk, []), duplicates };
    }
    const ignoreUnknown = this.#options.ignoreUnknown ?? false;
    const examined = await examine(chunk.records(), ignoreUnknown);
    const refusedToo = await this.#findRefused(chunk, examined.doubtful, loadTime);
    const rejected = [...examined.rejected, ...examined.doubtful.filter((line) => refusedToo.has(line))];
    const taken = examined.doubtful.filter((line) => !refusedToo.has(line));
    let good = taken.length === 0 ? examined.good : [...examined.good, ...taken].sort(byLine);
    await this.#admit(chunk, chunk.rows, rejected, rejected.length);
    let again =
      rejected.length === 0 && refused !== true ? refused : await this.#sendGood(chunk, good, loadTime);
    if (again) {
      // Lines that pass our rules and yet are refused by the engine, with the engine's reason.
      const strangers = await this.#findRefused(chunk, good, loadTime);
      if (strangers.size === 0) throw this.#refusal(chunk, again);
      for (const [run, reason] of strangers) rejected.push(await readStranger(chunk, run, reason));
      good = await without(chunk, good, [...strangers.keys()]);
      await this.#admit(chunk, 0, rejected, strangers.size);
      again = await this.#sendGood(chunk, good, loadTime);
      if (again) throw this.#refusal(chunk, again);
    }
    const duplicates = good.length > 0 ? await this.#countNew(chunk) : 0;
    const lines = good.reduce((sum, run) => sum + run.lines, 0);
    return {
      rows: await this.#countStored(chunk, lines),
      ...this.#rejected(chunk, rejected),
      duplicates,
    };
  }

  /** @throws {InputError} when the limit does not admit so many more rejected rows */
  async #admit(
    chunk: SendableChunk,
    rows: number,
    rejected: readonly RejectedLine[],
    more: number,
  ): Promise<void> {
    const { rejectLimit } = this.#options;
    if (rejectLimit && !rejectLimit.admit(rows, more)) {
      throw await this.#tooMany(chunk, rejected, rejectLimit);
    }
  }

  #rejected(
    chunk: SendableChunk,
    rejected: readonly RejectedLine[],
  ): Pick<SentRows, 'rejectedRows' | 'readRejected'> {
    const lines = rejected.toSorted(byLine);
    return {
      rejectedRows: lines.length,
      readRejected: (most = lines.length) =>
        readRejected(chunk, lines.slice(0, most), this.#options.ignoreUnknown ?? false),
    };
  }

  async #sendGood(
    chunk: SendableChunk,
    good: readonly LineRun[],
    loadTime: string,
  ): Promise<ClickHouseError | undefined> {
    return good.length === 0 ? undefined : this.#store(chunk, chunk.contentOf(good), loadTime);
  }

  /** Which lines the engine refuses, each a run by itself, found by halving, with its reason. */
  async #findRefused<Run extends LineRun>(
    chunk: SendableChunk,
    runs: readonly Run[],
    loadTime: string,
  ): Promise<Map<Run | LineRun, string>> {
    const [first] = runs;
    if (!first) return new Map();
    const refused = await this.#insert('events_check', chunk, chunk.contentOf(runs), loadTime);
    if (!refused) return new Map();
    if (!dataErrors.test(refused.type ?? '')) throw this.#refusal(chunk, refused);
    if (runs.length === 1 && first.lines === 1)
      return new Map([[first, `ClickHouse refuses it: ${firstLine(refused.message)}`]]);
    const parts = runs.length > 1 ? runs : await linesOf(chunk, first);
    const middle = parts.length >> 1;
    return new Map([
      ...(await this.#findRefused(chunk, parts.slice(0, middle), loadTime)),
      ...(await this.#findRefused(chunk, parts.slice(middle), loadTime)),
    ]);
  }

  /** Events that the store has of a chunk: a line need not be one event, the engine reads two objects on one as two. */
  async #countStored({ id }: SendableChunk, lines: number): Promise<number> {
    if (this.#options.dryRun) return lines;
    const query =
      'SELECT toUInt32(sum(d.events)) AS stored FROM chunk_days AS d WHERE chunk = {chunk:String}';
    const [row] = await retrying(
      () => select<{ stored: number }>(this.#options.store, query, { chunk: id }),
      this.#retries,
    );
    if (!row) throw new Error('the store did not count the events of a chunk');
    return row.stored;
  }

  async #countNew({ id, token = id }: SendableChunk): Promise<number> {
    const { store, dedupe, dryRun } = this.#options;
    return dedupe && !dryRun ? retrying(() => countNew(store, id, token), this.#retries) : 0;
  }

  /**
   * Sends lines where they belong; returns the engine's refusal. In a cluster the publishers' side follows when the
   * lines are on every shard: a retry finds each of the two as it is and adds what is missing.
   */
  async #store(
    chunk: SendableChunk,
    content: Content,
    loadTime: string,
  ): Promise<ClickHouseError | undefined> {
    const refused = await this.#insert(this.#table, chunk, content, loadTime);
    if (refused || this.#table !== 'events' || !(await this.#inCluster())) return refused;
    return this.#insert('publisher_events', chunk, content, loadTime);
  }

  async #inCluster(): Promise<boolean> {
    return (await retrying(() => layoutOf(this.#options.store), this.#retries)) !== undefined;
  }

  /** One statement; returns the engine's refusal of the lines, throws any other failure. */
  async #insert(
    table: EventTable,
    { id, token = id }: SendableChunk,
    { format, typed, stream }: Content,
    loadTime: string,
  ): Promise<ClickHouseError | undefined> {
    const { store, ignoreUnknown } = this.#options;
    const settings: ClickHouseSettings = {
      ...insertSettings(token),
      ...(ignoreUnknown && { input_format_skip_unknown_fields: 1 }),
    };
    return retrying(async () => {
      try {
        // Left there by an attempt that was cut off.
        if (table === 'events_staging') await dropStaged(store, id);
        const { stream: answer } = await store.exec({
          query: insertEvents(format, table, typed),
          values: stream(),
          query_params: { chunk: id, loadTime },
          clickhouse_settings: settings,
        });
        await finished(answer.resume());
        return undefined;
      } catch (error) {
        if (error instanceof ClickHouseError && dataErrors.test(error.type ?? '')) return error;
        throw error;
      }
    }, this.#retries);
  }

  #refusal({ where }: SendableChunk, cause: ClickHouseError): InputError {
    const { file } = this.#options;
    return new InputError(
      `${file}, chunk ${where}: ClickHouse refused it (${cause.type}): ${firstLine(cause.message)}`,
      { cause },
    );
  }

  async #tooMany(
    chunk: SendableChunk,
    rejected: readonly RejectedLine[],
    limit: RejectLimit,
  ): Promise<InputError> {
    const { file } = this.#options;
    const examples: string[] = [];
    for await (const row of this.#rejected(chunk, rejected).readRejected(5)) {
      examples.push(`  ${describeRejected(file, row)}`);
    }
    const more =
      rejected.length > examples.length ? [`  … and ${rejected.length - examples.length} more`] : [];
    return new InputError(
      [
        `${file}: more than ${limit} rows are faulty; nothing of the chunk ${chunk.where} was loaded`,
        ...examples,
        ...more,
      ].join('\n'),
    );
  }
}

/** `events.csv line 7: quantity must be …; device must be …` */
export function describeRejected(
  file: string,
  { line, faults }: Pick<RejectedRow, 'line' | 'faults'>,
): string {
  const what = faults.map(({ field, reason }) => (field ? `${field} ${reason}` : reason)).join('; ');
  return `${file} ${file.endsWith('.parquet') ? 'row' : 'line'} ${line}: ${what}`;
}

const byLine = (a: { line: number }, b: { line: number }) => a.line - b.line;

async function readStranger(chunk: SendableChunk, run: LineRun, reason: string): Promise<RejectedLine> {
  for await (const { line, raw, read } of chunk.records(run)) {
    return { ...run, row: { line, raw, fields: read().fields, faults: [{ field: '', reason }] } };
  }
  throw new Error(`line ${run.line} of a chunk cannot be read again`);
}

function firstLine(message: string): string {
  return message.split('\n')[0] ?? message;
}
