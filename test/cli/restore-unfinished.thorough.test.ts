import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { appliedMigrations } from '../../clickhouse/migrate/migrate.ts';
import { dropDerived, markRestored, takePlace } from '../../clickhouse/migrate/restored.ts';
import { besideOf } from '../../clickhouse/restoring.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { event, load } from '../support/events.ts';
import { environmentOf } from '../support/process.ts';
import { useService } from '../support/service.ts';
import { useStatementsBetween } from '../support/statements-between.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);
const run = useCommandRunners();

/** How many statements pass before the command is killed, and how many have. */
let passing = Number.POSITIVE_INFINITY;
let passed = 0;
const way = useStatementsBetween(
  () => db.address.url,
  () => {
    passed++;
    // In turn it is killed before a statement is sent, and before its answer comes.
    if (passed > passing) return { status: 500, text: 'killed' };
    return passed === passing && passing % 2 === 0 ? 0 : undefined;
  },
);

const spent = async () =>
  (
    await select<{ spent: string }>(
      db.store,
      'SELECT toString(sum(c.spent)) AS spent FROM campaigns_date AS c',
    )
  )[0]?.spent;

test('a restore that is killed after each of its last steps in turn leaves the old data or the new, and says how to end it', async () => {
  const { database } = db.address;
  await load(db.store, [event({ spend: '1' })]);
  const server = connect({ ...db.address, database: 'default' });
  const archive = `File('${database}.tar.zst')`;
  await server.command({ query: `BACKUP DATABASE ${database} TO ${archive}` });
  await load(db.store, [event({ spend: '10', event_time: '2026-02-01T00:00:00Z' })]);
  await server.command({ query: `RESTORE DATABASE ${database} AS ${besideOf(database)} FROM ${archive}` });
  await dropDerived(server, besideOf(database));
  const began = `INSERT INTO ${besideOf(database)}.rewrites (month, began_at) VALUES (0, now64(6))`;
  await server.command({ query: began });
  await markRestored(server, database, "the 'backup'");

  const found = new Set<string>();
  let told = false;
  for (passing = 1; ; passing++) {
    passed = 0;
    // Whether it was killed is told by the store alone.
    await takePlace({ ...db.address, url: way.url }).catch(() => undefined);
    const state = await appliedMigrations(db.store).then(spent, (error: Error) => error.message);
    found.add(String(state));
    if (state === '1') break;
    if (told || state === '11') continue;
    told = true;
    const { code, stderr } = await run(['loads'], environmentOf(db.address));
    expect({ code, stderr }).toEqual({ code: 1, stderr: `error: ${state}\n` });
    expect((await run(['status'], environmentOf(db.address))).stdout).toContain(`next      ${state}`);
    await expect
      .poll(async () => (await fetch(`${service.url}/readyz`)).status, { timeout: 20_000 })
      .toBe(503);
    expect(await (await fetch(`${service.url}/readyz`)).json()).toMatchObject({
      detail: 'a restore has not ended: adtally status tells how to end it',
    });
  }
  expect([...found]).toEqual([
    '11',
    "a restore of the 'backup' was interrupted; end it with: adtally restore the 'backup' --replace",
    '1',
  ]);
  expect(await spent()).toBe('1');
  // Whoever was killed when all else was done ends nothing more.
  expect(await select(db.store, 'SELECT 1 FROM rewrites AS r FINAL WHERE r.ended_at = 0')).toEqual([]);
  expect(await checkSchema(db.store, catalog)).toEqual([]);
  // Each view is there once, and none of the old ones feeds anything.
  await load(db.store, [event({ spend: '100', event_time: '2026-03-01T00:00:00Z' })]);
  expect(await spent()).toBe('101');
  expect((await verifyRollups(db.store, catalog)).differences).toEqual([]);
  const left = await select(server, 'SELECT 1 FROM system.databases WHERE name = {beside:String}', {
    beside: besideOf(database),
  });
  expect(left).toEqual([]);
  await server.close();
  await expect.poll(async () => (await fetch(`${service.url}/readyz`)).status, { timeout: 20_000 }).toBe(200);
});
