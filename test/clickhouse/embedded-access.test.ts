import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, type Server } from '../../clickhouse/client.ts';
import type { EmbeddedLease } from '../../clickhouse/embedded/embedded.ts';
import { Leases } from '../../clickhouse/embedded/leases.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { heldInput } from '../../ingest/input/held-input.ts';
import { compareReport, readTheirFile } from '../../src/reconcile/their-file.ts';
import { compileExplanation } from '../../src/report/explain/compile-explanation.ts';
import { explainedRow } from '../../src/report/explain/explain-request.ts';
import { embedded } from '../support/compiled.ts';
import { event, load } from '../support/events.ts';
import { isAlive, parentOf } from '../support/process.ts';
import {
  answerTo,
  ask,
  basic,
  isRoot,
  listeningPorts,
  startStranger,
  stranger,
} from '../support/strangers.ts';

const { acquireEmbedded } = await embedded();
let root: string;
let dataDir: string;
let lease: EmbeddedLease;
let old: Server;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'adtally-access-'));
  // Whatever keeps others out has to be DATA_DIR itself.
  chmodSync(root, 0o755);
  dataDir = join(root, 'data');
  const before = await acquireEmbedded(dataDir);
  old = before.address;
  await before.release();
  lease = await acquireEmbedded(dataDir);
  await migrate({ ...lease.address, database: 'adtally' });
  await answerTo(lease.address, 'SYSTEM FLUSH LOGS');
});

afterAll(async () => {
  await lease?.release();
  rmSync(root, { recursive: true, maxRetries: 20 });
});

test('another user of the machine reads nothing in DATA_DIR', async () => {
  const script = `
    const { readFileSync, readdirSync } = require('node:fs');
    for (const path of process.argv.slice(1)) {
      try { console.log(readFileSync(path, 'utf8')); } catch (error) { console.log(error.code); }
    }
    try { console.log(readdirSync(${JSON.stringify(dataDir)})); } catch (error) { console.log(error.code); }
    const { statSync } = require('node:fs');
    console.log((statSync(${JSON.stringify(dataDir)}).mode & 0o777).toString(8));`;
  const files = ['clickhouse.json', 'clickhouse.curl', 'clickhouse.log', 'store/metadata/adtally.sql'];
  const seen = await stranger(
    script,
    files.map((file) => join(dataDir, file)),
  );
  // Without root, this is a test of the mode alone.
  if (isRoot) expect(seen.trim().split('\n')).toEqual([...Array(5).fill('EACCES'), '700']);
  else expect(seen.trim().split('\n').at(-1)).toBe('700');
});

describe('without the secret every request is answered with 404', () => {
  const paths = ['/', '/ping', '/play', '/dashboard', '/binary', '/merges', '/replicas_status', '/metrics'];
  test.each([...paths, '/?query=SELECT+1', '/?user=default&query=SELECT+1'])('GET %s', async (path) => {
    expect((await ask(lease.url, { method: 'GET', path })).status).toBe(404);
  });

  test.each([
    ['nobody in particular', {}],
    ['a web page whose name was rebound', { host: 'evil.example', origin: 'http://evil.example' }],
    ['a web page of another origin', { origin: 'https://evil.example', 'content-type': 'text/plain' }],
    ['default', { 'x-clickhouse-user': 'default', 'x-clickhouse-key': '' }],
    ['default, otherwise', { authorization: basic('default', '') }],
    ['adtally without a password', { authorization: basic('adtally', '') }],
    ['reporter without a password', { 'x-clickhouse-user': 'reporter' }],
    ['adtally with a guess', { authorization: basic('adtally', '0'.repeat(64)) }],
  ])('a statement of %s', async (_, headers) => {
    const path = '/?add_http_cors_header=1';
    const answer = await ask(lease.url, {
      path,
      headers,
      body: "INSERT INTO FUNCTION file('x', CSV) SELECT 1",
    });
    expect(answer.status).toBe(404);
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
  });

  test('a statement with the password of another user, of an earlier start, or in the URL', async () => {
    const { password } = lease.address;
    const wrong: Record<string, string>[] = [
      { authorization: basic('reporter', password) },
      { authorization: basic('adtally', lease.reporter.password) },
      { 'x-clickhouse-user': 'default', 'x-clickhouse-key': password },
      { 'x-clickhouse-key': password },
      { authorization: basic('adtally', old.password) },
    ];
    for (const headers of wrong) {
      expect((await ask(lease.url, { headers, body: 'SELECT 1' })).status).toBe(404);
    }
    const path = `/?user=adtally&password=${password}`;
    expect((await ask(lease.url, { path, body: 'SELECT 1' })).status).toBe(404);
  });
});

test('with it both users are answered, and default is not even then', async () => {
  expect(await answerTo(lease.address, 'SELECT currentUser()')).toBe('adtally');
  expect(await answerTo(lease.reporter, 'SELECT currentUser()')).toBe('reporter');
  const { url, user, password } = lease.address;
  const ping = { path: '/ping', method: 'GET', headers: { authorization: basic(user, password) } };
  expect(await ask(url, ping)).toMatchObject({ status: 200, body: 'Ok.\n' });
  const path = '/?user=default';
  const asDefault = await ask(url, {
    path,
    headers: { authorization: basic(user, password) },
    body: 'SELECT 1',
  });
  expect(asDefault.body).toContain('USER_SESSION_LIMIT_EXCEEDED');
});

test('the engine listens on its HTTP port alone', () => {
  expect(listeningPorts(lease.pid)).toEqual([Number(new URL(lease.url).port)]);
});

describe('the reporter', () => {
  test.each(
    Object.keys(catalog.families).flatMap((family) => [
      [family, {}] as const,
      // Compared with nothing, ClickHouse would read the size of the text, which is a column of its own.
      [family, family === 'campaigns' ? { creative_id: '' } : { site_id: '' }] as const,
    ]),
  )('may explain a row of %s: %j', async (family, row) => {
    const asked = { start_time: '2026-03-01', end_time: '2026-03-31', row };
    const statement = compileExplanation(explainedRow(catalog, family, 'anybody', asked));
    const reader = new Reader({ ...lease.reporter, database: 'adtally' }, 30_000);
    const answers = await reader.rows(statement).finally(() => reader.close());
    expect(answers).toMatchObject([{ result: { parts: [] } }]);
  });

  test.each([
    'SELECT count() FROM adtally.campaigns_date',
    'SELECT count() FROM adtally.ad_units_device_site_date',
    'SELECT count() FROM adtally.tokens',
    'SELECT count() FROM adtally.account_limits',
    'SELECT count() FROM adtally.account_currencies',
    'SELECT count() FROM adtally.sign_outs',
    'SELECT count() FROM adtally.confirmations',
    'SELECT count() FROM adtally.loads',
  ])('may %s', async (statement) => {
    expect(await answerTo(lease.reporter, statement)).toBe('0');
  });

  test.each([
    'SELECT event_id FROM adtally.events',
    'SELECT raw FROM adtally.rejected_rows',
    'SELECT content FROM adtally.load_chunks',
    'SELECT count() FROM adtally.campaigns',
    'SELECT query FROM system.query_log',
    'SELECT * FROM system.processes',
    'INSERT INTO adtally.tokens (id) VALUES (1)',
    'INSERT INTO adtally.sign_outs (person) VALUES (1)',
    'TRUNCATE TABLE adtally.campaigns_date',
    'DROP TABLE adtally.tokens',
    'CREATE DATABASE other',
    'CREATE TEMPORARY TABLE t (a UInt8)',
    'SYSTEM STOP LISTEN HTTP',
    "SELECT * FROM file('/etc/hostname', LineAsString)",
    "SELECT * FROM url('http://127.0.0.1:1', LineAsString)",
    "SELECT * FROM remote('127.0.0.1:1', system, one)",
    "SELECT * FROM s3('http://127.0.0.1:1/bucket/key', LineAsString)",
    "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
    "SELECT * FROM postgresql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
    "SELECT * FROM sqlite('/tmp/a', 'b')",
    "SELECT * FROM executable('id', LineAsString, 'a String')",
    "BACKUP DATABASE adtally TO File('x')",
  ])('may not %s', async (statement) => {
    expect(await answerTo(lease.reporter, statement)).toMatch(/ACCESS_DENIED/);
  });

  test.each(Object.entries(catalog.families))('may compare a report with %s', async (family, { entity }) => {
    const store = connect({ ...lease.address, database: 'adtally' });
    await load(store, [event({ advertiser_id: family, publisher_id: family, quantity: 7 })]);
    await store.close();
    const reporter = { ...lease.reporter, database: 'adtally' };
    const reader = new Reader(reporter, 30_000);
    const asReporter = connect(reporter);
    const file = `event_time,${entity}_id,impressions\n2026-03-01,${event()[`${entity}_id` as 'campaign_id']},"1,000"\n`;
    try {
      const whose = {
        catalog,
        family,
        account: family,
        timezone: 'UTC',
        routing: undefined,
        namesFiles: false,
      };
      const content = JSON.stringify({ expressions: { impressions: "replaceAll({impressions}, ',', '')" } });
      const asked = {
        input: heldInput('theirs', ['csv'], Buffer.from(file)),
        mapping: { mapping: { name: 'm', content } },
      };
      const report = await readTheirFile(asReporter, reader, whose, asked);
      const { gap, compared, untried } = await compareReport(
        { ...whose, reader },
        report,
        {},
        'theirs',
        async () => [],
      );
      expect([gap.net[compared.used.indexOf(true)], untried]).toEqual([993n, []]);
    } finally {
      reader.close();
      await asReporter.close();
    }
  });

  test('may not give itself more', async () => {
    expect(await answerTo(lease.reporter, 'SELECT 1 SETTINGS readonly = 0')).toContain('READONLY');
    expect(await answerTo(lease.reporter, "SELECT getSetting('max_memory_usage')")).toBe(String(4 * 2 ** 30));
    const more = await answerTo(lease.reporter, 'SELECT 1 SETTINGS max_memory_usage = 0');
    expect(more).toContain('SETTING_CONSTRAINT_VIOLATION');
  });
});

test('who connects to the lease port learns a random number, and holds nothing', async () => {
  const { leasePort } = JSON.parse(readFileSync(join(dataDir, 'clickhouse.json'), 'utf8'));
  const heard = async (said: string): Promise<string> => {
    const socket = dial(leasePort, '127.0.0.1');
    socket.write(said);
    return text(socket);
  };
  const guess = `${'0'.repeat(64)} ${'0'.repeat(64)}\n`;
  const nonces = await Promise.all(['', '{}\n', guess].map(heard));
  for (const nonce of nonces) expect(nonce).toMatch(/^[0-9a-f]{64}\n$/);
  expect(new Set(nonces).size).toBe(3);
});

test('an engine may take long to start: who holds no lease is waited for from then on when one can be taken', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const leases = await Leases.listen(dataDir, 'secret');
  const isUnused = () => Promise.race([leases.unused, Promise.resolve('waiting')]);
  try {
    vi.advanceTimersByTime(29_000);
    expect(await isUnused()).toBe('waiting');
    leases.greet({ dataDir, url: lease.url, pid: lease.pid, supervisorPid: 1 });
    vi.advanceTimersByTime(14_000);
    expect(await isUnused()).toBe('waiting');
    vi.advanceTimersByTime(1_000);
    expect(await isUnused()).toBe('no lease was taken');
  } finally {
    vi.useRealTimers();
    leases.close();
  }
});

test('after a crash nobody who took the ports passes for the server, and is told no secret', async () => {
  const dir = join(root, 'crashed');
  const crashed = await acquireEmbedded(dir);
  const left = JSON.parse(readFileSync(join(dir, 'clickhouse.json'), 'utf8'));
  process.kill(parentOf(left.pid), 'SIGKILL');
  await crashed.lost;
  await vi.waitUntil(() => !isAlive(left.pid), { timeout: 60_000 });
  // Greets as a supervisor would, and sends back the proof that it was given.
  const script = `
    const [httpPort, leasePort, dataDir] = process.argv.slice(1);
    const greeting = { url: 'http://127.0.0.1:' + httpPort, pid: 1, dataDir, supervisorPid: 1 };
    for (const port of [httpPort, leasePort]) {
      require('node:net').createServer((socket) => {
        socket.on('error', () => {}).write('0'.repeat(64) + '\\n');
        socket.on('data', (data) => {
          console.log(String(data));
          const proof = String(data).trim().split(' ')[1];
          socket.write(proof + ' ' + JSON.stringify(greeting) + '\\n');
        });
      }).listen(port, '127.0.0.1', () => console.log('listens'));
    }`;
  const { port } = new URL(left.url);
  const squatter = startStranger(script, [port, left.leasePort, dir]);
  let heard = '';
  squatter.stdout.setEncoding('utf8').on('data', (data: string) => {
    heard += data;
  });
  await vi.waitUntil(() => heard.split('listens').length === 3, { timeout: 60_000 });
  try {
    const next = await acquireEmbedded(dir);
    expect(next.url).not.toBe(left.url);
    expect(await answerTo(next.address, 'SELECT currentUser()')).toBe('adtally');
    await next.release();
    expect(heard).toMatch(/[0-9a-f]{64} [0-9a-f]{64}/);
    for (const secret of [left.secret, left.passwords.adtally, left.passwords.reporter]) {
      expect(heard).not.toContain(secret);
    }
  } finally {
    squatter.kill('SIGKILL');
  }
});
