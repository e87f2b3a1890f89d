import { timingSafeEqual } from 'node:crypto';
import type { Store } from '../../../clickhouse/client.ts';
import { type AccountLimit, listLimits } from '../../accounts/request-limits.ts';
import { hashToken, isWellFormed, listTokens, type StoredToken } from '../../accounts/tokens.ts';
import { readStates } from '../../accounts/versions.ts';
import { Refreshed } from '../refreshed.ts';
import { KnownRows } from './known-rows.ts';
import type { Login } from './login.ts';

export interface AccountCacheOptions {
  readonly store: Store;
  readonly refreshMs?: number;
  readonly now?: () => number;
  /** Called when a refresh fails; reports go on with the copy until it is too old. */
  readonly onError: (error: unknown) => void;
}

/** An older copy is not trusted: a revocation takes effect within 5 seconds. */
const maxAgeMs = 4_500;

/**
 * The login tokens and the accounts' own limits in memory, so that no report waits for a query of either.
 * A well-formed token that is not known yet causes one refresh, shared by all who wait for it.
 */
export class AccountCache {
  readonly #store: Store;
  readonly #now: () => number;
  readonly #copy: Refreshed<void>;
  readonly #tokens = new KnownRows<StoredToken>(({ hash }) => hash);
  readonly #limits = new KnownRows<AccountLimit>(({ account }) => account);

  constructor({ store, refreshMs = 1_500, now = Date.now, onError }: AccountCacheOptions) {
    this.#store = store;
    this.#now = now;
    this.#copy = new Refreshed(() => this.#fetchChanges(), { everyMs: refreshMs, maxAgeMs, now, onError });
  }

  /** Loads all tokens and limits and starts refreshing, also after a first failure. @throws that failure */
  start(): Promise<void> {
    return this.#copy.start();
  }

  stop(): void {
    this.#copy.stop();
  }

  /**
   * The account that a token opens, or why it opens none.
   * @param known look only among the tokens in memory, which are a few seconds old at most
   * @throws when the copy in memory is too old and ClickHouse cannot be read
   */
  async login(token: string, known = false): Promise<Login> {
    if (!isWellFormed(token)) return { refused: 'malformed' };
    const hash = hashToken(token);
    // A refresh that is already under way may have read the tokens before this one was stored.
    const unknown = !known && !this.#tokens.has(hash);
    if (unknown) await this.#copy.settled();
    if (!this.#copy.isCurrent || (unknown && !this.#tokens.has(hash))) await this.#copy.refresh();
    const stored = this.#tokens.get(hash);
    if (!stored || !timingSafeEqual(Buffer.from(stored.hash), Buffer.from(hash)))
      return { refused: 'unknown' };
    const { id, account, family } = stored;
    if (stored.revoked !== null) return { refused: 'revoked', id };
    const expired = stored.expires !== null && Date.parse(stored.expires) <= this.#now();
    return expired ? { refused: 'expired', id } : { account, id, family };
  }

  /** How many requests an account may send in a window; undefined for an account without its own limit. */
  limitOf(account: string): number | undefined {
    return this.#limits.get(account)?.requests ?? undefined;
  }

  async #fetchChanges(): Promise<void> {
    const states = await readStates(this.#store);
    await Promise.all([
      this.#tokens.follow(states.tokens, (since) => listTokens(this.#store, { since })),
      this.#limits.follow(states.limits, (since) => listLimits(this.#store, { since })),
    ]);
  }
}
