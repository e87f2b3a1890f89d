import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Address } from '../../clickhouse/client.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import { loadConfig } from '../../src/config/config.ts';
import { dropStore, type FilledStore, openFilledStore } from '../data/store.ts';
import type { Options } from '../options.ts';
import type { ScenarioResult } from '../report/tables.ts';
import { onCleanup } from './cleanup.ts';
import { compile } from './processes.ts';
import type { Bench, Scenario } from './scenario.ts';

/** Shows progress on standard error; on a terminal each message replaces the one before. */
export function showProgress(what: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${what}` : `${what}\n`);
}

/** What all scenarios of a run share: ClickHouse, the compiled project and the stores filled so far. */
export class Session {
  readonly server: Address;
  readonly #options: Options;
  readonly #scratch: string;
  readonly #compiled: string;
  readonly #stores = new Map<number, Promise<FilledStore>>();

  /** Compiles the project and starts ClickHouse, unless CLICKHOUSE_URL is set. `cleanUp()` ends the session. */
  static async open(options: Options): Promise<Session> {
    const scratch = await mkdtemp(join(tmpdir(), 'adtally-bench-'));
    onCleanup(() => rm(scratch, { recursive: true, force: true }));
    showProgress('compiling');
    const compiled = await compile();
    showProgress('starting ClickHouse');
    return new Session(options, scratch, compiled, await openServer(options.data ?? join(scratch, 'store')));
  }

  private constructor(options: Options, scratch: string, compiled: string, server: Address) {
    this.#options = options;
    this.#scratch = scratch;
    this.#compiled = compiled;
    this.server = server;
  }

  /** Runs a scenario. If it fails, that is part of the result, and the exit code will be 1. */
  async run(name: string, scenario: Scenario): Promise<ScenarioResult> {
    const missing: string[] = [];
    const { events, seed, runs, quick, bytes, data } = this.#options;
    const bench: Bench = {
      events,
      seed,
      runs,
      quick,
      ...(bytes !== undefined && { bytes }),
      ...(data !== undefined && { data }),
      server: this.server,
      compiled: this.#compiled,
      scratch: this.#scratch,
      callSeconds: quick ? 0.1 : 2,
      store: (count) => this.#store(count),
      progress: (what) => showProgress(`${name}: ${what}`),
      skip: (why) => missing.push(`not run: ${why}`),
      fail: (what, error) => {
        process.exitCode = 1;
        missing.push(`failed: ${what}: ${error instanceof Error ? error.message : error}`);
      },
    };
    const outcomes = await scenario(bench).catch((error: unknown) => bench.fail(name, error));
    return { scenario: name, outcomes: outcomes ?? [], missing };
  }

  #store(events: number): Promise<FilledStore> {
    const known = this.#stores.get(events);
    if (known) return known;
    const { seed, data } = this.#options;
    const filled = openFilledStore(this.server, { events, seed }, (done) =>
      showProgress(`generated ${done} of ${events} events`),
    );
    this.#stores.set(events, filled);
    if (data === undefined) onCleanup(async () => dropStore((await filled).address));
    return filled;
  }
}

/** The server of CLICKHOUSE_URL, or an embedded one on this folder. */
async function openServer(dataDir: string): Promise<Address> {
  const { url, user, password } = loadConfig(process.env).clickhouse;
  if (url) return { url, user, password, database: 'default' };
  const lease = await acquireEmbedded(dataDir);
  onCleanup(() => lease.release());
  return { ...lease.address, database: 'default' };
}
