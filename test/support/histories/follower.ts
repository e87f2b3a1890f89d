import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'lossless-json';
import { lines, type Recount, type Row } from '../oracle.ts';
import { post, type ReaderGround } from './reader.ts';

interface Changed {
  readonly changed_until: string;
  readonly days: readonly { readonly day: string }[];
}

/** What is not told by then never will be; some ten seconds are usual, and longer after a kill. */
const heldBackMs = 180_000;

/**
 * Keeps the days of one report as someone does who fetches only those that are told to have changed: a day that is not told
 * stays as it was.
 */
export class Follower {
  readonly account: string;
  readonly wrong: string[] = [];
  /** How often `changed_until` was earlier than before: a load goes on that was not heard of for a minute. */
  wentBack = 0;
  /** The finest report of a family, in whose rows every change shows. */
  readonly path: string;
  readonly #ground: ReaderGround;
  readonly #changes: string;
  readonly #days = new Map<string, readonly Row[]>();
  #until = '1970-01-01T00:00:00Z';

  constructor(ground: ReaderGround, account: string, family: 'campaigns' | 'ad_units') {
    this.#ground = ground;
    this.account = account;
    this.#changes = `/v1/${family}/changes`;
    const finest = family === 'campaigns' ? 'device_creative_date' : 'device_site_date';
    this.path = `/v1/${family}/breakdowns/${finest}`;
  }

  /** Fetches what changed; whether it got all of it. */
  async look(): Promise<boolean> {
    const since = this.#until;
    const answer = await this.#ask(this.#changes, { changed_since: since });
    if (answer === undefined) return false;
    const { changed_until: until, days } = answer as Changed;
    if (until < since) this.wentBack++;
    for (const { day } of days) {
      const asked = { start_time: day, end_time: day, changed_since: since };
      const report = await this.#ask(this.path, asked);
      if (report === undefined) return false;
      this.#days.set(day, (report as Recount).rows);
    }
    this.#until = until;
    return true;
  }

  /** Looks, in peace, until it has what a report says. What it lacks in the end is `wrong`. */
  async requireAll(expected: readonly Row[]): Promise<void> {
    const wanted = lines(expected).sort();
    for (const startedAt = performance.now(); ; await delay(1_000)) {
      await this.look();
      const found = lines([...this.#days.values()].flat()).sort();
      if (found.join('\n') === wanted.join('\n')) return;
      if (performance.now() - startedAt < heldBackMs) continue;
      const lacking = wanted.filter((line) => !found.includes(line));
      const older = found.filter((line) => !wanted.includes(line));
      this.wrong.push(
        `${this.account}, ${this.#changes}, until ${this.#until}: not told of ${lacking.slice(0, 3)}; kept ${older.slice(0, 3)}`,
      );
      return;
    }
  }

  async #ask(path: string, body: object): Promise<object | undefined> {
    const { session, token } = this.#ground;
    const text = await post(session.url, path, token(this.account), body);
    return text === undefined ? undefined : (parse(text) as { result: object }).result;
  }
}
