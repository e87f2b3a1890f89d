import { timingSafeEqual } from 'node:crypto';
import type { Store } from '../../../clickhouse/client.ts';
import { listLimits } from '../../accounts/request-limits.ts';
import { hashToken, isWellFormed, listTokens, type StoredToken } from '../../accounts/tokens.ts';
import { Refreshed } from '../refreshed.ts';

export interface AccountCacheOptions {
  readonly store: Store;
  readonly refreshMs?: number;
  readonly now?: () => number;
  /** Called when a refresh fails; reports go on with the copy until it is too old. */
  readonly onError: (error: unknown) => void;
}

/** An older copy is not trusted: a revocation takes effect within 5 seconds. */
const maxAgeMs = 4_500;
/** Changes are fetched again for this long, in case a row became visible after a younger one. */
const overlapSeconds = 60;

/**
 * The login tokens and the accounts' own limits in memory, so that no report waits for a query of either.
 * A well-formed token that is not known yet causes one refresh, shared by all who wait for it.
 */
export class AccountCache {
  readonly #store: Store;
  readonly #now: () => number;
  readonly #copy: Refreshed<void>;
  readonly #byHash = new Map<string, StoredToken>();
  readonly #limits = new Map<string, number>();
  #latest: { token?: string | undefined; limit?: string | undefined } = {};

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
   * The account a token belongs to; undefined when it is malformed, unknown, expired or revoked.
   * @param known look only among the tokens in memory, which are a few seconds old at most
   * @throws when the copy in memory is too old and ClickHouse cannot be read
   */
  async accountOf(token: string, known = false): Promise<string | undefined> {
    if (!isWellFormed(token)) return undefined;
    const hash = hashToken(token);
    // A refresh that is already under way may have read the tokens before this one was stored.
    const unknown = !known && !this.#byHash.has(hash);
    if (unknown) await this.#copy.settled();
    if (!this.#copy.isCurrent || (unknown && !this.#byHash.has(hash))) await this.#copy.refresh();
    const stored = this.#byHash.get(hash);
    if (!stored || !timingSafeEqual(Buffer.from(stored.hash), Buffer.from(hash))) return undefined;
    const expired = stored.expires !== null && Date.parse(stored.expires) <= this.#now();
    return expired || stored.revoked !== null ? undefined : stored.account;
  }

  /** How many requests an account may send in a window; undefined for an account without its own limit. */
  limitOf(account: string): number | undefined {
    return this.#limits.get(account);
  }

  async #fetchChanges(): Promise<void> {
    const [tokens, limits] = await Promise.all([
      listTokens(this.#store, { since: overlapping(this.#latest.token) }),
      listLimits(this.#store, { since: overlapping(this.#latest.limit) }),
    ]);
    for (const token of tokens) this.#byHash.set(token.hash, token);
    for (const { account, requests } of limits) {
      if (requests === null) this.#limits.delete(account);
      else this.#limits.set(account, requests);
    }
    this.#latest = { token: latest(tokens, this.#latest.token), limit: latest(limits, this.#latest.limit) };
  }
}

/** The youngest of the versions. */
function latest(changed: readonly { version: string }[], known: string | undefined): string | undefined {
  return [known, ...changed.map(({ version }) => version)]
    .filter((version) => version !== undefined)
    .sort()
    .at(-1);
}

/** `yyyy-mm-dd hh:mm:ss.ffffff` minus the overlap, to the second. */
function overlapping(version: string | undefined): string | undefined {
  if (version === undefined) return undefined;
  const time = Date.parse(`${version.slice(0, 19).replace(' ', 'T')}Z`) - overlapSeconds * 1000;
  return new Date(time).toISOString().slice(0, 19).replace('T', ' ');
}
