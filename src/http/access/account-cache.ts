import { timingSafeEqual } from 'node:crypto';
import type { Store } from '../../../clickhouse/client.ts';
import { Refreshed } from '../../../clickhouse/refreshed.ts';
import { accountsMaxAgeMs, refreshMs } from '../../../clickhouse/timings.ts';
import type { LinkClaim } from '../../accounts/links.ts';
import { currencies, type OwnSetting, requestLimits } from '../../accounts/own-settings.ts';
import {
  hashToken,
  listKnownTokens,
  purposeOf,
  type StoredToken,
  type TokenPurpose,
} from '../../accounts/tokens.ts';
import { readStates } from '../../accounts/versions.ts';
import type { Login } from '../request/login.ts';
import { KnownRows } from './known-rows.ts';

export interface AccountCacheOptions {
  readonly store: Store;
  /** The tokens that are let in unless a login wants others. Absent: those that open reports. */
  readonly purpose?: TokenPurpose;
  readonly refreshMs?: number;
  /** Absent: the clock of the machine for what expires, and one that nobody can set back for the age of the copy. */
  readonly now?: () => number;
  /** Called when a refresh fails; reports go on with the copy until it is too old. */
  readonly onError: (error: unknown) => void;
}

/**
 * The login tokens that have not ended long ago, and what accounts have of their own, in memory, so that no report waits for a query of them.
 * A well-formed token that is not known yet causes one refresh, shared by all who wait for it.
 */
export class AccountCache {
  readonly #store: Store;
  readonly #purpose: TokenPurpose;
  readonly #now: () => number;
  readonly #copy: Refreshed<void>;
  readonly #tokens = new KnownRows<StoredToken>(({ hash }) => hash);
  /** By id. */
  readonly #hashes = new Map<string, string>();
  readonly #limits = new KnownRows<OwnSetting<number>>(({ account }) => account);
  readonly #currencies = new KnownRows<OwnSetting<string>>(({ account }) => account);

  constructor({
    store,
    purpose = 'report',
    refreshMs: everyMs = refreshMs,
    now,
    onError,
  }: AccountCacheOptions) {
    this.#store = store;
    this.#purpose = purpose;
    this.#now = now ?? Date.now;
    this.#copy = new Refreshed(() => this.#fetchChanges(), {
      everyMs,
      maxAgeMs: accountsMaxAgeMs,
      ...(now && { now }),
      onError,
    });
  }

  /** Loads all of it and starts refreshing, also after a first failure. @throws that failure */
  start(): Promise<void> {
    return this.#copy.start();
  }

  stop(): void {
    this.#copy.stop();
  }

  /**
   * The account that a token opens, or why the login is refused.
   * @param known look only among the tokens in memory, which are a few seconds old at most
   * @param wanted what the token has to be for
   * @throws when the copy in memory is too old and ClickHouse cannot be read
   */
  async login(token: string, known = false, wanted = this.#purpose): Promise<Login> {
    const purpose = purposeOf(token);
    if (purpose !== wanted) return { refused: purpose ? 'other_purpose' : 'malformed' };
    const hash = hashToken(token);
    const stored = await this.#find(() => this.#tokens.get(hash), known);
    if (!stored || !timingSafeEqual(Buffer.from(stored.hash), Buffer.from(hash)))
      return { refused: 'unknown' };
    return this.#enter(stored, wanted);
  }

  /** The account of the token that made a link, or why the link is refused. @param known as for `login` */
  async follow(link: LinkClaim, known = false): Promise<Login> {
    const stored = await this.#find(() => this.tokenOf(link.token), known);
    const hasEnded = link.expires.getTime() <= this.#now();
    if (!stored) return { refused: hasEnded ? 'expired_link' : 'unknown' };
    const { id } = stored;
    if (!link.isMadeBy(stored.hash)) return { refused: 'forged_link', id };
    return hasEnded ? { refused: 'expired_link', id } : this.#enter(stored);
  }

  /** The token of that id, if it is known. */
  tokenOf(id: string): StoredToken | undefined {
    return this.#tokens.get(this.#hashes.get(id) ?? '');
  }

  async #find(look: () => StoredToken | undefined, known: boolean): Promise<StoredToken | undefined> {
    // A refresh that is already under way may have read the tokens before this one was stored.
    const unknown = !known && !look();
    if (unknown) await this.#copy.settled();
    if (!this.#copy.isCurrent || (unknown && !look())) await this.#copy.refresh();
    return look();
  }

  #enter(stored: StoredToken, wanted = this.#purpose): Login {
    const { id, account, family, purpose } = stored;
    if (purpose !== wanted) return { refused: 'other_purpose', id };
    if (stored.revoked !== null) return { refused: 'revoked', id };
    const expired = stored.expires !== null && Date.parse(stored.expires) <= this.#now();
    return expired ? { refused: 'expired', id } : { account, id, family };
  }

  /** How many requests an account may send in a window; undefined for an account without its own limit. */
  limitOf(account: string): number | undefined {
    return this.#limits.get(account)?.value ?? undefined;
  }

  /** The currency of an account's money, if it is known. */
  currencyOf(account: string): string | undefined {
    return this.#currencies.get(account)?.value ?? undefined;
  }

  async #fetchChanges(): Promise<void> {
    const states = await readStates(this.#store, 'tokens', 'account_limits', 'account_currencies');
    await Promise.all([
      this.#tokens.follow(states.tokens, (since) => this.#readTokens(since)),
      this.#limits.follow(states.account_limits, (since) => requestLimits.list(this.#store, { since })),
      this.#currencies.follow(states.account_currencies, (since) => currencies.list(this.#store, { since })),
    ]);
  }

  async #readTokens(since: string | undefined): Promise<StoredToken[]> {
    const tokens = await listKnownTokens(this.#store, since);
    if (since === undefined) this.#hashes.clear();
    for (const { id, hash } of tokens) this.#hashes.set(id, hash);
    return tokens;
  }
}
