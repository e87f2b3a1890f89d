/** What requests are signed with. Never part of a message. */
export interface Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  /** By `Date.now()`; absent: they hold. */
  readonly expiresAt?: number;
}

/** New ones are fetched so long before the old ones expire. */
const renewBeforeMs = 5 * 60_000;

/** Keys from where they come, kept until they expire. */
export class KeptKeys {
  readonly #fetch: () => Promise<Keys>;
  #kept: Promise<Keys> | undefined;
  #until = 0;

  constructor(fetch: () => Promise<Keys>) {
    this.#fetch = fetch;
  }

  readonly get = async (): Promise<Keys> => {
    if (this.#kept && Date.now() < this.#until) return this.#kept;
    // Callers that come meanwhile wait for the same keys.
    this.#until = Number.POSITIVE_INFINITY;
    this.#kept = this.#fetch();
    try {
      const { expiresAt = Number.POSITIVE_INFINITY } = await this.#kept;
      // Of keys that are short-lived anyway half of their life.
      const left = expiresAt - Date.now();
      this.#until = expiresAt - Math.min(renewBeforeMs, left / 2);
      return await this.#kept;
    } catch (error) {
      this.#until = 0;
      throw error;
    }
  };

  /** Lets go of those that are not accepted any more. */
  readonly renew = (): boolean => {
    this.#until = 0;
    return true;
  };
}
