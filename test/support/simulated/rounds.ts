import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '../../../clickhouse/client.ts';
import { heldInput } from '../../../ingest/input/held-input.ts';
import type { Input } from '../../../ingest/input/input.ts';
import { type LoadResult, loadEvents, senders } from '../../../ingest/load/load-events.ts';
import { slots } from '../../../ingest/load/parallel.ts';
import { RejectLimit } from '../../../ingest/rejects/reject-limit.ts';
import { seededRandom } from '../random.ts';
import { connected, type Fault } from './connection.ts';
import { type Program, Server } from './server.ts';
import type { Answer, Statement } from './state.ts';
import { rollupTables } from './tables.ts';
import { beginning, runAs, SimulatedTime } from './time.ts';

export interface Loader {
  /** Milliseconds. */
  readonly startsAt: number;
  /**
   * Each chunk by itself, small chunks of two files in one statement, or counted before they are stored. Or three files that
   * begin one after another: small chunks in one statement, or each by itself when it is its turn.
   */
  readonly sends: 'alone' | 'together' | 'counted' | 'together, apart' | 'in turn, apart';
  /** On the machine of the others. */
  readonly isHere: boolean;
  /** How often the command is given, until it has done its work. */
  readonly runs: number;
  /** By the number of the statement. */
  readonly faults: readonly (Fault & { readonly at: number })[];
}

/** What happens, and when: the same schedule gives the same round. */
export interface Schedule {
  /** Of what takes how long, and the order of what happens at once. */
  readonly seed: number;
  /** The longest that a statement or an answer is on its way. */
  readonly wayMs: number;
  /** When the file grows, if it does. */
  readonly growsAt?: number | undefined;
  /** When the engine forgets which parts it has, if it does. */
  readonly forgetsAt?: number | undefined;
  /** Inserts take no time, as in an engine that is asked one statement after another. */
  readonly inOneStep?: boolean;
  readonly loaders: readonly Loader[];
}

const badLine = (name: string) => `{"event_time":"never","event_type":"impression","campaign_id":"${name}"}`;
const line = (name: string, n: number) =>
  `{"event_time":"2026-0${2 + (n % 2)}-2${n % 3} 10:00:0${n}","event_type":"impression","advertiser_id":"a","campaign_id":"${name}${n}","publisher_id":"p","ad_unit_id":"${name}${n}","spend":1,"revenue":1}`;
const linesOf = (name: string, count: number) =>
  Array.from({ length: count }, (_, n) => (n === 1 ? badLine(name) : line(name, n)));
/** Of three lines a chunk, the second faulty: two chunks, and two lines more where it has grown. */
const contents = {
  short: linesOf('f', 6),
  grown: linesOf('f', 8),
  other: linesOf('g', 3),
  third: linesOf('h', 3),
};
type Content = keyof typeof contents;
const chunkBytes = 3 * line('f', 0).length + 3;

const bytesOf = (content: Content) => Buffer.from(`${contents[content].join('\n')}\n`);
const eventsOf = (content: Content) => contents[content].length - 1;
const held = {
  ...{ short: bytesOf('short'), grown: bytesOf('grown') },
  ...{ other: bytesOf('other'), third: bytesOf('third') },
};
/** The longest between two files that begin one after another; their heartbeats come as far apart. */
const apartMs = 6_000;

export interface Round {
  readonly statements: number;
  /** How each command ended, in their order. */
  readonly ends: readonly string[];
  /** What must not be so. */
  readonly wrong: readonly string[];
}

/**
 * A loader relies only on the last half of the parts that the engine remembers; the other half takes at least this long to be
 * pushed out.
 */
const forgettingMs = 20_000;

/** Nothing takes longer than this, in simulated milliseconds. */
const limitMs = 7_200_000;

/**
 * Loads by the code of the loader into a simulated store, disturbed as the schedule says. Then the files are loaded once more,
 * undisturbed, and everything is counted.
 */
export async function runSchedule(
  schedule: Schedule,
  onStatement?: (statement: Statement, answer: Answer, now: number, program: Program) => void,
): Promise<Round> {
  const random = seededRandom(schedule.seed);
  const time = new SimulatedTime();
  const server = new Server(time, random, schedule.inOneStep ? 0 : 20);
  let { wayMs } = schedule;
  const way = () => random() * wayMs;
  const { growsAt = Number.POSITIVE_INFINITY, forgetsAt } = schedule;
  const contentNow = (): Content => (time.now >= growsAt ? 'grown' : 'short');
  const ends: string[] = [];
  const wrong: string[] = [];
  let [statements, begun] = [0, 0];
  const countFor = (program: Program) => (statement: Statement, answer: Answer) => {
    statements++;
    for (const text of twice(server)) if (!wrong.includes(text)) wrong.push(text);
    onStatement?.(statement, answer, time.now, program);
  };

  const command = async (
    loader: Pick<Loader, 'sends'>,
    files: readonly Content[],
    program: Program,
    store: Store,
  ) => {
    const { sends } = loader;
    const isApart = sends === 'together, apart' || sends === 'in turn, apart';
    const inTurn = slots(senders);
    let loads = isApart ? 0 : files.length;
    const loadOne = async (content: Content, n: number) => {
      if (isApart) {
        await delay(n === 0 ? 0 : random() * apartMs);
        loads++;
      }
      const result = await loadEvents({
        ...{ store, chunkBytes, input: inputOf(content, contentNow) },
        // Clocks of machines differ by more than a day; no two loads begin in the same millisecond.
        now: () => new Date(beginning + program.skewMs + ++begun),
        ...((sends === 'together' || sends === 'together, apart') && { loads: () => loads }),
        ...(sends === 'in turn, apart' && { inTurn }),
        ...(sends === 'counted' && { rejectLimit: new RejectLimit({ rows: 5 }) }),
      });
      wrong.push(...notOnce(server, result, content));
      return result;
    };
    return Promise.all(files.map(loadOne));
  };

  const start = (loader: Loader, faultOf: () => Fault | undefined, runs = 1) => {
    const { sends, isHere } = loader;
    const ended = (how: string) => {
      ends.push(how);
      if (how !== 'loaded' && runs < loader.runs)
        time.in(random() * 10_000, () => start(loader, faultOf, runs + 1));
    };
    const skewMs = (random() - 0.5) * 2e8;
    const program: Program = {
      time,
      isHere,
      skewMs,
      dead: false,
      pausedUntil: 0,
      onDeath: () => ended('killed'),
    };
    const files: Content[] = [contentNow()];
    if (sends === 'together') files.push('other');
    if (sends === 'together, apart' || sends === 'in turn, apart') files.push('other', 'third');
    runAs(program, () => {
      const store = connected({ time, server, program, way, faultOf, onStatement: countFor(program) });
      command(loader, files, program, store).then(
        () => ended('loaded'),
        (error: Error) => {
          if (/Please report this|simulated store/.test(error.message)) wrong.push(error.message);
          ended(error.message);
        },
      );
    });
  };

  if (forgetsAt !== undefined) {
    time.in(forgetsAt, () => time.in(forgettingMs, server.tables.age(server.clock)));
  }
  for (const loader of schedule.loaders) {
    const faults = new Map(loader.faults.map((fault) => [fault.at, fault]));
    let sent = 0;
    time.in(loader.startsAt, () => start(loader, () => faults.get(sent++)));
  }
  await time.run(limitMs);
  wayMs = 1;

  const final: Content[] = [Number.isFinite(growsAt) ? 'grown' : 'short', 'other', 'third'];
  for (const again of [false, true]) {
    const program: Program = {
      time,
      isHere: true,
      skewMs: 0,
      dead: false,
      pausedUntil: 0,
      onDeath: () => {},
    };
    let rows = -1;
    const load = () => {
      const store = connected({
        time,
        server,
        program,
        way,
        faultOf: () => undefined,
        onStatement: countFor(program),
      });
      command({ sends: 'alone' }, final, program, store).then(
        (results) => {
          rows = results.reduce((sum, result) => sum + result.rows, 0);
        },
        (error: Error) => wrong.push(`an undisturbed load fails: ${error.message}`),
      );
    };
    time.in(server.awayMs, () => runAs(program, load));
    await time.run(2 * limitMs);
    if (again && rows !== 0) wrong.push(`${rows} events are loaded again`);
  }
  wrong.push(...notAll(server, final));
  return { statements, ends, wrong };
}

function inputOf(content: Content, contentNow: () => Content): Input {
  const { isWhole: _, ...input } = heldInput(`${content}.ndjson`, ['ndjson'], held[content]);
  if (content !== 'short' && content !== 'grown') return input;
  return {
    ...input,
    size: () => held[contentNow()].length,
    look: () => ({ version: contentNow(), modified: new Date(beginning) }),
  };
}

const stored = ['events', 'chunk_days', ...rollupTables];
const sum = (rows: readonly { readonly rows: number }[]) => rows.reduce((all, { rows }) => all + rows, 0);

/** What a load says is loaded counts once from then on. */
function notOnce({ tables }: Server, { places, rows, repeatedRows }: LoadResult, content: Content): string[] {
  const chunks = places.map(({ id }) => id);
  const events = eventsOf(content);
  const wrong = stored
    .map((table) => ({ table, rows: sum(tables.table(table).of(chunks)) }))
    .filter((found) => found.rows !== events)
    .map((found) => `${found.table} has ${found.rows} of ${events} events when ${content} is loaded`);
  if (rows + repeatedRows !== events)
    wrong.push(`a load of ${events} events tells ${rows} and ${repeatedRows}`);
  return wrong;
}

/** What reports would show twice: no chunk has two events of one day. */
function twice({ tables }: Server): string[] {
  const rows = (table: string) => [...tables.table(table).counts.values()];
  return rollupTables
    .filter((table) => rows(table).some((row) => row.rows > 1))
    .map((table) => `${table} has a chunk twice`);
}

/** Nothing else is there in the end. */
function notAll({ tables }: Server, contents: readonly Content[]): string[] {
  const events = contents.reduce((all, content) => all + eventsOf(content), 0);
  const wrong = stored
    .map((table) => ({ table, rows: sum([...tables.table(table).counts.values()]) }))
    .filter((found) => found.rows !== events)
    .map((found) => `${found.table} has ${found.rows} of ${events} events in the end`);
  if (tables.rejected.size !== contents.length) wrong.push(`${tables.rejected.size} rows are rejected`);
  return wrong;
}
