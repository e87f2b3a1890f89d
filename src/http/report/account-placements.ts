import { type Store, select } from '../../../clickhouse/client.ts';
import { layoutOf } from '../../../clickhouse/cluster/layout.ts';
import type { ShardRouting } from '../../report/plan.ts';

/** A list older than this is not trusted; `place` waits for longer before it sends events elsewhere. */
const maxAgeMs = 4_000;

/**
 * Which shards of a cluster the reports of an account ask: its own, or all of them where its rows lie on several.
 * The list of these accounts is kept in memory; while it cannot be read, every report asks all shards.
 */
export class AccountPlacements {
  readonly #store: Store;
  readonly #onError: (error: unknown) => void;
  readonly #now: () => number;
  #onSeveral: ReadonlySet<string> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Store, onError: (error: unknown) => void, now: () => number = Date.now) {
    this.#store = store;
    this.#onError = onError;
    this.#now = now;
  }

  /** Does nothing more for the store of a single node. @throws when the store cannot be read */
  async start(refreshMs = 1_500): Promise<void> {
    clearInterval(this.#timer);
    if (!(await layoutOf(this.#store))) return;
    this.#timer = setInterval(() => void this.#refresh().catch(this.#onError), refreshMs);
    this.#timer.unref();
    await this.#refresh();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Undefined for the store of a single node. */
  routingOf(account: string): ShardRouting | undefined {
    if (!this.#onSeveral) return undefined;
    const trusted = this.#now() - this.#readAt <= maxAgeMs;
    const shards = trusted && !this.#onSeveral.has(account) ? 'one' : 'all';
    return { shards, database: this.#store.address.database };
  }

  async #refresh(): Promise<void> {
    const startedAt = this.#now();
    const accounts = await select<{ account: string }>(
      this.#store,
      'SELECT account_id AS account FROM placements FINAL WHERE read_all',
    );
    this.#onSeveral = new Set(accounts.map(({ account }) => account));
    this.#readAt = startedAt;
  }
}
