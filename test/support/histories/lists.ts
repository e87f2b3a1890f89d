import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'lossless-json';
import { event, ndjson } from '../events.ts';
import type { Recount } from '../oracle.ts';
import type { Dice } from '../round-files.ts';
import type { Part } from './judge.ts';
import { type CommandGround, perform } from './perform.ts';
import { type Asked, post, type ReaderGround } from './reader.ts';

const days = ['2026-01-10', '2026-01-11', '2026-01-12', '2026-01-13'];
/** Bits of what an account has: days that are confirmed, the number of its name, what was closed of both, and that it was. */
const confirmed = 0b1111;
const nameAt = 4;
const named = 0b111 << nameAt;
const closedAt = 8;
const isClosed = 1 << 15;
/** Of a campaign that nobody has named. */
const unnamed = 'c';

/** An account whose events stay as they are, while its campaign is renamed, days are confirmed, and the month is closed. */
export class Lists {
  readonly account: string;
  readonly #ground: CommandGround;
  #names = 0;
  #files = 0;

  constructor(ground: CommandGround, account: string) {
    this.account = account;
    this.#ground = ground;
  }

  /** To be called in peace. */
  async load(): Promise<void> {
    const lines = days.map((day) =>
      event({
        event_time: `${day}T12:00:00Z`,
        advertiser_id: this.account,
        publisher_id: this.account,
        campaign_id: unnamed,
        spend: '1.5',
      }),
    );
    const args = ['ingest', 'events', '--quiet', await this.#file('ndjson', ndjson(lines))];
    const { isDone, told } = await this.#perform('events', args, []);
    if (!isDone) throw new Error(`a load fails in peace: ${told}`);
  }

  /** One command. */
  async act(dice: Dice): Promise<void> {
    const what = dice.below(3);
    if (what === 0 && this.#names < 7) {
      const name = ++this.#names;
      const file = await this.#file(
        'csv',
        `account_id,campaign_id,name\n${this.account},${unnamed},name ${name}\n`,
      );
      await this.#perform('name', ['ingest', 'campaigns', file], [{ removes: named, adds: name << nameAt }]);
      return;
    }
    if (what === 1) {
      const n = dice.below(days.length);
      const day = days[n] ?? '';
      const part = { removes: 0, adds: 1 << n };
      await this.#perform(`day ${n}`, ['confirm', this.account, '--from', day, '--to', day], [part]);
      return;
    }
    const copies = { bits: confirmed | named, places: closedAt };
    const part = { removes: 0, adds: isClosed, copies };
    await this.#perform('month', ['close', this.account, '2026-01', '--anyway'], [part]);
  }

  /** Asks for a report of now, or as it was closed, and writes down its names and its unconfirmed days. */
  async ask({ session, token, answers }: ReaderGround, dice: Dice): Promise<Asked> {
    const asClosed = dice.below(2) === 0;
    const body = { start_time: '2026-01-01', end_time: '2026-01-31', ...(asClosed && { as_of: 'closed' }) };
    const begin = performance.now();
    const text = await post(session.url, '/v1/campaigns', token(this.account), body);
    const end = performance.now();
    if (text === undefined) return 'failed';
    const { rows, unconfirmed_revenue_dates: open } = (parse(text) as { result: Recount }).result;
    const name = `${rows[0]?.campaign}`;
    const number = name === unnamed ? 0 : Number(name.replace('name ', ''));
    const confirmedDays = days.reduce((bits, day, n) => bits | (open.includes(day) ? 0 : 1 << n), 0);
    const is = rows.length === 1 && `${rows[0]?.impressions}` === '4' && `${rows[0]?.spent}` === '6';
    const when = asClosed ? 'closed ' : '';
    const shown = (state: number) => (asClosed ? state >> closedAt : state);
    const common = { account: this.account, begin, end, told: `${when}${text}` };
    const fits = (state: number) => is && (!asClosed || (state & isClosed) !== 0);
    answers.push(
      { ...common, table: `${when}names`, fits: (s) => fits(s) && (shown(s) & named) === number << nameAt },
      { ...common, table: `${when}days`, fits: (s) => fits(s) && (shown(s) & confirmed) === confirmedDays },
    );
    return 'told';
  }

  #perform(subject: string, args: readonly string[], parts: readonly Part[]) {
    return perform(
      this.#ground,
      { account: this.account, subject: `${this.account} ${subject}` },
      args,
      parts,
    );
  }

  async #file(ending: string, text: string): Promise<string> {
    const path = join(this.#ground.folder, `${this.account.replaceAll('/', '-')}.${++this.#files}.${ending}`);
    await writeFile(path, text);
    return path;
  }
}
