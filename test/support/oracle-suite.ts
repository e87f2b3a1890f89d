import type { LosslessNumber } from 'lossless-json';
import { beforeAll, describe, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { timestampIn } from '../../src/report/time/timestamp.ts';
import { event, load, loadRows } from './events.ts';
import { answer, lines, micros, Oracle, paths, type Range, type Row } from './oracle.ts';
import { randomEvents } from './random-events.ts';
import { type TestService, useService } from './service.ts';
import type { TestStore } from './store.ts';

const accounts = ['advertiser', 'publisher', 'both', 'both-2', 'nobody'];
const ranges: Range[] = [
  { start: '2026-02-28', end: '2026-02-28' },
  { start: '2026-02-01', end: '2026-02-28' },
  { start: '0001-01-01', end: '9999-12-31' },
  { start: '2025-01-01', end: '2025-12-31' },
];
const tables = rollups(catalog).map(({ table }) => table);
const total = (amounts: readonly bigint[]) => amounts.reduce((sum, amount) => sum + amount, 0n);
const everything: Range = { start: '2026-01-01', end: '2026-12-31' };
const names = [
  ['both', 'c1', 'Same name'],
  ['both', 'c2', 'Same name'],
  ['both', 'c1', 'Renamed "within" the file'],
  ['advertiser', 'c1', 'Another account’s c1'],
  ['both', '😀', 'Emoji'],
  ['nobody', 'c10', 'Never seen'],
] as const;

interface Asked {
  readonly account: string;
  readonly range: Range;
}

/** What is asked on a path of the contract, told by its place in the list. */
type Asking = (path: number) => readonly Asked[];

/** Each account about each range, on each path. */
const everyPair = (): Asked[] => accounts.flatMap((account) => ranges.map((range) => ({ account, range })));

/** One account about each range on each path; the others about one, another from path to path. */
export const somePairs = (path: number): Asked[] =>
  everyPair().filter(({ account, range }) => {
    const turn = accounts.indexOf(account) + ranges.indexOf(range) + path;
    return account === 'both' || turn % ranges.length === 0;
  });

/** A migrated store for the tests of one `describe`. */
export type UseStore = (reportTimezone?: string) => TestStore;

/** Recounts everything that the service answers about random events, a store for each seed. */
export function recountRandomEvents(
  useStore: UseStore,
  seeds: readonly number[],
  asked: Asking = everyPair,
): void {
  describe.each(seeds)('random events of seed %i', (seed) => {
    const test = useStore();
    const service = useService(test);
    const oracle = new Oracle();
    const events = randomEvents(seed, 2000);

    beforeAll(async () => {
      for (const shard of test.shards) {
        for (const table of tables) await shard.command({ query: `SYSTEM STOP MERGES ${table}` });
      }
      for (let from = 0; from < events.length; from += 1000) {
        const some = events.slice(from, from + 1000);
        await load(test.store, some, 100_000);
        oracle.load(some);
      }
      for (const list of ['campaigns', 'creatives', 'ad_units', 'sites'] as const) {
        await loadRows(test.store, list, names);
        await loadRows(test.store, list, [['both-2', 'c1', 'Loaded in a second file']]);
        oracle.name(list, [...names, ['both-2', 'c1', 'Loaded in a second file']]);
      }
    });

    it('no event is lost or changed on its way into the store', async () => {
      const [stored] = await select<Record<string, string>>(
        test.store,
        `SELECT ${['ad_requests', 'impressions', 'referrals', 'conversions'].map((name) => `toString(sum(e.${name})) AS ${name}`)},
           toString(count()) AS events, toString(sum(e.spend) * 1000000) AS spend, toString(sum(e.revenue) * 1000000) AS revenue
         FROM events AS e`,
      );
      const counted = (type: string) =>
        `${total(events.map((line) => (line.event_type === type ? BigInt(line.quantity ?? 1) : 0n)))}`;
      expect(stored).toEqual({
        events: `${events.length}`,
        ad_requests: counted('ad_request'),
        impressions: counted('impression'),
        referrals: counted('referral'),
        conversions: counted('conversion'),
        spend: `${total(events.map(({ spend }) => micros(spend)))}`,
        revenue: `${total(events.map(({ revenue }) => micros(revenue)))}`,
      });
    });

    it.each(paths)('%s tells every account each figure of each range to the last digit', (path) =>
      expectRecount(service, oracle, path, asked(paths.indexOf(path))),
    );

    it.each(['campaigns', 'ad_units'])('rows of every breakdown of /v1/%s add up to it', async (family) => {
      const base = sums((await answer(service, `/v1/${family}`, 'both', everything)).rows);
      expect(base.size).toBeGreaterThan(5);
      for (const path of paths.filter((candidate) => candidate.startsWith(`/v1/${family}/`))) {
        expect(sums((await answer(service, path, 'both', everything)).rows), path).toEqual(base);
      }
    });

    it('merging what loads have stored changes no report', async () => {
      const parts = `SELECT toUInt32(max(parts)) AS most FROM (SELECT count() AS parts FROM system.parts
      WHERE active AND database = currentDatabase() AND table LIKE '%_date' GROUP BY table, partition)`;
      const before = await Promise.all(test.shards.map((shard) => select<{ most: number }>(shard, parts)));
      expect(Math.max(...before.map(([row]) => row?.most ?? 0))).toBeGreaterThan(3);
      for (const [n, shard] of test.shards.entries()) {
        // The few accounts of the test need not lie on every shard.
        if (before[n]?.[0]?.most === 0) continue;
        for (const table of tables) {
          await shard.command({ query: `SYSTEM START MERGES ${table}` });
          await shard.command({ query: `OPTIMIZE TABLE ${table} FINAL SETTINGS optimize_throw_if_noop = 1` });
        }
        expect(await select(shard, parts)).toEqual([{ most: 1 }]);
      }
      for (const path of paths)
        await expectRecount(service, oracle, path, [{ account: 'both', range: everything }]);
    });
  });
}

/** Days in another time zone, and names of ids. */
export function recountInNewYork(useStore: UseStore, asked: Asking = everyPair): void {
  describe('a store that takes its days in America/New_York', () => {
    const test = useStore('America/New_York');
    const service = useService(test);
    const oracle = new Oracle('America/New_York');

    it('counts an event on the day of New York, also where the clock changes', async () => {
      const bounds = {
        '2026-03-08': ['2026-03-08T05:00:00.000Z', '2026-03-09T03:59:59.999Z'],
        '2026-11-01': ['2026-11-01T04:00:00.000Z', '2026-11-02T04:59:59.999Z'],
        '2026-12-31': ['2026-12-31T00:00:00.000-05:00', '2027-01-01 04:59:59.999'],
      };
      const campaigns = Object.entries(bounds).flatMap(([day, times]) =>
        times.map((event_time) =>
          event({ advertiser_id: 'new-yorker', publisher_id: 'new-yorker', campaign_id: day, event_time }),
        ),
      );
      await load(test.store, campaigns);
      const { rows } = await answer(service, '/v1/campaigns/breakdowns/date', 'new-yorker', everything);
      const shown = rows.map((row) => `${row.start_time} ${row.campaign} ${row.impressions}`);
      expect(shown).toEqual(Object.keys(bounds).map((day) => `${day} ${day} 2`));
    });

    it('recounts random events of seed 4 in that zone', async () => {
      const events = randomEvents(4, 1000);
      await load(test.store, events, 100_000);
      oracle.load(events);
      await Promise.all(paths.map((path, n) => expectRecount(service, oracle, path, asked(n))));
    });

    it('signs its reports with the abbreviation of the season', async () => {
      const report = await service.report('/v1/campaigns', 'both', '2026-01-01', '2026-01-01');
      expect(report.last_update_time).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d E[SD]T$/);
      const timestamp = timestampIn('America/New_York');
      expect(timestamp(new Date('2026-03-08T06:59:59Z'))).toBe('2026-03-08 01:59:59 EST');
      expect(timestamp(new Date('2026-03-08T07:00:00Z'))).toBe('2026-03-08 03:00:00 EDT');
    });

    it('shows ids until a name is loaded, then the last one loaded, by file and by line', async () => {
      const sides = { advertiser_id: 'named', publisher_id: 'named' };
      const shown = async () => {
        const { rows } = await answer(service, '/v1/campaigns/breakdowns/creative', 'named', everything);
        return rows.map((row) => `${row.campaign}|${row.creative_headline}|${row.creative_id}`);
      };
      await load(test.store, [event({ ...sides, creative_id: 'a' }), event({ ...sides, site_id: 's' })]);
      expect(await shown()).toEqual(['campaign||', 'campaign||a']);
      await loadRows(test.store, 'campaigns', [['named', 'campaign', 'First']]);
      await loadRows(test.store, 'creatives', [['named', 'a', 'Headline']]);
      expect(await shown()).toEqual(['First||', 'First|Headline|a']);
      const renamed = Array.from({ length: 2000 }, (_, n) => ['named', 'campaign', `Name ${n}`]);
      await loadRows(test.store, 'campaigns', renamed);
      expect(await shown()).toEqual(['Name 1999||', 'Name 1999|Headline|a']);
      await loadRows(test.store, 'campaigns', [['named', 'campaign', 'First']]);
      expect(await shown()).toEqual(['First||', 'First|Headline|a']);
      const sites = await answer(service, '/v1/ad_units/breakdowns/site', 'named', everything);
      expect(sites.rows.map(({ site }) => site)).toEqual(['', 's']);
    });
  });
}

async function expectRecount(
  service: TestService,
  oracle: Oracle,
  path: string,
  asked: readonly Asked[],
): Promise<void> {
  for (const { account, range } of asked) {
    const about = `${path} of ${account}, ${range.start} to ${range.end}`;
    const found = await answer(service, path, account, range);
    const expected = oracle.report(path, account, range);
    expect(lines(found.rows), about).toEqual(lines(expected.rows));
    expect(found.unconfirmed_revenue_dates, about).toEqual(expected.unconfirmed_revenue_dates);
  }
}

/** Sums of counts and money for each name, in millionths. */
function sums(rows: readonly Row[]): Map<string, bigint> {
  const result = new Map<string, bigint>();
  for (const row of rows) {
    for (const [column, value] of Object.entries(row)) {
      if (!/^(impressions|conversions|referrals|ad_requests|spent|estimated_revenue)$/.test(column)) continue;
      const key = `${row.campaign ?? row.ad_unit} ${column}`;
      result.set(key, (result.get(key) ?? 0n) + micros((value as LosslessNumber).value));
    }
  }
  return result;
}
