import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pollFor } from '../../../clickhouse/poll.ts';
import { interruptedUnloads } from '../../../ingest/history/interrupted.ts';
import { mendOf } from '../../../ingest/ledger/load-records.ts';
import { createToken } from '../../../src/accounts/tokens.ts';
import { paths } from '../oracle.ts';
import { Dice } from '../round-files.ts';
import { Books } from './books.ts';
import { breakConnections, disturb, oddClocks } from './faults.ts';
import { Follower } from './follower.ts';
import { type Answer, type Change, judge } from './judge.ts';
import { Lists } from './lists.ts';
import { ask, type ReaderGround } from './reader.ts';
import { Session, trustMs } from './session.ts';
import { Writers } from './writer.ts';

export interface HistoryRounds {
  readonly rounds: number;
  readonly seed: number;
  /** Only this one of them. */
  readonly only?: number | undefined;
  /** Commands of a writer in a round. */
  readonly commands: number;
  /** The longest that a process stands still. */
  readonly longestStopMs: number;
  /** Whether the disk of ClickHouse can be filled and fail, for which one has to be root. */
  readonly onDisk: boolean;
  readonly onRound?: (text: string) => void;
  /** Told of each command and fault when it is over. */
  readonly onStep?: ((text: string) => void) | undefined;
}

/**
 * Each round lets writers load, take back, replace, rebuild, rename, confirm and close while readers ask for reports and followers for
 * what changed, with faults in between; writes down what each was told and when, and judges that. In the end, in peace, every path
 * has to say the same, a follower has to have it, and `verify` finds no difference.
 * @returns what was wrong
 */
export async function historyRounds(options: HistoryRounds): Promise<string[]> {
  const { rounds, seed, only, onRound } = options;
  const wrong: string[] = [];
  const session = await Session.start(options.onDisk);
  try {
    for (let number = only ?? 1; number <= (only ?? rounds); number++) {
      const startedAt = performance.now();
      const round = new Round(session, options, number);
      await round.run().catch((error: unknown) => {
        round.wrong.push(`${error instanceof Error ? error.stack : error}`);
      });
      round.wrong.push(...session.crashes.splice(0));
      wrong.push(...round.wrong.map((each) => `seed ${seed}, round ${number}: ${each}`));
      onRound?.(
        `round ${number}: ${round.told.join(', ')}, ${Math.round((performance.now() - startedAt) / 1000)} s${round.wrong.map((each) => `\nWRONG ${each}`)}`,
      );
    }
  } finally {
    await session.stop();
  }
  return wrong;
}

class Round {
  readonly wrong: string[] = [];
  readonly told: string[] = [];
  readonly #session: Session;
  readonly #options: HistoryRounds;
  readonly #prefix: string;
  readonly #seed: number;
  readonly #changes: Change[] = [];
  readonly #answers: Answer[] = [];
  readonly #tokens = new Map<string, string>();
  #failed = 0;
  #writing = true;

  constructor(session: Session, options: HistoryRounds, number: number) {
    this.#session = session;
    this.#options = options;
    this.#prefix = `s${options.seed}r${number}`;
    this.#seed = options.seed * 7919 + number;
  }

  async run(): Promise<void> {
    const session = this.#session;
    const { commands, longestStopMs } = this.#options;
    const folder = join(session.folder, this.#prefix);
    await mkdir(folder);
    await session.select('SELECT 1');
    let env = (): Record<string, string> => ({});
    const ground = {
      ...{ session, folder, changes: this.#changes, env: () => env() },
      onStep: (text: string) => this.#step(text),
    };
    const accounts = [0, 1].map((n) => new Books(`${this.#prefix}/${n}`, this.#dice(n)));
    const lists = new Lists(ground, `${this.#prefix}/lists`);
    for (const { account } of [...accounts, lists]) {
      this.#tokens.set(account, await createToken(session.store, { account, label: '' }));
    }
    const followers = accounts.map(
      ({ account }, n) => new Follower(this.#readerGround, account, n ? 'ad_units' : 'campaigns'),
    );
    const writers = new Writers(
      ground,
      accounts.flatMap(({ list }) => list),
    );
    await lists.load();
    const choice = this.#dice(2);
    if (choice.below(3) === 0) this.#breakConnections();
    if (choice.below(3) === 0) {
      const clocks = oddClocks(folder, this.#dice(11));
      if (clocks) {
        env = clocks;
        this.told.push('odd clocks');
      }
    }
    const write = async (dice: Dice, act: () => Promise<void>) => {
      for (let n = 0; n < commands; n++) {
        await act();
        await delay(dice.below(500));
      }
    };
    const faults = this.#disturb(this.#dice(4), longestStopMs);
    const readers = [5, 6].map((n) => this.#read(accounts, lists, this.#dice(n)));
    const following = followers.map((follower, n) => this.#follow(follower, this.#dice(12 + n)));
    const [one, other, third] = [this.#dice(7), this.#dice(8), this.#dice(14)];
    const writing = Promise.allSettled([
      write(one, () => writers.act(one)),
      write(other, () => writers.act(other)),
      write(third, () => lists.act(third)),
    ]).finally(() => {
      this.#writing = false;
    });
    const others = await Promise.allSettled([faults, ...readers, ...following]);
    const ended = [...(await writing), ...others];
    session.proxy.fate = () => undefined;
    env = () => ({});
    const failed = ended.find((each) => each.status === 'rejected');
    if (failed) throw failed.reason;
    await session.select('SELECT 1');
    await writers.settle(this.#dice(9));
    // Where days were replaced after an `unload` was interrupted. That changes no answer any more.
    for (const { load } of await interruptedUnloads(session.store)) await session.run(['unload', load]);
    // What is still damaged.
    await session.run(['rebuild']);
    await this.#readAll(accounts);
    await this.#judge(accounts, followers);
  }

  async #judge(accounts: readonly Books[], followers: readonly Follower[]): Promise<void> {
    const asked = this.#answers.length / 2;
    this.told.push(
      `${this.#changes.length} commands, ${this.#changes.filter(({ done }) => done).length} done`,
      `${asked} answers and ${this.#failed} failed`,
    );
    this.wrong.push(...judge({ changes: this.#changes, answers: this.#answers, trustMs }));
    const query = 'SELECT toUInt32(uniqExact(load_id)) AS loads FROM loads WHERE file LIKE {mend:String}';
    const [mended] = await this.#session.select<{ loads: number }>(query, { mend: mendOf('%') });
    this.told.push(`${mended?.loads} loads mended something until now`);
    for (const [n, follower] of followers.entries()) {
      const books = accounts[n] as Books;
      await follower.requireAll(books.recount(follower.path, books.lastUnits).rows);
      this.wrong.push(...follower.wrong);
      if (follower.wentBack > 0) this.told.push(`changed_until went back ${follower.wentBack} times`);
    }
    const verified = await this.#session.run(['verify']);
    if (verified.code !== 0) this.wrong.push(`verify: ${verified.stdout}${verified.stderr}`);
    if (this.wrong.length > 0)
      this.wrong.push(...this.#changes.map(({ told, account }) => `  ${account}: ${told}`));
  }

  #breakConnections(): void {
    breakConnections(this.#session, this.#dice(3));
    this.told.push('connections break');
  }

  async #disturb(dice: Dice, longestStopMs: number): Promise<void> {
    while (this.#writing) {
      const ended = this.#changes.length + dice.below(3);
      while (this.#writing && this.#changes.length < ended) await delay(20);
      await delay(dice.below(3_000));
      if (!this.#writing) return;
      const fault = await disturb(this.#session, dice, longestStopMs);
      this.told.push(fault);
      this.#step(fault);
    }
  }

  #step(text: string): void {
    this.#options.onStep?.(`${Math.round(performance.now())} ${text}`);
  }

  async #follow(follower: Follower, dice: Dice): Promise<void> {
    while (this.#writing) {
      await follower.look();
      await delay(dice.below(2_000));
    }
  }

  async #read(accounts: readonly Books[], lists: Lists, dice: Dice): Promise<void> {
    const [first, second] = accounts as [Books, Books];
    while (this.#writing) {
      const asked = await dice.one([
        () => ask(this.#readerGround, first, dice),
        () => ask(this.#readerGround, second, dice),
        () => lists.ask(this.#readerGround, dice),
      ])();
      if (asked === 'failed') this.#failed++;
      await delay(dice.below(200));
    }
  }

  /** In peace, every path. */
  async #readAll(accounts: readonly Books[]): Promise<void> {
    const dice = this.#dice(10);
    for (const books of accounts) {
      for (const path of paths) {
        await pollFor(
          async () => (await ask(this.#readerGround, books, dice, path)) === 'told' || undefined,
          { pollMs: 200, signal: AbortSignal.timeout(300_000) },
        );
      }
    }
  }

  get #readerGround(): ReaderGround {
    return {
      session: this.#session,
      answers: this.#answers,
      token: (account) => this.#tokens.get(account) ?? '',
    };
  }

  #dice(n: number): Dice {
    return new Dice(this.#seed * 31 + n);
  }
}
