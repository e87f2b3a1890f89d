import { setTimeout as delay } from 'node:timers/promises';
import { textFile } from '../event-files.ts';
import { type Answer, sendTo } from '../receiver.ts';
import type { Dice } from '../round-files.ts';
import { type WrittenEvent, writtenEvents } from '../written-events.ts';

interface ChannelOptions {
  /** Where the service is now. */
  readonly url: () => string;
  readonly token: string;
  /** Names the channel, and begins the accounts of its records. */
  readonly prefix: string;
  readonly dice: Dice;
  /** How long the whole stream may take. */
  readonly withinMs: number;
}

/** Sends a stream of records in pieces, gathered otherwise after each failure; some pieces go two at a time. */
export class ChannelSender {
  readonly events: readonly WrittenEvent[];
  readonly #lines: readonly string[];
  readonly #options: ChannelOptions;

  constructor(options: ChannelOptions) {
    const { prefix, dice } = options;
    const seed = dice.below(2 ** 31);
    const count = 1 + dice.below(dice.one([5, 100, 1_500]));
    this.events = writtenEvents({ seed, count, prefix, bad: dice.one([0, 0, 0.02, 0.3]) });
    this.#lines = this.events.map((event, n) => textFile('ndjson', [event], seed + n).trim());
    this.#options = options;
  }

  /** Sends all of it, and then all of it once more. @throws at an answer that a sender cannot go on with */
  async send(): Promise<void> {
    const { dice, withinMs } = this.#options;
    const until = performance.now() + withinMs;
    const end = this.#lines.length;
    for (let [from, least] = [0, 1]; from < end; ) {
      const offset = Math.max(0, from - dice.below(20));
      const piece = () => this.#piece(offset, from + least + dice.below(dice.one([3, 90, 1_500])));
      const answers = await Promise.all(dice.below(2) ? [piece(), piece()] : [piece()]);
      for (const { status, json } of answers) {
        if (status === 200) least = 1;
        least = Number(json.records ?? least);
        from = Math.max(from, Number(json.committed ?? 0));
      }
      if (performance.now() > until)
        throw new Error(`a channel does not get past ${from}: ${JSON.stringify(answers)}`);
      await delay(dice.below(100));
    }
    let again = await this.#piece(0, end);
    while (again.status !== 200 && performance.now() < until) {
      await delay(100);
      again = await this.#piece(0, end);
    }
    if (again.json.committed !== end || again.json.accepted !== 0)
      throw new Error(`a whole channel of ${end} records is answered with ${JSON.stringify(again.json)}`);
  }

  /** The answer to the records from `offset` up to `end`; one of status 0 where there is none. */
  async #piece(offset: number, end: number): Promise<Answer> {
    const { url, token, prefix } = this.#options;
    const headers = { authorization: `Bearer ${token}`, channel: prefix, offset: `${offset}` };
    const body = this.#lines.slice(offset, end).join('\n');
    const none = { status: 0, headers: new Headers(), json: {} };
    const answer = await sendTo(`${url()}/v1/events`, body, headers).catch(() => none);
    if (![0, 200, 409, 429, 503].includes(answer.status))
      throw new Error(
        `a piece of a channel is answered with ${answer.status}: ${JSON.stringify(answer.json)}`,
      );
    return answer;
  }
}
