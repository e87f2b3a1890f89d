import { type Store, select } from '../../../clickhouse/client.ts';

/** The end of the last load, kept in memory: at most `refreshMs` behind, and no report waits for it. */
export class LastLoad {
  readonly #store: Store;
  readonly #onError: (error: unknown) => void;
  #finishedAt: Date | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Store, onError: (error: unknown) => void) {
    this.#store = store;
    this.#onError = onError;
  }

  /** @throws when the store cannot be read */
  async start(refreshMs = 2_000): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => void this.#refresh().catch(this.#onError), refreshMs);
    this.#timer.unref();
    await this.#refresh();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Undefined while the store has no finished load. */
  get finishedAt(): Date | undefined {
    return this.#finishedAt;
  }

  async #refresh(): Promise<void> {
    const [row] = await select<{ milliseconds: number }>(
      this.#store,
      'SELECT toUInt32(max(finished_at)) * 1000 AS milliseconds FROM loads',
      {},
      // Of what the shards that are up know: reports of their accounts go on without the others.
      { skip_unavailable_shards: 1 },
    );
    this.#finishedAt = row?.milliseconds ? new Date(row.milliseconds) : undefined;
  }
}
