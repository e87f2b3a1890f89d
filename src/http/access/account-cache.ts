import { timingSafeEqual } from 'node:crypto';
import type { Store } from '../../../clickhouse/client.ts';
import { listLimits } from '../../accounts/request-limits.ts';
import { hashToken, isWellFormed, listTokens, type StoredToken } from '../../accounts/tokens.ts';

export interface AccountCacheOptions {
  readonly store: Store;
  /** How old the copy in memory may get before it is fetched again. */
  readonly refreshMs?: number;
  readonly now?: () => number;
  /** Told when a refresh fails; reports go on with the copy until `maxAgeMs`. */
  readonly onError: (error: unknown) => void;
}

/** A copy older than this is not trusted: a revocation takes effect within 5 seconds. */
const maxAgeMs = 4_500;
/** Changes are fetched again for this long, in case a row became visible after a younger one. */
const overlapSeconds = 60;

/**
 * The login tokens and the accounts' own limits in memory, refreshed in the background, so that no report waits
 * for a query of either.
 * A well-formed token that is not known yet causes one refresh, shared by all who wait for it.
 */
export class AccountCache {
  readonly #options: Required<AccountCacheOptions>;
  readonly #byHash = new Map<string, StoredToken>();
  readonly #limits = new Map<string, number>();
  #latest: { token?: string | undefined; limit?: string | undefined } = {};
  #refreshedAt = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AccountCacheOptions) {
    this.#options = { refreshMs: 1_500, now: Date.now, ...options };
  }

  /** Loads all tokens and starts refreshing, also when the first time fails. @throws when it does */
  async start(): Promise<void> {
    const { refreshMs, onError } = this.#options;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => void this.#refresh().catch(onError), refreshMs);
    this.#timer.unref();
    await this.#refresh();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * The account a token stands for; undefined when it is malformed, unknown, expired or revoked.
   * @param known only look among the tokens in memory, which are at most some seconds old
   * @throws when the copy in memory is too old and the store cannot be read
   */
  async accountOf(token: string, known = false): Promise<string | undefined> {
    if (!isWellFormed(token)) return undefined;
    const hash = hashToken(token);
    // A refresh that is already under way may have read the tokens before this one was stored.
    const unknown = !known && !this.#byHash.has(hash);
    if (unknown) await Promise.allSettled([this.#refreshing]);
    const age = this.#options.now() - this.#refreshedAt;
    if (age > maxAgeMs || (unknown && !this.#byHash.has(hash))) await this.#refresh();
    const stored = this.#byHash.get(hash);
    if (!stored || !timingSafeEqual(Buffer.from(stored.hash), Buffer.from(hash))) return undefined;
    const expired = stored.expires !== null && Date.parse(stored.expires) <= this.#options.now();
    return expired || stored.revoked !== null ? undefined : stored.account;
  }

  /** How many requests an account has in a window, where it has a limit of its own. */
  limitOf(account: string): number | undefined {
    return this.#limits.get(account);
  }

  #refresh(): Promise<void> {
    this.#refreshing ??= this.#fetch().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #fetch(): Promise<void> {
    const startedAt = this.#options.now();
    const { store } = this.#options;
    const [tokens, limits] = await Promise.all([
      listTokens(store, { since: overlapping(this.#latest.token) }),
      listLimits(store, { since: overlapping(this.#latest.limit) }),
    ]);
    for (const token of tokens) this.#byHash.set(token.hash, token);
    for (const { account, requests } of limits) {
      if (requests === null) this.#limits.delete(account);
      else this.#limits.set(account, requests);
    }
    this.#latest = { token: latest(tokens, this.#latest.token), limit: latest(limits, this.#latest.limit) };
    this.#refreshedAt = startedAt;
  }
}

/** The youngest of the versions. */
function latest(changed: readonly { version: string }[], known: string | undefined): string | undefined {
  return [known, ...changed.map(({ version }) => version)]
    .filter((version) => version !== undefined)
    .sort()
    .at(-1);
}

/** `yyyy-mm-dd hh:mm:ss.ffffff` minus the overlap, in the same form. */
function overlapping(version: string | undefined): string | undefined {
  if (version === undefined) return undefined;
  const time = Date.parse(`${version.slice(0, 19).replace(' ', 'T')}Z`) - overlapSeconds * 1000;
  return new Date(time).toISOString().slice(0, 19).replace('T', ' ');
}
