import { expect, test } from 'vitest';
import { connect } from '../../clickhouse/client.ts';
import { Links } from '../../src/accounts/links.ts';
import { listTokens } from '../../src/accounts/tokens.ts';
import { commandLine } from '../../src/operations/audit.ts';
import { removeSchedule } from '../../src/operations/schedules.ts';
import { unsentMails } from '../../src/schedules/mails.ts';
import { answeredOf, storeSchedule, unsubscribe } from '../../src/schedules/schedules.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { useMailServer } from '../support/mail-server.ts';
import { dailySchedule } from '../support/mails.ts';
import { environmentOf, useCommands } from '../support/process.ts';
import { useService } from '../support/service.ts';
import { useStatementsBetween } from '../support/statements-between.ts';
import { useStore } from '../support/store.ts';

const secret = { LINK_SECRET: 'a secret of more than 32 characters' };
const db = useStore();
const service = useService(db, secret);
const mailServer = useMailServer();
const runner = useCommandRunners();
const commands = useCommands();

/** How many statements pass before the connection breaks off, and how many have. */
let passing = 0;
let passed = 0;
const way = useStatementsBetween(
  () => db.address.url,
  () => (passed++ < passing ? undefined : 0),
);
const context = { by: commandLine(), links: new Links(() => undefined), answerTrustMs: 0 };

const env = () => ({
  ...environmentOf(db.address),
  ...secret,
  ANSWER_TRUST_MS: '0',
  SMTP_URL: mailServer.url,
  MAIL_FROM: 'reports@example.com',
  PUBLIC_URL: service.url,
  SERVICE_URL: service.url,
});
const run = (...args: string[]) => runner(args, env());

const list = async () => JSON.parse((await run('schedule', 'list', '--json')).stdout);

test.each([
  [['campaigns/country', 'anna@example.com', '--every', 'day'], /report must be one of campaigns, /],
  [['campaigns', 'anna', '--every', 'day'], /^error: to "anna" must be a mail address$/m],
  [['campaigns', 'anna@example.com'], /--every is required/],
  [['campaigns', 'anna@example.com', '--every', 'day', '--at', '24:00'], /--at must be a time of day/],
  [['campaigns', 'anna@example.com', '--every', 'day', '--body', '[1]'], /--body must be a JSON object/],
  [
    ['campaigns', 'anna@example.com', '--every', 'day', '--body', '{"filters":{"site":["a"]}}'],
    /--body is no body of this report: filters\.site/,
  ],
  [
    ['campaigns', 'anna@example.com', '--every', 'day', '--body', '{"limit":1e400}'],
    /--body must not have a number as large as 1e400/,
  ],
  [
    ['campaigns', 'anna@example.com', '--every', 'day', '--body', '{"filters":{"device":[1e400]}}'],
    /--body must not have a number as large as 1e400/,
  ],
  [
    ['campaigns', 'anna@example.com', '--every', 'day', '--body', '{"start_time":"2026-01-01"}'],
    /--body must not have start_time/,
  ],
  [
    ['campaigns', 'anna@example.com', '--every', 'day', '--body', '{"as_of":"closed"}'],
    /--body must not have as_of: a mail has the figures of the day on which it is sent/,
  ],
])('schedule create acme %j is refused, and nothing is stored', async (args, reason) => {
  const { code, stderr } = await run('schedule', 'create', 'acme', ...args);
  expect([code, stderr]).toEqual([2, expect.stringMatching(reason)]);
  expect(await list()).toEqual([]);
});

test('a schedule that is created again is there once', async () => {
  const create = async (...more: string[]) => {
    const args = ['campaigns', 'anna@example.com', '--every', 'day', ...more];
    const { code, stdout } = await run('schedule', 'create', 'again', ...args);
    expect(code).toBe(0);
    return stdout.trim();
  };
  const first = await create();
  expect(await create()).toBe(first);
  const other = await create('--at', '07:00');
  await run('schedule', 'remove', first);
  const anew = await create();
  expect(new Set([first, other, anew]).size).toBe(3);
  for (const id of [other, anew]) await run('schedule', 'remove', id);
});

test('a sender that is killed after it has taken a mail leaves it unknown; nobody sends it again but by hand', async () => {
  const created = await run(
    'schedule',
    'create',
    'acme',
    'ad_units/site_date',
    'anna@example.com',
    '--every',
    'day',
    '--at',
    '00:00',
    '--wait',
    '0h',
    '--attach',
    'csv',
    '--body',
    '{"metrics":["impressions"]}',
  );
  expect(created).toMatchObject({ code: 0, stderr: '' });
  const id = created.stdout.trim();
  // It was made after midnight, so that nothing is due before the next one.
  expect(await run('mail', '--once')).toMatchObject({ code: 0, stderr: '' });
  await db.store.command({
    query: `INSERT INTO schedules SELECT * EXCEPT (since, version), toStartOfDay(now('UTC')) AS since, now64(6) AS version FROM schedules`,
  });
  mailServer.answer('hangs');
  const sender = commands.start(['mail', '--once'], env());
  await expect.poll(() => mailServer.mails.length, { timeout: 30_000 }).toBe(1);
  await sender.kill('SIGKILL');

  expect(await run('mail', '--once')).toMatchObject({ code: 0, stderr: '' });
  expect(mailServer.mails).toHaveLength(1);
  const body = { metrics: ['impressions'] };
  const mail = { recipient: 'anna@example.com', state: 'taken', error: '' };
  expect(await list()).toMatchObject([
    { id, account: 'acme', report: 'ad_units/site_date', body, state: 'active', mails: [mail] },
  ]);
  expect((await run('schedule', 'list')).stdout).toContain('a sender took it, and it may be under way');
  expect(await unsentMails(db.store, new Date(), 'UTC')).toEqual({ oldest: Number.NaN, stuck: 0 });
  expect(await run('mail', '--again', id)).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/ to anna@example\.com: not sent again, a sender took it at \d{4}-\S+Z\n$/),
  });
  expect(mailServer.mails).toHaveLength(1);
  await db.store.command({
    query: 'ALTER TABLE mails UPDATE at = at - INTERVAL 90 MINUTE WHERE 1',
    clickhouse_settings: { mutations_sync: '2' },
  });
  expect(await unsentMails(db.store, new Date(), 'UTC')).toEqual({ oldest: Number.NaN, stuck: 1 });
  expect((await list())[0].mails).toMatchObject([{ state: 'unknown' }]);

  expect((await run('mail', '--again', id)).stderr).toContain(': sent');
  expect(mailServer.mails).toHaveLength(2);
  expect(mailServer.mails[1]?.attachments[0]?.filename).toMatch(/^ad_units_site_date_.*\.csv$/);
  expect((await list())[0].mails).toMatchObject([{ state: 'sent' }]);
  expect((await unsentMails(db.store, new Date(), 'UTC')).stuck).toBe(0);
});

test('the list says who made a schedule, and who wants no more of it', async () => {
  const own = { ...dailySchedule('shop'), madeBy: 'person jo' };
  await storeSchedule(db.store, own);
  await unsubscribe(db.store, answeredOf(own), 'anna@example.com');
  expect((await run('schedule', 'list', 'shop')).stdout.split('\n')).toEqual([
    expect.stringMatching(/^daily\tshop\t.*\tactive\tperson jo$/),
    '-\t-\tanna@example.com\twants no more',
    '',
  ]);
  await storeSchedule(db.store, { ...own, state: 'removed' });
});

test('a sender names ClickHouse where that is away', async () => {
  passing = Number.POSITIVE_INFINITY;
  const sender = commands.start(['mail', '--every', '1s'], { ...env(), CLICKHOUSE_URL: way.url });
  await sender.said(/looking for mails/);
  passing = 0;
  await sender.said(/^ClickHouse does not tell what is due: .+; trying again$/m);
  await sender.kill('SIGTERM');
});

test('a schedule is paused, resumed and removed; its token ends with it', async () => {
  const [{ id, token }] = await list();
  for (const [command, state] of [
    ['pause', 'paused'],
    ['resume', 'active'],
  ]) {
    expect((await run('schedule', command ?? '', id)).stderr).toBe(`schedule ${id} is ${state}\n`);
    expect((await list())[0].state).toBe(state);
    if (state === 'paused')
      expect(await run('mail', '--again', id)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(`--again ${id} is paused: nothing of it is sent`),
      });
  }
  const isRevoked = async () => {
    const { stdout } = await run('token', 'list', 'acme', '--json');
    return JSON.parse(stdout).find((each: { id: string }) => each.id === token).revoked !== null;
  };
  expect(await isRevoked()).toBe(false);
  await run('schedule', 'remove', id);
  expect([await list(), await isRevoked()]).toEqual([[], true]);
  expect(await run('schedule', 'pause', id)).toMatchObject({ code: 2 });
  expect(await run('mail', '--again', id)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`--again ${id} is not in the list of schedules`),
  });
});

test('however a removal breaks off, the schedule is in the list, to be removed again, or its links are closed', async () => {
  const created = await run('schedule', 'create', 'cut', 'campaigns', 'anna@example.com', '--every', 'day');
  const id = created.stdout.trim();
  const isOpen = async () => {
    const tokens = await listTokens(db.store, { account: 'cut' });
    return tokens.some(({ revoked }) => revoked === null);
  };
  const store = connect({ ...db.address, url: way.url });
  const broken = [];
  for (passing = 0; (await list()).length > 0; passing++) {
    passed = 0;
    await removeSchedule
      .run({ ...context, store }, { schedule: id })
      .catch((error: unknown) => broken.push(error));
  }
  await store.close();
  expect(await isOpen()).toBe(false);
  expect(broken.length).toBeGreaterThan(2);
});

test.each(['SMTP_URL', 'MAIL_FROM', 'PUBLIC_URL', 'LINK_SECRET'])('mail without %s says so', async (name) => {
  const { code, stderr } = await runner(['mail', '--once'], { ...env(), [name]: '' });
  expect([code, stderr]).toEqual([2, expect.stringContaining(`${name}: is needed`)]);
});
