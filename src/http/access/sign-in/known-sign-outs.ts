import type { Store } from '../../../../clickhouse/client.ts';
import { Refreshed } from '../../../../clickhouse/refreshed.ts';
import { accountsMaxAgeMs, refreshMs } from '../../../../clickhouse/timings.ts';
import { listSignOuts, type SignOut } from '../../../accounts/sign-outs.ts';
import { readStates } from '../../../accounts/versions.ts';
import { KnownRows } from '../known-rows.ts';

/** The people who signed out everywhere, in memory and as old as tokens may be. */
export class KnownSignOuts {
  readonly #copy: Refreshed<void>;
  readonly #rows = new KnownRows<SignOut>(({ person }) => person);

  constructor(store: Store, onError: (error: unknown) => void) {
    const fetch = async () => {
      const { sign_outs } = await readStates(store, 'sign_outs');
      await this.#rows.follow(sign_outs, (since) => listSignOuts(store, since));
    };
    this.#copy = new Refreshed(fetch, { everyMs: refreshMs, maxAgeMs: accountsMaxAgeMs, onError });
  }

  start(): Promise<void> {
    return this.#copy.start();
  }

  stop(): void {
    this.#copy.stop();
  }

  /**
   * The version of the last time that the person signed out everywhere; empty without one. Versions have the order of texts.
   * @throws when the copy is too old and ClickHouse cannot be read
   */
  async lastOf(person: string): Promise<string> {
    if (!this.#copy.isCurrent) await this.#copy.refresh();
    return this.#rows.get(person)?.version ?? '';
  }

  /** Reads what was written before the call. */
  async refresh(): Promise<void> {
    await this.#copy.settled();
    await this.#copy.refresh();
  }
}
