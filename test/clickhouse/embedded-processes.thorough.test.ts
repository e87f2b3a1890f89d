import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Server } from '../../clickhouse/client.ts';
import { newAccess } from '../../clickhouse/embedded/access.ts';
import type { EmbeddedLease } from '../../clickhouse/embedded/embedded.ts';
import { embedded } from '../support/compiled.ts';
import { type Holder, leaseOf, startHolder } from '../support/embedded-processes.ts';
import { isAlive, parentOf } from '../support/process.ts';

const { acquireEmbedded } = await embedded();
let root: string;
let dataDir: string;
let leases: EmbeddedLease[];
let holders: ChildProcess[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'adtally-embedded-'));
  dataDir = join(root, 'data');
  leases = [];
  holders = [];
});

afterEach(async () => {
  for (const holder of holders) holder.kill('SIGKILL');
  await Promise.all(leases.map((lease) => lease.release()));
  await until(() => !existsSync(stateFile()));
  rmSync(root, { recursive: true, maxRetries: 20 });
});

test('the engine runs while it is held and leaves neither process nor file', async () => {
  const lease = await acquire();
  expect(state()).toMatchObject({ url: lease.url, pid: lease.pid });
  expect(statSync(stateFile()).mode & 0o777).toBe(0o600);
  expect(await query(lease, 'SELECT 1')).toBe('1');
  const supervisor = parentOf(lease.pid);

  await Promise.all([lease.release(), lease.release()]);

  expect(isAlive(lease.pid)).toBe(false);
  expect(existsSync(stateFile())).toBe(false);
  await until(() => !isAlive(supervisor));
});

test('processes that start at once share one engine, which outlives the first to leave', async () => {
  const [first, second, ...others] = await Promise.all(Array.from({ length: 5 }, () => hold()));
  if (!first || !second) throw new Error('two holders were started');
  expect(new Set([first, second, ...others].map(({ pid }) => pid)).size).toBe(1);

  await first.leave();
  expect(await query(second, 'SELECT 1')).toBe('1');
  await Promise.all([second, ...others].map((holder) => holder.leave()));
  expect(isAlive(second.pid)).toBe(false);
  expect(existsSync(stateFile())).toBe(false);
});

test('a holder may come while the last one leaves', async () => {
  for (let round = 0; round < 5; round++) {
    const before = await acquire();
    const [, after] = await Promise.all([before.release(), acquire()]);
    expect(await query(after, 'SELECT 1')).toBe('1');
    await after.release();
  }
});

test('a killed holder does not keep the engine, and what it wrote is there on the next start', async () => {
  const holder = await hold();
  await query(holder, 'CREATE DATABASE names');
  await query(holder, 'CREATE TABLE names.t (id String, name String) ENGINE = MergeTree ORDER BY id');
  await query(
    holder,
    `CREATE DICTIONARY names.d (id String, name String) PRIMARY KEY id
     SOURCE(CLICKHOUSE(USER 'adtally' PASSWORD '${holder.address.password}' DB 'names' TABLE 't'))
     LAYOUT(COMPLEX_KEY_HASHED()) LIFETIME(0)`,
  );
  await query(holder, "INSERT INTO names.t VALUES ('c1', 'Spring')");
  expect(await query(holder, "SELECT dictGet('names.d', 'name', 'c1')")).toBe('Spring');

  holder.process.kill('SIGKILL');
  await until(() => !isAlive(holder.pid) && !existsSync(stateFile()));

  const lease = await acquire();
  expect(await query(lease, "SELECT name FROM names.t WHERE id = 'c1'")).toBe('Spring');
  await query(lease, 'SYSTEM FLUSH LOGS');
  const logged = "SELECT count() > 0 FROM system.query_log WHERE query LIKE 'INSERT INTO names.t%'";
  expect(await query(lease, logged)).toBe('1');
});

test('a clickhouse.json left by a crash is replaced', async () => {
  await (await acquire()).release();
  leave({ url: 'http://127.0.0.1:9', pid: 2 ** 22, leasePort: 9 });
  const lease = await acquire();
  expect(state()).toMatchObject({ url: lease.url, pid: lease.pid });
  await lease.release();

  writeFileSync(stateFile(), '{"url":', { mode: 0o600 });
  expect(await query(await acquire(), 'SELECT 1')).toBe('1');
});

test('a clickhouse.json whose lease port and http port belong to others by now is replaced', async () => {
  await (await acquire()).release();
  const stranger = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  try {
    const { port } = stranger.address() as AddressInfo;
    const stale = { url: `http://127.0.0.1:${port}`, pid: process.pid, leasePort: port };
    leave(stale);
    const lease = await acquire();
    expect(lease.url).not.toBe(stale.url);
    expect(await query(lease, 'SELECT 1')).toBe('1');
  } finally {
    stranger.close();
  }
});

test("another DATA_DIR's server is not taken for one's own", async () => {
  const other = await acquire(join(root, 'other'));
  await (await acquire()).release();
  writeFileSync(stateFile(), readFileSync(join(root, 'other', 'clickhouse.json')), { mode: 0o600 });
  const lease = await acquire();
  expect(lease.pid).not.toBe(other.pid);
  expect(await query(other, 'SELECT 1')).toBe('1');
});

test('a killed engine is back at the same address', async () => {
  const lease = await acquire();
  process.kill(lease.pid, 'SIGKILL');
  await until(() => state().pid !== lease.pid);
  expect(await query(lease, 'SELECT 1')).toBe('1');
  expect(state()).toMatchObject({ url: lease.url });

  const joined = await acquire();
  expect(joined.pid).toBe(state().pid);
});

test('an engine is back once its disk can be read again', async () => {
  const lease = await acquire();
  const metadata = join(dataDir, 'store/metadata');
  renameSync(metadata, `${metadata}.away`);
  writeFileSync(metadata, '');
  process.kill(lease.pid, 'SIGKILL');
  await until(() => readFileSync(join(dataDir, 'clickhouse.log'), 'utf8').includes('ENOTDIR'));
  rmSync(metadata);
  renameSync(`${metadata}.away`, metadata);
  await until(() => state().pid !== lease.pid);
  expect(await query(lease, 'SELECT 1')).toBe('1');
});

test('a killed supervisor takes its engine along, and the next server answers', async () => {
  const lease = await acquire();
  process.kill(parentOf(lease.pid), 'SIGKILL');
  await lease.lost;
  const next = await acquire();
  await until(() => !isAlive(lease.pid));
  expect(await query(next, 'SELECT 1')).toBe('1');
});

test('a supervisor that cannot write where its engine is takes it along', async () => {
  const lease = await acquire();
  rmSync(stateFile());
  mkdirSync(join(stateFile(), 'in the way'), { recursive: true });
  process.kill(lease.pid, 'SIGKILL');
  await lease.lost;
  rmSync(stateFile(), { recursive: true });
  expect(await query(await acquire(), 'SELECT 1')).toBe('1');
});

test('SIGTERM stops the supervisor cleanly', async () => {
  const lease = await acquire();
  process.kill(parentOf(lease.pid), 'SIGTERM');
  await lease.lost;
  expect(isAlive(lease.pid)).toBe(false);
  expect(existsSync(stateFile())).toBe(false);
});

test('DATA_DIR may have spaces, quotes and backslashes in its name', async () => {
  const lease = await acquire(join(root, `it's "my" \\data`));
  expect(await query(lease, 'SELECT 1')).toBe('1');
});

test('a DATA_DIR that cannot be made is named', async () => {
  const file = join(root, 'file');
  writeFileSync(file, '');
  for (const dir of [join(file, 'data'), '/proc/adtally/data'])
    await expect(acquireEmbedded(dir)).rejects.toThrow(`DATA_DIR ${dir} cannot be created or written: `);
});

test('without the engine library the way out is named', async () => {
  const holder = startHolder(dataDir, { ...process.env, CHDB_LIBCHDB_PATH: join(root, 'none') });
  const [stderr] = await Promise.all([text(holder.stderr), once(holder, 'exit')]);
  expect(stderr).toContain('EmbeddedUnavailable: the embedded ClickHouse cannot run here, on ');
  expect(stderr).toContain('set CLICKHOUSE_URL to a ClickHouse server');
  expect(stderr).toContain('CHDB_LIBCHDB_PATH points at');
});

async function acquire(dir = dataDir): Promise<EmbeddedLease> {
  const lease = await acquireEmbedded(dir);
  leases.push(lease);
  return lease;
}

async function hold(): Promise<Holder> {
  const process = startHolder(dataDir);
  holders.push(process);
  return leaseOf(process);
}

/** Over a connection of its own, so that none is left open when the engine is to stop. */
async function query({ address }: { address: Server }, sql: string): Promise<string> {
  const headers = { 'x-clickhouse-user': address.user, 'x-clickhouse-key': address.password };
  const post = request(address.url, { method: 'POST', agent: false, headers }).end(sql);
  const [response] = await once(post, 'response');
  const body = (await text(response)).trim();
  if (response.statusCode !== 200) throw new Error(body);
  return body;
}

/** A clickhouse.json as a crash leaves it. */
function leave(server: { url: string; pid: number; leasePort: number }): void {
  writeFileSync(stateFile(), JSON.stringify({ ...server, ...newAccess() }), { mode: 0o600 });
}

function stateFile(): string {
  return join(dataDir, 'clickhouse.json');
}

function state(): { url: string; pid: number; leasePort: number } {
  return JSON.parse(readFileSync(stateFile(), 'utf8'));
}

async function until(condition: () => boolean): Promise<void> {
  await vi.waitFor(() => expect(condition()).toBe(true), { timeout: 20_000, interval: 20 });
}
