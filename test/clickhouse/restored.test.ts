import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { appliedMigrations } from '../../clickhouse/migrate/migrate.ts';
import { dropDerived, keepSince, markRestored, takePlace } from '../../clickhouse/migrate/restored.ts';
import { besideOf } from '../../clickhouse/restoring.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { listSignOuts } from '../../src/accounts/sign-outs.ts';
import { listAnswers, listSchedules } from '../../src/schedules/schedules.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { event, load, ndjson, withFile } from '../support/events.ts';
import { heldAt } from '../support/held.ts';
import { environmentOf } from '../support/process.ts';
import { useStatementsBetween } from '../support/statements-between.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const run = useCommandRunners();
let killedAt = '';
const way = useStatementsBetween(
  () => db.address.url,
  ({ query }) => (query.startsWith(killedAt) ? { status: 500, text: 'killed' } : undefined),
);
const takePlaceUntil = async (statement: string) => {
  killedAt = statement;
  await expect(takePlace({ ...db.address, url: way.url })).rejects.toThrow('killed');
};
let server: Store;
beforeAll(() => {
  server = connect({ ...db.address, database: 'default' });
});
afterAll(() => server.close());

const spent = async (from: string) =>
  (await select<{ spent: string }>(server, `SELECT toString(sum(c.spent)) AS spent FROM ${from} AS c`))[0]
    ?.spent;

/** What the complete database beside has spent; the store has spent 10 more. */
let restored: string | undefined;
/** Its name in the folder of the server. */
let backup = '';
beforeEach(async () => {
  const { database } = db.address;
  await load(db.store, [event({ spend: '1' })]);
  restored = await spent(`${database}.campaigns_date`);
  backup = `${database}-${Date.now()}.tar.zst`;
  // As the command does.
  await server.command({
    query: `INSERT INTO ${database}.audit (id, at, who, operation, input, state) VALUES ('${Date.now()}', now64(3), 'a@b', 'backup', '{}', 'begun')`,
  });
  const archive = `File('${backup}')`;
  await server.command({ query: `BACKUP DATABASE ${database} TO ${archive}` });
  await load(db.store, [event({ spend: '10', event_time: '2026-02-01T00:00:00Z' })]);
  await server.command({ query: `RESTORE DATABASE ${database} AS ${besideOf(database)} FROM ${archive}` });
  await dropDerived(server, besideOf(database));
  await markRestored(server, database, 'a backup');
});

test('a restored database takes the place of one whose tables a dictionary in another database reads', async () => {
  const { database, user, password } = db.address;
  const own = `${database}_own`;
  await server.command({ query: `CREATE DATABASE ${own}` });
  await server.command({
    query: `CREATE DICTIONARY ${own}.spent (campaign_id String, spent Decimal(38, 6)) PRIMARY KEY campaign_id
            SOURCE(CLICKHOUSE(TABLE 'campaigns_date' DB '${database}' USER '${user}' PASSWORD '${password}')) LAYOUT(COMPLEX_KEY_HASHED()) LIFETIME(0)`,
  });
  await takePlace(db.address);
  expect(await spent(`${database}.campaigns_date`)).toBe(restored);
  expect(await spent(`${own}.spent`)).toBe(restored);
  await server.command({ query: `DROP DATABASE ${own} SYNC` });
});

test('a database is given up before the first of its tables is dropped: killed then, no half of it passes for a store', async () => {
  await takePlaceUntil('DROP DATABASE');
  await expect(appliedMigrations(db.store)).rejects.toThrow(
    'a restore of a backup was interrupted; end it with: adtally restore a backup --replace',
  );
  await takePlace(db.address);
  expect(await spent(`${db.address.database}.campaigns_date`)).toBe(restored);
});

test('a load that begins before the restored database has its views is refused, and not stored in a part of them', async () => {
  await takePlaceUntil('CREATE MATERIALIZED VIEW');
  await expect(load(db.store, [event({ spend: '100' })])).rejects.toThrow('loads');
  await takePlace(db.address);
  expect(await spent(`${db.address.database}.campaigns_date`)).toBe(restored);
  await load(db.store, [event({ spend: '100', event_time: '2026-03-01T00:00:00Z' })]);
  expect(await spent(`${db.address.database}.campaigns_date`)).toBe(String(Number(restored) + 100));
});

test('restore --replace waits for a load that runs', async () => {
  const held = heldAt(db.store, /INSERT INTO incoming/);
  const loading = withFile('held.ndjson', ndjson([event({ spend: '100' })]), (path) =>
    loadEvents({
      store: held.store,
      input: new LocalFile(path),
      chunkBytes: 1 << 20,
      now: () => new Date(),
    }),
  );
  await held.reached;
  const restoring = run(['restore', backup, '--replace'], environmentOf(db.address));
  const waiting = `SELECT 1 AS waits FROM ${db.address.database}.loads FINAL WHERE kind = 'rebuild' AND state = 'running'`;
  try {
    await expect.poll(() => select(server, waiting), { timeout: 60_000 }).toEqual([{ waits: 1 }]);
  } finally {
    held.release();
    await loading;
  }
  const { code, stderr } = await restoring;
  expect(code, stderr).toBe(0);
  expect(stderr).toContain('waiting for load ');
  expect(await spent(`${db.address.database}.campaigns_date`)).toBe(restored);
  expect(await select(server, waiting)).toEqual([]);
  const audit = `${db.address.database}.audit AS a FINAL ORDER BY a.id DESC LIMIT 2`;
  expect(await select(server, `SELECT operation, toString(a.state) AS state FROM ${audit}`)).toEqual([
    { operation: 'restore', state: 'done' },
    { operation: 'backup', state: 'done' },
  ]);
});

test('a restore that is complete is told as done, whatever else can no longer be written', async () => {
  const { database } = db.address;
  await server.command({ query: `DROP DATABASE ${besideOf(database)} SYNC` });
  await server.command({ query: `RENAME TABLE ${database}.audit TO ${database}.no_audit` });
  backup = `without-audit-${backup}`;
  await server.command({ query: `BACKUP DATABASE ${database} TO File('${backup}')` });
  const { code, stderr } = await run(['restore', backup, '--replace'], environmentOf(db.address));
  expect(code, stderr).toBe(0);
  expect(stderr).toMatch(/^restored from /m);
  expect(stderr).toMatch(/^what else was done since is undone: take back, .*have senders send again/m);
  expect(stderr).toMatch(/^the restore is done, but .*audit/m);
  await server.command({ query: `RENAME TABLE ${database}.no_audit TO ${database}.audit` });
});

test('who signed out, who got a mail, who unsubscribed and which schedule was removed since the backup is kept, and what cannot be read is told', async () => {
  const { database } = db.address;
  const beside = besideOf(database);
  const insert = (into: string, rows: string) =>
    server.command({ query: `INSERT INTO ${into} FORMAT JSONEachRow ${rows}` });
  const schedule = (id: string, state: string) =>
    JSON.stringify({ id, account_id: 'shop', body: '{}', state });
  const mail = (day: string) =>
    JSON.stringify({ schedule: 'daily', day, recipient: 'anna', attempt: 1, state: 'sent' });
  const answer = (at: string) => JSON.stringify({ schedule: 'account shop', recipient: 'anna', at });
  await insert(`${beside}.schedules`, schedule('daily', 'active') + schedule('weekly', 'active'));
  await insert(`${beside}.agreed`, answer('2026-03-01 00:00:00'));
  await insert(`${beside}.mails`, mail('2026-03-01'));
  await insert(
    `${database}.schedules`,
    schedule('daily', 'paused') + schedule('weekly', 'removed') + schedule('since', 'active'),
  );
  await insert(`${database}.agreed`, answer('2026-03-01 00:00:00'));
  await insert(`${database}.unsubscribed`, answer('2026-03-02 00:00:00'));
  const signOut = (person: string, version: string) => JSON.stringify({ person, version });
  await insert(
    `${beside}.sign_outs`,
    signOut('anna', '2026-03-01 00:00:00') + signOut('ben', '2026-03-03 00:00:00'),
  );
  await insert(
    `${database}.sign_outs`,
    signOut('anna', '2026-03-02 00:00:00') + signOut('ben', '2026-03-01 00:00:00'),
  );
  await insert(`${database}.mails`, mail('2026-03-01') + mail('2026-03-02'));

  expect(await keepSince(server, database)).toBe(true);
  expect(await keepSince(server, 'none')).toBe(false);
  await takePlace(db.address);
  expect((await listSchedules(db.store)).map(({ id, state }) => [id, state])).toEqual([['daily', 'paused']]);
  expect((await listAnswers(db.store, ['account shop'])).get('account shop')?.get('anna')).toEqual({
    since: undefined,
    hasAgreed: true,
  });
  const signedOut = (await listSignOuts(db.store)).map(({ person, version }) => [person, version]);
  expect(signedOut.sort()).toEqual([
    ['anna', '2026-03-02 00:00:00.000000'],
    ['ben', '2026-03-03 00:00:00.000000'],
  ]);
  expect(await select(db.store, 'SELECT toString(day) AS day FROM mails FINAL ORDER BY day')).toEqual([
    { day: '2026-03-01' },
    { day: '2026-03-02' },
  ]);
});
