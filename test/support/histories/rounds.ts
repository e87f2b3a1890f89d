import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { select } from '../../../clickhouse/client.ts';
import { pollFor } from '../../../clickhouse/poll.ts';
import { retrying } from '../../../clickhouse/retry.ts';
import { createToken } from '../../../src/accounts/tokens.ts';
import { paths } from '../oracle.ts';
import { Dice } from '../round-files.ts';
import { Books } from './books.ts';
import { breakConnections, disturb } from './faults.ts';
import { type Answer, type Change, judge } from './judge.ts';
import { ask, type ReaderGround } from './reader.ts';
import { Session, trustMs } from './session.ts';
import { Writers } from './writer.ts';

export interface HistoryRounds {
  readonly rounds: number;
  readonly seed: number;
  /** Only this one of them. */
  readonly only?: number;
  /** Commands of a writer in a round. */
  readonly commands: number;
  /** The longest that a process stands still. */
  readonly longestStopMs: number;
  readonly onRound?: (text: string) => void;
  /** Told of each command and fault when it is over. */
  readonly onStep?: (text: string) => void;
}

/**
 * Each round lets writers load, take back, replace and rebuild while readers ask for reports, with faults in between, writes down
 * what each was told and when, and judges that.
 * @returns what was wrong
 */
export async function historyRounds(options: HistoryRounds): Promise<string[]> {
  const { rounds, seed, only, onRound } = options;
  const wrong: string[] = [];
  const session = await Session.start();
  try {
    for (let number = only ?? 1; number <= (only ?? rounds); number++) {
      const startedAt = performance.now();
      const round = new Round(session, options, number);
      await round.run();
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
    await retrying(() => select(session.store, 'SELECT 1'));
    const accounts = [0, 1].map((n) => new Books(`${this.#prefix}/${n}`, this.#dice(n)));
    for (const { account } of accounts) {
      this.#tokens.set(account, await createToken(session.store, { account, label: '' }));
    }
    const writers = new Writers(
      { session, folder, changes: this.#changes, env: () => ({}), onStep: (text) => this.#step(text) },
      accounts.flatMap(({ list }) => list),
    );
    if (this.#dice(2).below(3) === 0) breakConnections(session, this.#dice(3));
    const write = async (dice: Dice) => {
      for (let n = 0; n < commands; n++) {
        await writers.act(dice);
        await delay(dice.below(500));
      }
    };
    const faults = this.#disturb(this.#dice(4), longestStopMs);
    const readers = [5, 6].map((n) => this.#read(accounts, this.#dice(n)));
    await Promise.all([7, 8].map((n) => write(this.#dice(n))));
    this.#writing = false;
    await Promise.all([faults, ...readers]);
    session.proxy.fate = () => undefined;
    await retrying(() => select(session.store, 'SELECT 1'));
    await writers.settle(this.#dice(9));
    await this.#readAll(accounts);
    this.told.push(
      `${this.#changes.length} commands, ${this.#changes.filter(({ done }) => done).length} done`,
      `${this.#answers.length / 2} answers and ${this.#failed} failed`,
    );
    this.wrong.push(...judge({ changes: this.#changes, answers: this.#answers, trustMs }));
    if (this.wrong.length > 0)
      this.wrong.push(...this.#changes.map(({ told, account }) => `  ${account}: ${told}`));
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

  async #read(accounts: readonly Books[], dice: Dice): Promise<void> {
    const [first] = accounts as [Books];
    while (this.#writing) {
      if ((await ask(this.#readerGround, accounts[dice.below(accounts.length)] ?? first, dice)) === 'failed')
        this.#failed++;
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
          { pollMs: 200, signal: AbortSignal.timeout(60_000) },
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
