import { mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { endpoints, rollupTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import {
  DamagedFigures,
  damagedParts,
  historyTables,
  tablesOf,
} from '../../clickhouse/consistency/damaged-parts.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { exchangeMonths, newStaging } from '../../clickhouse/consistency/replace-months.ts';
import { everyDay } from '../../clickhouse/consistency/verify-rollups.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { runVerify } from '../../src/cli/store/verify.ts';
import { planOf, type ReportDeps } from '../../src/http/report/handler.ts';
import { Damage } from '../../src/report/damage.ts';
import { Answers } from '../../src/report/kept/answers.ts';
import { StoreVersion } from '../../src/report/kept/store-version.ts';
import { planReport } from '../../src/report/plan.ts';
import { event, load } from '../support/events.ts';
import { useStore } from '../support/store.ts';

const db = useStore();

/** Where ClickHouse puts a part of the table that it finds damaged. */
async function asideOf(table: string): Promise<string> {
  const [{ path } = { path: '' }] = await select<{ path: string }>(
    db.store,
    `SELECT data_paths[1] AS path FROM system.tables WHERE database = currentDatabase() AND name = '${table}'`,
  );
  return join(path, 'detached', 'broken-on-start_202609_1_1_0');
}

test('a report is refused before it begins, because a rebuild on the way would take what tells of the damage', async () => {
  const { database } = db.address;
  const reader = new Reader(db.address, 10_000);
  const found: string[] = [];
  const damage = new Damage({ reader, database, onFound: ({ table }) => found.push(table) });
  const onError = (error: unknown) => {
    throw error;
  };
  const version = new StoreVersion({ reader, catalog, database, damage, trustMs: 5_000, onError });
  const [endpoint] = endpoints(catalog);
  if (!endpoint) throw new Error('there is no endpoint');
  const range = (month: string) => ({ start: `${month}-01`, end: `${month}-28` });
  const ofMonth = (month: string) => planReport(catalog, endpoint.breakdown, 'a', range(month));
  const table = rollupTable(endpoint.breakdown.family, []);
  await version.of(ofMonth('2026-09'));
  const aside = await asideOf(table);
  mkdirSync(aside);
  await damage.follow(performance.now(), { mayHaveRestarted: true, shards: new Set([0]) });
  rmdirSync(aside);
  const kept = new Answers({ reader, version, damage, timeoutSeconds: 10, maxBytes: 1_000_000 });
  await expect(kept.find(ofMonth('2026-09'), 'json')).rejects.toThrow(DamagedFigures);
  expect(await kept.find(ofMonth('2026-08'), 'json')).toHaveProperty('ask');
  mkdirSync(aside);
  await damage.follow(performance.now(), { mayHaveRestarted: true, shards: new Set([0]) });
  const bypassed = new Answers({ reader, version, damage, timeoutSeconds: 10, maxBytes: 0 });
  await expect(bypassed.find(ofMonth('2026-09'), 'json')).rejects.toThrow(DamagedFigures);
  rmdirSync(aside);
  expect(found).toEqual([table]);
  reader.close();
});

/** Of a store that answers when it is told to, at a time that it is told. */
function slowDamage() {
  let now = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => void vi.restoreAllMocks());
  const asked: ((parts: readonly object[]) => void)[] = [];
  const rows = async <Row>() =>
    (await new Promise<readonly object[]>((answer) => void asked.push(answer))) as Row[];
  return {
    damage: new Damage({ reader: { rows }, database: 'd', onFound: () => {} }),
    asked,
    passMs: (ms: number) => {
      now += ms;
    },
  };
}
const whole = { table: '', partition: '', part: '', shard: 0 };
const lost = { table: 'campaigns_date', partition: '202609', part: 'broken-on-start_1', shard: 0 };

test('a store that answers slowly is asked for damaged parts once', async () => {
  const { damage, asked, passMs } = slowDamage();
  const parts = damage.parts();
  passMs(300);
  asked[0]?.([whole]);
  await Promise.race([parts, setImmediate()]);
  expect(asked).toHaveLength(1);
  expect(await parts).toEqual([]);
});

test('damage that was found is not forgotten by the answer to an older question', async () => {
  const { damage, asked, passMs } = slowDamage();
  const before = damage.parts();
  passMs(300);
  const after = damage.parts();
  asked[1]?.([whole, lost]);
  expect(await after).toEqual([lost]);
  asked[0]?.([whole]);
  expect(await before).toEqual([lost]);
});

test('what was found damaged before it takes the place of a table does not take it', async () => {
  const staging = newStaging()('events');
  await db.store.command({ query: `CREATE TABLE ${staging} AS events` });
  const aside = await asideOf(staging);
  mkdirSync(aside);
  await expect(exchangeMonths({ store: db.store }, 'events', [], staging)).rejects.toThrow('is damaged');
  rmdirSync(aside);
  await exchangeMonths({ store: db.store }, 'events', [], staging);
});

test('a rebuild does not lose what was found damaged while it ran', async () => {
  await load(db.store, [event({ event_time: '2026-08-01T00:00:00Z' })]);
  const aside = await asideOf('campaigns_date');
  const days = { from: '2026-08-01', to: '2026-08-31' };
  const rebuilt = rebuildRollups(db.store, catalog, days, { beforeExchange: () => mkdirSync(aside) });
  await expect(rebuilt).rejects.toThrow(
    /of campaigns_date of 2026-09 damaged .*: run the same command again$/,
  );
  expect(await damagedParts(db.store)).toHaveLength(1);
  // By the second time it is known, and mended.
  await rebuildRollups(db.store, catalog, days);
  expect(await damagedParts(db.store)).toEqual([]);
});

test('what was found damaged while verify ran stays for a verify that no load runs beside', async () => {
  const aside = await asideOf('campaigns_date');
  let asked = 0;
  const store = Object.assign(Object.create(db.store), {
    query: async (...args: Parameters<typeof db.store.query>) => {
      const answer = await db.store.query(...args);
      if (asked++ === 0) mkdirSync(aside);
      return answer;
    },
  });
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => void vi.restoreAllMocks());
  await runVerify(store, everyDay, {});
  expect(await damagedParts(db.store)).toHaveLength(1);
  await runVerify(db.store, everyDay, {});
  expect(await damagedParts(db.store)).toEqual([]);
});

test('only where no close tells what a report asks for, what is damaged may be why', async () => {
  const [endpoint] = endpoints(catalog);
  if (!endpoint) throw new Error('there is no endpoint');
  const asked = { options: { as_of: 'closed' }, reads: endpoint.breakdown.dimensions };
  const request = { range: { start: '0001-01-01', end: '0001-01-31' }, ...asked };
  const ask = (rows: Promise<object[]>, told: Promise<void>) => {
    const damage = Object.assign(Object.create(Damage.prototype), { requireWhole: () => told });
    const deps: unknown = {
      ...{ catalog, reader: { rows: () => rows }, damage },
      ...{ routingOf: () => undefined, currencyOf: () => undefined },
    };
    return planOf(deps as ReportDeps, 'a', endpoint.breakdown, request, new AbortController().signal);
  };
  const refused = Promise.reject(new DamagedFigures([lost]));
  await expect(ask(Promise.resolve([]), refused)).rejects.toThrow(DamagedFigures);
  await expect(ask(Promise.reject(new Error('busy')), refused)).rejects.toThrow('busy');
  await expect(ask(Promise.resolve([]), Promise.resolve())).rejects.toThrow('0001-01 is not closed');
});

test('each table is one that figures are made of, or one that none is', () => {
  const schema = readFileSync(new URL('../../clickhouse/schema.sql', import.meta.url), 'utf8');
  const tables = [...schema.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name]) => name);
  const read = Object.keys(catalog.families).flatMap((family) => tablesOf(catalog, family));
  const others = [
    ...[
      'account_currencies',
      'account_limits',
      'agreed',
      'audit',
      'channels',
      'chunk_days',
      'followed_files',
      'incoming',
    ],
    ...['incoming_staging', 'mails', 'migrations', 'rejected_rows', 'schedules', 'settings', 'sign_outs'],
    ...['tokens', 'unsubscribed', 'withdrawn_chunks'],
  ];
  const known = new Set([...read, ...historyTables, ...others]);
  expect(tables.filter((name) => !known.has(name ?? ''))).toEqual([]);
});
