import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { listSignOuts } from '../../src/accounts/sign-outs.ts';
import { listTokens, purposeOf } from '../../src/accounts/tokens.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { startOf } from '../support/compiled.ts';
import { event, load } from '../support/events.ts';
import { useFolder } from '../support/folder.ts';
import { environmentOf, startProcess, useCommands } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const commands = useCommands();
const runCommand = useCommandRunners();
const folder = useFolder();

let account: string;
let made = 0;
beforeEach(() => {
  account = `account-${++made}`;
});

/** Runs `adtally` on the store of this file as a process, the words of the line as its arguments. */
function adtally(line: string, { env = {} } = {}) {
  return commands.run(line.split(' '), { ...environmentOf(db.address), ...env });
}

/** The same, where it is not about the process. */
const adtallyAgain = (line: string) => runCommand(line.split(' '), environmentOf(db.address));

/** Runs a command one stream of which is open for reading alone: what is written there fails, as on a full disk. */
const withUnwritten = (stream: 1 | 2, line: string, env: Record<string, string> = {}) =>
  startProcess(
    'sh',
    [
      '-c',
      `exec "$@" ${stream}< /dev/null`,
      'sh',
      process.execPath,
      ...startOf('src/cli'),
      ...line.split(' '),
    ],
    { ...environmentOf(db.address), ...env },
  );

test('a log that cannot be written ends no load and no service', async () => {
  const file = join(folder, 'unwritten.ndjson');
  writeFileSync(file, `${JSON.stringify(event({ advertiser_id: account }))}\n`);
  expect(await withUnwritten(2, `ingest events ${file}`).ended).toMatchObject({ code: 0 });
  const count = 'SELECT toUInt32(count()) AS n FROM events WHERE advertiser_id = {account:String}';
  expect(await select(db.store, count, { account })).toEqual([{ n: 1 }]);

  const free = createServer();
  await once(free.listen(0, '127.0.0.1'), 'listening');
  const { port } = free.address() as AddressInfo;
  await once(free.close(), 'close');
  const receive = withUnwritten(2, 'receive', { RECEIVE_PORT: `${port}` });
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect.poll(isReady, { timeout: 60_000 }).toBe(true);
  // Refused, and logged.
  expect((await fetch(`http://127.0.0.1:${port}/v1/events`, { method: 'POST' })).status).toBe(401);
  expect(await isReady()).toBe(true);
  expect(await receive.kill('SIGTERM')).toMatchObject({ code: 0 });
}, 120_000);

describe('an output that cannot be written', () => {
  const unwritten = (line: string) => withUnwritten(1, line).ended;

  test.each(['loads --json', 'token list --json', 'loads --help'])(
    'of %s is one line and exit code 1',
    async (line) => {
      const { code, stderr } = await unwritten(line);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^error: the output cannot be written: E.*\n$/),
      ]);
    },
  );

  test('of token create says how to revoke what nobody has', async () => {
    const { code, stderr } = await unwritten(`token create ${account}`);
    const [token] = await listTokens(db.store, { account });
    expect(code).toBe(1);
    expect(stderr).toContain(`nobody has the token now: adtally token revoke ${token?.id}\n`);
  });
});

describe('usage', () => {
  test.each([
    ['frobnicate', /unknown command 'frobnicate'/],
    ['token frobnicate', /unknown command 'frobnicate'/],
    ['serve --prot 80', /unknown option '--prot'/],
    ['ingest events', /missing required argument 'file'/],
    ['ingest events x --skip-lines 0', /--skip-lines/],
    ['ingest events x --chunk-bytes=100000', /unknown option '--chunk-bytes=100000'/],
    ['ingest events x --parallel=3', /unknown option '--parallel=3'/],
    ['ingest events x --format xml', /--format/],
    ['ingest events x --follow 25d', /--follow .*Give 24d at most/],
    ['mail --every 30d', /--every .*Give 24d at most/],
    ['confirm acme --from 2026-02-01 --to 2026-02-30', /--to/],
    ['confirm acme --from 2026-02-02 --to 2026-02-01', /--to must not be before the first day/],
    ['confirm acme --to 2026-02-01', /--from/],
    ['confirm acme --from 1970-12-31 --to 1971-01-01', /--from.*from 1971-01-01 to 2149-06-04/s],
    ['verify --from 2026-02-02 --to 2026-02-01', /--to/],
    ['rebuild --from 2026-02-02 --to 2026-02-01', /--to/],
    ['token create acme --expires tomorrow', /--expires/],
    ['explain acme campaign_id --from 2026-03-01 --to 2026-03-01', /the ids of one row as NAME=ID/],
    ['token create acme --expires 2020-01-01', /--expires must be in the future/],
  ])('adtally %s is refused with exit code 2 and says what is wrong', async (line, reason) => {
    const { code, stdout, stderr } = await adtallyAgain(line);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(reason);
  });

  test.each([
    ['PORT', 'abc'],
    ['CLICKHOUSE_URL', 'ftp://x'],
  ])('%s=%s is refused with exit code 2 and one line that names it', async (name, value) => {
    const { code, stdout, stderr } = await adtally('serve', { env: { [name]: value } });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    // An address may hold a password: only its name is told.
    const told = name.endsWith('_URL') ? `${name}: ` : `${name}=${value}: `;
    expect(stderr.trim().split('\n')).toEqual([expect.stringContaining(told)]);
  });

  test('--help is no error, and a store that does not answer is exit code 1', async () => {
    const help = await adtally('--help');
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('ingest') });
    const down = await adtally('token list', { env: { CLICKHOUSE_URL: 'http://127.0.0.1:9' } });
    const stderr = expect.stringMatching(
      /^error: ClickHouse at http:\/\/127\.0\.0\.1:9 does not answer, .*ECONNREFUSED.*: run the same command again/,
    );
    expect(down).toMatchObject({ code: 1, stdout: '', stderr });
  });

  test('a store that breaks off is named, whatever the command', async () => {
    const gone = createServer((request) => request.socket.destroy()).listen(0, '127.0.0.1');
    onTestFinished(() => void gone.close());
    await once(gone, 'listening');
    const address = gone.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    const { code, stderr } = await adtally('token list', { env: { CLICKHOUSE_URL: url } });
    expect(code).toBe(1);
    expect(stderr).toBe(
      `error: ClickHouse at ${url} does not answer, or broke off (socket hang up): run the same command again once it answers\n`,
    );
  });
});

test.each(['token list', 'migrate', 'serve'])(
  '%s names a store that speaks no TLS with what to write, in one line',
  async (command) => {
    const plain = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void plain.close());
    await once(plain, 'listening');
    const address = plain.address();
    const url = `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    const { code, stderr } = await adtally(command, { env: { CLICKHOUSE_URL: url, PORT: '0' } });
    expect(code).toBe(1);
    expect(stderr.trim().split('\n').at(-1)).toMatch(
      `error: ClickHouse at ${url} does not speak TLS (EPROTO): write http:// if it has none`,
    );
    expect(stderr).not.toContain('openssl');
  },
);

test.each([
  [
    405,
    '<html>\r\n<head><title>405 Not Allowed</title></head>\r\n<body>nginx</body>\r\n</html>',
    '405 Not Allowed',
  ],
  [
    403,
    '<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>',
    'Access Denied',
  ],
  // The port of adtally itself.
  [405, '{"title":"No","status":405,"detail":"takes \\"GET\\" alone"}', 'takes "GET" alone'],
  [404, '{"title":"Not Found","detail":[{}]}', 'Not Found'],
  [404, '{"error":"no route"}\n', '{"error":"no route"}'],
  [404, '<script>{"message":"hi"}</script><title>Gone</title>', 'Gone'],
  [502, '<title>\n  502 Bad\n  \x1b[31mGateway\n</title>', '502 Bad [31mGateway'],
  [503, '<title> </title>', 'a page'],
  [200, '<!doctype html>\n<title>Welcome</title>', 'a page'],
])(
  'a web server in the place of ClickHouse is named, and its page is not printed: %s',
  async (status, page, told) => {
    const other = createServer((_, answer) => answer.writeHead(status).end(page)).listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    for (const command of told === '405 Not Allowed' ? ['token list', 'serve'] : ['token list']) {
      const { code, stderr } = await adtally(command, { env: { CLICKHOUSE_URL: url, PORT: '0' } });
      expect([code, stderr]).toEqual([
        1,
        `error: what answers at ${url} is no ClickHouse, or stands in front of it: ${told}\n`,
      ]);
    }
  },
);

describe('tokens', () => {
  test('create prints the token alone, list shows it without it, revoke ends it', async () => {
    const { PATH = '' } = process.env;
    const line = ['run', '-s', 'adtally', '--', 'token', 'create', account, '--label', 'nightly job'];
    const env = { PATH, ...environmentOf(db.address) };
    const created = await startProcess('npm', line, env).ended;
    expect(created.code, created.stderr).toBe(0);
    const token = created.stdout.trim();
    expect(created.stdout).toBe(`${token}\n`);
    expect(purposeOf(token)).toBe('report');

    await adtallyAgain(`token create ${account} --expires 2031-01-31`);
    const listed = await adtallyAgain(`token list ${account} --json`);
    const tokens = JSON.parse(listed.stdout);
    expect(tokens).toMatchObject([
      { account, label: 'nightly job', expires: null, revoked: null },
      { account, label: '', expires: '2031-01-31T00:00:00Z', revoked: null },
    ]);
    expect(listed.stdout).not.toContain(token.slice(4, 20));
    expect(JSON.parse((await adtallyAgain('token list --json')).stdout)).toEqual(
      expect.arrayContaining(tokens),
    );

    expect(await adtallyAgain(`token revoke ${tokens[0].id}`)).toMatchObject({ code: 0, stdout: '' });
    const [first, second] = JSON.parse((await adtallyAgain(`token list ${account} --json`)).stdout);
    expect([first.revoked, second.revoked]).toEqual([expect.stringMatching(/^20\d\d-.*Z$/), null]);
    expect(await adtallyAgain('token revoke --person anna')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('anna is signed out everywhere'),
    });
    expect(await listSignOuts(db.store)).toMatchObject([{ person: 'anna' }]);
    expect((await adtallyAgain('token revoke --person anna --account acme')).code).toBe(2);
    expect(await adtallyAgain('token revoke nonsense')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('nonsense'),
    });
  });
});

test('confirm says how many days it confirmed, and reports no longer show them as unconfirmed', async () => {
  await load(db.store, [event({ advertiser_id: account, spend: '1.5' })]);
  const unconfirmed = `SELECT toUInt32(count()) AS days FROM campaigns_date AS r
    WHERE account_id = {account:String} AND toUInt64(unconfirmed_at) > 0 AND unconfirmed_at >
      (SELECT max(confirmed_at) FROM confirmations WHERE account_id = {account:String} AND day = r.day)`;
  const before = 'SELECT toUInt32(count()) AS days FROM confirmations WHERE account_id = {account:String}';
  expect(await select(db.store, before, { account })).toEqual([{ days: 0 }]);
  const done = await adtallyAgain(`confirm ${account} --from 2026-02-27 --to 2026-03-01`);
  expect(done).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('3 days confirmed') });
  expect(await select(db.store, before, { account })).toEqual([{ days: 3 }]);
  expect(await select(db.store, unconfirmed, { account })).toEqual([{ days: 0 }]);
  const again = await adtallyAgain(`confirm ${account} --from 2026-02-27 --to 2026-03-01`);
  expect(again.stderr).not.toContain('there are no events');
});

test('confirm says that it knows no events of an account, which may be misspelled', async () => {
  const { code, stderr } = await adtallyAgain('confirm nobdy --from 2026-02-27 --to 2026-03-01');
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringContaining('there are no events of an account nobdy: is that its id?'),
  });
});

test('migrate can be repeated; check passes then, and names what somebody changed by hand', async () => {
  expect(await adtallyAgain('migrate')).toMatchObject({ code: 0, stdout: '' });
  expect(await adtallyAgain('check')).toMatchObject({ code: 0, stdout: '' });
  await db.store.command({ query: 'ALTER TABLE campaigns_date ADD COLUMN extra String' });
  try {
    const { code, stdout } = await adtallyAgain('check');
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringMatching(/^campaigns_date: .*extra/m) });
  } finally {
    await db.store.command({ query: 'ALTER TABLE campaigns_date DROP COLUMN extra' });
  }
});

test('migrate makes a new store, and the time zone it was made with stays', async () => {
  const env = { CLICKHOUSE_DATABASE: `${db.address.database}_new` };
  try {
    const made = await adtally('migrate', { env: { ...env, REPORT_TIMEZONE: 'Europe/Vienna' } });
    expect(made).toMatchObject({ code: 0, stdout: '', stderr: 'the tables were created\n' });
    expect((await adtally('check', { env })).code).toBe(0);
    for (const command of ['migrate', 'serve', 'receive', 'loads', 'status']) {
      const wrong = { ...env, REPORT_TIMEZONE: 'Asia/Tokyo', PORT: '0', RECEIVE_PORT: '0' };
      const other = await adtally(command, { env: wrong });
      const stderr = expect.stringContaining(
        'REPORT_TIMEZONE=Asia/Tokyo: the store was created with Europe/Vienna',
      );
      expect(other, command).toMatchObject({ code: 1, stderr });
    }
  } finally {
    await db.store.command({ query: `DROP DATABASE IF EXISTS ${env.CLICKHOUSE_DATABASE} SYNC` });
  }
});
