/** What requests are signed with. Never part of a message. */
export interface Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  /** By `Date.now()`; absent: they hold. */
  readonly expiresAt?: number;
}

/** No keys came this time: another attempt may get some. */
export class KeysFailed extends Error {}

/** New ones are fetched so long before the old ones expire. */
const renewBeforeMs = 5 * 60_000;
/** Where that fails while the old ones hold, it is tried again so much later. */
const tryAgainMs = 10_000;

/** Keys from where they come, kept until they expire. */
export class KeptKeys {
  readonly #fetch: () => Promise<Keys>;
  #kept: Keys | undefined;
  #until = 0;
  /** Callers that come meanwhile wait for the same keys. */
  #fetching: Promise<Keys> | undefined;

  constructor(fetch: () => Promise<Keys>) {
    this.#fetch = fetch;
  }

  async get(): Promise<Keys> {
    if (this.#kept && Date.now() < this.#until) return this.#kept;
    this.#fetching ??= this.#fetched().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetched(): Promise<Keys> {
    try {
      this.#kept = await this.#fetch();
      const { expiresAt = Number.POSITIVE_INFINITY } = this.#kept;
      // Of keys that are short-lived anyway half of their life.
      const left = expiresAt - Date.now();
      this.#until = expiresAt - Math.min(renewBeforeMs, left / 2);
      return this.#kept;
    } catch (error) {
      const kept = this.#kept;
      if (!kept?.expiresAt || kept.expiresAt <= Date.now()) throw error;
      this.#until = Math.min(kept.expiresAt, Date.now() + tryAgainMs);
      return kept;
    }
  }

  /** Lets go of those that are not accepted any more. */
  letGo(): void {
    this.#kept = undefined;
  }
}
