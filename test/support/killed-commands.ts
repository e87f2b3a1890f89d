import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pino from 'pino';
import { expect } from 'vitest';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import type { EmbeddedLease } from '../../clickhouse/embedded/embedded.ts';
import { appliedMigrations } from '../../clickhouse/migrate/migrate.ts';
import { dictionaryStatements, statementsForNode } from '../../clickhouse/migrate/migration-files.ts';
import { pollFor } from '../../clickhouse/poll.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { requireSound } from '../../src/cli/store/backup.ts';
import { loadConfig } from '../../src/config/config.ts';
import { startService } from '../../src/http/service.ts';
import { embedded, fileOf } from './compiled.ts';
import { engineIn } from './embedded-processes.ts';
import { event, ndjson } from './events.ts';
import { paths } from './oracle.ts';
import { type Command, type Ended, environmentOf, postJson, startProcess } from './process.ts';

/** Through CLICKHOUSE_URL, or on the embedded ClickHouse that the command starts itself. */
export type Mode = 'server' | 'embedded';
/** Reports of every path, or why they are not given. */
type Reports = string;

/** A store, made once; every round gets a copy of it. */
export interface Ground {
  readonly folder: string;
  readonly template: string;
  readonly token: string;
  /** The load that has open rejected rows, their correction, and the load that is to be taken back. */
  readonly rejected: string;
  readonly corrected: string;
  readonly wrong: string;
  /** The file that is to take its place. */
  readonly right: string;
  /** A backup of before `wrong` was loaded, as `restore` is given it. */
  readonly backup: string;
  /** `adtally` with one more migration. */
  readonly newer: string;
  /** How long an engine takes to start on the store. */
  readonly engineStartMs: number;
}

const account = 'both';
const cli = () => fileOf('src/cli');
/** `adtally` that cuts small chunks, too. */
const chunkedCli = () => fileOf('test/support/chunked-cli');

export async function makeGround(): Promise<Ground> {
  const folder = mkdtempSync(join(tmpdir(), 'adtally-kills-'));
  const template = join(folder, 'template');
  const env = { DATA_DIR: template };
  const run = async (...args: string[]) => {
    const ended = await adtally(chunkedCli(), args, env).ended;
    expect([0, 4], `${args.join(' ')}: ${ended.stderr}`).toContain(ended.code);
    return ended.stdout;
  };
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const lines = (count: number, prefix: string, years: readonly number[]) =>
    Array.from({ length: count }, (_, n) =>
      event({
        event_id: `${prefix}-${n}`,
        event_time: `${years[n % years.length]}-0${1 + (n % 3)}-0${1 + (n % 9)}T12:00:00Z`,
        advertiser_id: account,
        publisher_id: account,
        campaign_id: `campaign-${n % 5}`,
        ad_unit_id: `ad-unit-${n % 3}`,
        spend: '0.25',
        revenue: '0.125',
      }),
    );
  const { acquireEmbedded } = await embedded();
  const lease = await acquireEmbedded(template);
  const good = file('good.ndjson', ndjson(lines(2_000, 'good', [2020, 2026])));
  await run('ingest', 'events', '--quiet', '--chunk-bytes', '100000', good);
  await run('ingest', 'campaigns', file('names.csv', 'account_id,campaign_id,name\nboth,campaign-1,One\n'));
  const faulty = lines(200, 'faulty', [2026]).map((line, n) => (n % 4 ? line : { ...line, quantity: 0 }));
  const { loads: rejected } = JSON.parse(
    await run('ingest', 'events', '--quiet', '--json', file('faulty.ndjson', ndjson(faulty))),
  ) as { loads: string };
  const store = connect({ ...lease.address, database: 'adtally' });
  const token = await createToken(store, { account, label: 'test' });
  const backup = join(folder, 'earlier.tar.zst');
  await run('backup', backup);
  mkdirSync(join(template, 'store/backups'), { recursive: true });
  cpSync(backup, join(template, 'store/backups/earlier.tar.zst'));
  await run(
    'ingest',
    'events',
    '--quiet',
    '--chunk-bytes',
    '20000',
    file('wrong.ndjson', ndjson(lines(900, 'wrong', [2026]))),
  );
  const loads = await select<{ id: string; file: string }>(
    store,
    'SELECT load_id AS id, file FROM loads FINAL',
  );
  const idOf = (name: string) => loads.find((load) => load.file.endsWith(name))?.id ?? '';
  const corrected = file(
    'corrected.ndjson',
    (await run('rejects', idOf('faulty.ndjson'), '--json')).replaceAll(/"quantity": ?"?0"?/g, '"quantity":1'),
  );
  await store.close();
  await lease.release();
  await engineLeft(template);
  const startedAt = performance.now();
  const again = await acquireEmbedded(template);
  const engineStartMs = performance.now() - startedAt;
  await again.release();
  await engineLeft(template);
  return {
    folder,
    template,
    token,
    rejected: idOf('faulty.ndjson') || rejected,
    corrected,
    wrong: idOf('wrong.ndjson'),
    right: file('right.ndjson', ndjson(lines(600, 'right', [2020, 2026]))),
    backup,
    newer: makeNewer(),
    engineStartMs,
  };
}

export function removeGround({ folder, newer }: Ground): void {
  rmSync(folder, { recursive: true, maxRetries: 20 });
  rmSync(dirname(dirname(newer)), { recursive: true, maxRetries: 20 });
}

/** `adtally` as compiled, with one migration more, which the store lacks. */
export function makeNewer(): string {
  const compiled = dirname(dirname(cli()));
  // Beside it, so that packages are found.
  const folder = mkdtempSync(`${compiled}-newer-`);
  cpSync(compiled, folder, { recursive: true });
  writeFileSync(
    join(folder, 'clickhouse/migrations/9000_made_up.sql'),
    `ALTER TABLE confirmations ADD COLUMN IF NOT EXISTS made_up UInt8;

ALTER TABLE tokens ADD COLUMN IF NOT EXISTS made_up UInt8;

-- cluster: by account
CREATE TABLE IF NOT EXISTS made_up (account_id String) ENGINE = MergeTree ORDER BY account_id;

ALTER TABLE made_up ADD COLUMN IF NOT EXISTS more String;

-- cluster: by account
CREATE TABLE IF NOT EXISTS made_in_vain (account_id String) ENGINE = MergeTree ORDER BY account_id;

DROP TABLE IF EXISTS made_in_vain;
`,
  );
  return join(folder, 'src/cli.js');
}

async function engineLeft(dataDir: string): Promise<void> {
  await pollFor(() => !engineIn(dataDir) || undefined, { pollMs: 50, signal: AbortSignal.timeout(40_000) });
}

export function adtally(program: string, args: readonly string[], env: Record<string, string>): Command {
  return startProcess(process.execPath, [program, ...args], {
    CLICKHOUSE_URL: '',
    ANSWER_TRUST_MS: '0',
    ...env,
  });
}

/** Dictionaries have the password of another start of the engine. */
export async function renewNames(store: Store): Promise<void> {
  for (const statement of await dictionaryStatements()) {
    for (const { query } of statementsForNode(statement, { ...store.address, timezone: 'UTC' })) {
      await store.command({ query });
    }
  }
}

/** A copy of the store, and what is asked of it. */
export class Copy {
  readonly dataDir: string;
  readonly mode: Mode;
  readonly #ground: Ground;
  readonly #folder: string;
  #lease: EmbeddedLease | undefined;

  constructor(ground: Ground, mode: Mode, name: string, folder = ground.folder) {
    this.#ground = ground;
    this.#folder = folder;
    this.mode = mode;
    this.dataDir = join(folder, name);
    cpSync(ground.template, this.dataDir, { recursive: true, verbatimSymlinks: true });
  }

  /** What makes commands use it. */
  async env(): Promise<Record<string, string>> {
    if (this.mode === 'embedded') return { DATA_DIR: this.dataDir };
    const { address } = await this.hold();
    return environmentOf({ ...address, database: 'adtally' });
  }

  /** Keeps the engine up until the copy is removed: what is asked of it then needs no start of its own. */
  async hold(): Promise<EmbeddedLease> {
    this.#lease ??= await (await embedded()).acquireEmbedded(this.dataDir);
    return this.#lease;
  }

  /** It is gone, however it was held. */
  engineIsGone(): void {
    this.#lease = undefined;
  }

  killEngine(): void {
    const pid = engineIn(this.dataDir)?.pid;
    if (pid === undefined) return;
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      // It may have ended.
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  }

  async withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
    const lease = await (await embedded()).acquireEmbedded(this.dataDir);
    const store = connect({ ...lease.address, database: 'adtally' });
    try {
      const server = connect({ ...lease.address, database: 'default' });
      await retrying(() => select(server, 'SELECT 1')).finally(() => server.close());
      return await work(store);
    } finally {
      await store.close();
      await lease.release();
    }
  }

  /** The answers on every path, without the time of the request. */
  reports(): Promise<Reports> {
    return this.withStore(async (store) => {
      const { address } = store;
      await appliedMigrations(store);
      await renewNames(store);
      const config = loadConfig({ PORT: '0', RATE_LIMIT_REQUESTS: '1000000', ANSWER_TRUST_MS: '0' });
      const opened = { address, reporter: address, lost: new Promise<void>(() => {}), close: async () => {} };
      const service = await startService(config, opened, pino({ level: 'silent' }));
      try {
        const ask = async (path: string) => {
          const answer = await postJson(
            service.url + path,
            this.#ground.token,
            '{"start_time":"2019-01-01","end_time":"2030-01-01"}',
          );
          const text = await answer.text();
          if (answer.status !== 200) throw new Error(`${path}: ${text}`);
          return `${path} ${text.replace(/"last_update_time":"[^"]*"/, '')}`;
        };
        const answers: string[] = [];
        // All at once wait for a place for longer than one may, where the machine is busy.
        for (const path of paths) answers.push(await ask(path));
        return answers.join('\n');
      } finally {
        await service.stop();
      }
    });
  }

  /** Ledger, events and rollups fit together, and nothing is left of what was killed. */
  async requireClean(): Promise<void> {
    const left = await this.withStore(async (store) => {
      await requireSound(store);
      return select(
        store,
        `SELECT name FROM system.databases WHERE name LIKE 'adtally\\_%'
         UNION ALL SELECT name FROM system.tables WHERE database = 'adtally' AND (startsWith(name, 'rebuild_') OR startsWith(name, 'restored_'))`,
      );
    });
    expect(left).toEqual([]);
    const links = join(this.dataDir, 'store/backups');
    const names = existsSync(links) ? readdirSync(links) : [];
    expect(names.filter((name) => name.startsWith('adtally-'))).toEqual([]);
    expect(readdirSync(this.#folder).filter((name) => name.startsWith('.adtally-'))).toEqual([]);
  }

  async remove(): Promise<void> {
    await this.#lease?.release();
    await engineLeft(this.dataDir);
    rmSync(this.dataDir, { recursive: true, maxRetries: 20 });
  }
}

/** Starts a command, kills it after a time, and the engine with it if told to. */
export async function killAfter(
  copy: Copy,
  command: Command,
  afterMs: number,
  engineToo: boolean,
): Promise<Ended> {
  await Promise.race([delay(afterMs), command.ended]);
  if (engineToo) copy.killEngine();
  const ended = await command.kill('SIGKILL');
  // A server comes back; so does the engine in which a killed command leaves its work.
  if (engineToo && copy.mode === 'server') await copy.withStore(async () => {});
  return ended;
}
