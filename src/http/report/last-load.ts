import { type Store, select } from '../../../clickhouse/client.ts';
import { Refreshed } from '../../../clickhouse/refreshed.ts';

export interface LastLoadOptions {
  readonly store: Store;
  readonly onError: (error: unknown) => void;
}

/** The end of the last load, at most two seconds behind. */
export class LastLoad {
  readonly #finishedAt: Refreshed<Date | undefined>;

  constructor({ store, onError }: LastLoadOptions) {
    this.#finishedAt = new Refreshed(() => readLastLoad(store, this.#finishedAt.value), {
      everyMs: 2_000,
      onError,
    });
  }

  /** @throws when ClickHouse cannot be read */
  start(): Promise<void> {
    return this.#finishedAt.start();
  }

  stop(): void {
    this.#finishedAt.stop();
  }

  /** Undefined while no load has finished. */
  get finishedAt(): Date | undefined {
    return this.#finishedAt.value;
  }
}

/** @param known the end that was read last: only loads recorded since then can have a later end, and an index finds them */
async function readLastLoad(store: Store, known: Date | undefined): Promise<Date | undefined> {
  const [row] = await select<{ milliseconds: number }>(
    store,
    'SELECT toUInt32(max(finished_at)) * 1000 AS milliseconds FROM loads WHERE version >= fromUnixTimestamp64Milli({known:Int64})',
    { known: known?.getTime() ?? 0 },
    // Shards that are down are left out: reports of accounts on the other shards go on.
    { skip_unavailable_shards: 1 },
  );
  return row?.milliseconds ? new Date(row.milliseconds) : known;
}
