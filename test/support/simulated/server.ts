import { ClickHouseError } from '@clickhouse/client';
import { reads } from './reads.ts';
import { rebuildReads, rebuildWrites } from './rebuilds.ts';
import type { Answer, State, Statement, Work } from './state.ts';
import { type LoadVersion, type Part, Tables } from './tables.ts';
import type { Process, SimulatedTime } from './time.ts';
import { writes } from './writes.ts';

const allReads = [...reads, ...rebuildReads];
const allWrites = [...writes, ...rebuildWrites];

export interface Program extends Process {
  /** On the machine of the others, who see at once that it has died. */
  readonly isHere: boolean;
  readonly onDeath: () => void;
}

/** No process has it. */
const nobody = 2 ** 30;

/** A ClickHouse as loads see it: its tables, its clock, and what it is at. */
export class Server implements State {
  readonly tables = new Tables();
  atWork: readonly Work[] = [];
  readonly #time: SimulatedTime;
  readonly #random: () => number;
  readonly #owners = new Map<string, Program>();
  readonly #partMs: number;
  #downUntil = -1;

  /** @param partMs how long a part takes at most; 0: an insert is done in one step */
  constructor(time: SimulatedTime, random: () => number, partMs: number) {
    this.#partMs = partMs;
    this.#time = time;
    this.#random = random;
  }

  /** In so many milliseconds it answers. */
  get awayMs(): number {
    return Math.max(0, this.#downUntil - this.#time.now);
  }

  /** Microseconds. */
  get clock(): number {
    return Math.floor(this.#time.now * 1000);
  }

  readonly latestLoads = (): LoadVersion[] => {
    const latest = new Map<string, LoadVersion>();
    for (const load of this.tables.loads) latest.set(load.id, load);
    return [...latest.values()];
  };

  readonly whereOf: State['whereOf'] = (id, { host, pid }) => {
    const owner = this.#owners.get(id);
    if (owner && !owner.isHere) return { host: 'another', pid };
    return { host, pid: owner?.dead ? nobody : pid };
  };

  /** @param answered called when it is done, or cannot be */
  receive(statement: Statement, from: Program, answered: (answer: Answer) => void): void {
    if (this.#time.now < this.#downUntil) {
      answered(connectionError('ECONNREFUSED'));
      return;
    }
    try {
      this.#execute(statement, from, answered);
    } catch (error) {
      if (!(error instanceof ClickHouseError)) throw error;
      answered(error);
    }
  }

  /** The engine dies, and comes back. Of what it was storing, it has a beginning. */
  die(awayMs: number): void {
    this.#downUntil = this.#time.now + awayMs;
    for (const work of this.atWork) work.end('engine died');
    this.tables.startedAt = Math.floor(this.#downUntil * 1000);
  }

  #execute(statement: Statement, from: Program, answered: (answer: Answer) => void): void {
    const { query } = statement;
    const read = allReads.find(([pattern]) => pattern.test(query))?.[1];
    if (read) {
      answered(read(this, statement));
      return;
    }
    const write = allWrites.find(([pattern]) => pattern.test(query))?.[1];
    if (!write) throw new Error(`the simulated store does not know: ${query.slice(0, 300)}`);
    if (query.startsWith('INSERT INTO loads')) this.#note(statement, from);
    const parts = write(this, statement);
    if (parts) this.#storeParts(parts, statement, answered);
    else answered([]);
  }

  #note({ data }: Statement, from: Program): void {
    for (const line of `${data}`.split('\n')) this.#owners.set(JSON.parse(line).id, from);
  }

  #storeParts(
    parts: readonly Part[],
    { query, settings }: Statement,
    answered: (answer: Answer) => void,
  ): void {
    if (this.#partMs === 0) {
      for (const part of parts) this.tables.store(part);
      answered([]);
      return;
    }
    const left = shuffled(parts, this.#random);
    const [, comment = String(settings.log_comment)] = /SETTINGS log_comment = '(.*?)'/.exec(query) ?? [];
    const [prefix, ...loads] = comment.split(' ');
    const finish = (answer: Answer) => {
      left.length = 0;
      this.atWork = this.atWork.filter((each) => each !== work);
      answered(answer);
    };
    const work: Work = {
      loads: prefix === 'load' ? loads : [],
      token: String(settings.insert_deduplication_token),
      end: (how) => {
        const [next] = left;
        if (how === 'engine died' && next && this.#random() < 0.3) this.tables.store(next, true);
        finish(how === 'killed' ? killed() : connectionError('ECONNRESET'));
      },
    };
    this.atWork = [...this.atWork, work];
    const step = () => {
      if (!this.atWork.includes(work)) return;
      const part = left.shift();
      if (part) this.tables.store(part);
      if (left.length > 0) this.#time.in(this.#random() * this.#partMs, step);
      else finish([]);
    };
    this.#time.in(this.#random() * this.#partMs, step);
  }
}

const killed = () =>
  new ClickHouseError({ message: 'Query was cancelled', code: '394', type: 'QUERY_WAS_CANCELLED' });

export function connectionError(code: 'ECONNREFUSED' | 'ECONNRESET'): Error {
  return Object.assign(new Error(`read ${code}`), { code, syscall: 'read' });
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const all = [...items];
  for (let n = all.length - 1; n > 0; n--) {
    const other = Math.floor(random() * (n + 1));
    [all[n], all[other]] = [all[other] as T, all[n] as T];
  }
  return all;
}
