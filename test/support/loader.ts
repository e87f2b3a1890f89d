import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { useCommandRunners } from './command-runners.ts';
import { type EventLine, event } from './events.ts';
import { useFolder } from './folder.ts';
import { type Command, type Ended, environmentOf, type Input, outputOf, useCommands } from './process.ts';
import type { TestStore } from './store.ts';

/** What a test has for itself: whose events it loads, and a folder. */
export interface Own {
  /** A test that needs events of another one sets it. */
  account: string;
  readonly home: string;
}

export interface TestLoader {
  /** Of the test that runs. */
  readonly own: Own;
  /** Holds the folders of all tests of the file; removed at the end. */
  readonly folder: string;
  /** So many events of the advertiser of this test. */
  events(count: number, fields?: Partial<EventLine>): EventLine[];
  /** Writes a file of this test and returns its path. */
  file(name: string, content: string | Buffer): Promise<string>;
  /** What makes `adtally` use the store of the tests. */
  env(): Record<string, string>;
  /** Starts `adtally` on that store, as a process of its own. */
  start(args: readonly string[], input?: Input): Command;
  /** Runs it to its end; without input not in a process of its own, see `useCommandRunners`. */
  run(args: readonly string[], input?: Input): Promise<Ended>;
  /** Loads files, with `--json`. */
  ingest(...args: string[]): Promise<Ended>;
  /** The same, which must go well without a rejected row. */
  loaded(args: readonly string[], input?: Input): Promise<Loaded>;
  /** Events of the advertiser of this test. */
  counted(): Promise<number>;
  /** Kills what still runs. */
  killAll(): Promise<void>;
}

interface Loaded {
  readonly loads: readonly string[];
  readonly rows: number;
  readonly repeated_rows: number;
  readonly duplicate_rows: number;
}

/** What a load with `--json` came to; it must have gone well. */
export async function done(command: Pick<Command, 'ended'>): Promise<Loaded> {
  return JSON.parse(await outputOf(command.ended));
}

/** The loader as its users start it, on the store of a test file. */
export function useLoader(db: TestStore): TestLoader {
  const folder = useFolder();
  const commands = useCommands();
  const runCommand = useCommandRunners();
  const own = { account: '', home: folder };
  let made = 0;
  beforeEach(async () => {
    own.account = `account-${++made}`;
    own.home = join(folder, own.account);
    await mkdir(own.home);
  });

  const env = () => environmentOf(db.address);
  const start = (args: readonly string[], input?: Input) => commands.start(args, env(), input);
  const run: TestLoader['run'] = (args, input) =>
    input === undefined ? runCommand(args, env()) : start(args, input).ended;
  return {
    own,
    folder,
    events: (count, fields) =>
      Array.from({ length: count }, () => event({ advertiser_id: own.account, ...fields })),
    file: async (name, content) => {
      await writeFile(join(own.home, name), content);
      return join(own.home, name);
    },
    env,
    start,
    run,
    ingest: (...args) => run(['ingest', 'events', '--json', ...args]),
    loaded: (args, input) => done({ ended: run(['ingest', 'events', '--json', ...args], input) }),
    counted: async () => {
      const query = 'SELECT toUInt32(count()) AS events FROM events WHERE advertiser_id = {account:String}';
      const [row] = await select<{ events: number }>(db.store, query, { account: own.account });
      return row?.events ?? -1;
    },
    killAll: commands.killAll,
  };
}
