import { beforeAll, expect } from 'vitest';
import { type Store, select } from '../../clickhouse/client.ts';
import { type EventLine, event, load } from './events.ts';
import { answer, lines, Oracle, paths, type Range } from './oracle.ts';
import type { TestService } from './service.ts';
import type { TestStore } from './store.ts';

export const year: Range = { start: '2026-01-01', end: '2026-12-31' };

/** Events of both sides; `from` makes the ids of later ones differ. */
export function events(accounts: readonly string[], count: number, from = 0): EventLine[] {
  return Array.from({ length: count }, (_, n) =>
    event({
      event_id: `${accounts[0]}-${from + n}`,
      event_time: `2026-0${1 + (n % 3)}-0${1 + (n % 9)}T00:00:00Z`,
      event_type: (['impression', 'referral', 'conversion', 'ad_request'] as const)[n % 4] ?? 'revenue',
      advertiser_id: accounts[n % accounts.length] ?? '',
      publisher_id: accounts[(n * 7 + 1) % accounts.length] ?? '',
      campaign_id: `campaign-${n % 11}`,
      ad_unit_id: `ad-unit-${n % 13}`,
      device: n % 2 ? 'mobile' : 'desktop',
      spend: `${n % 5}.25`,
      revenue: `${n % 3}.000001`,
    }),
  );
}

/**
 * Makes the finest breakdown of these accounts larger than every buffer on its way, also packed: its creative ids do
 * not compress.
 */
export async function insertLarge(store: Store, accounts: readonly string[], rows = 200_000): Promise<void> {
  await store.command({
    query: `INSERT INTO campaigns_device_creative_date (account_id, day, campaign_id, device, creative_id, impressions)
            SELECT arrayJoin({accounts:Array(String)}), toDate('2026-01-01') + intDiv(number, 4000), 'campaign', 'mobile',
                   lower(hex(SHA512(toString(number)))), 1
            FROM numbers({rows:UInt64})`,
    query_params: { accounts, rows },
  });
}

/** Where accounts lie, by number of the shard. */
export async function homes(store: Store): Promise<Map<string, number>> {
  const rows = await select<{ account: string; shard: number }>(
    store,
    'SELECT DISTINCT account_id AS account, _shard_num AS shard FROM campaigns_date',
  );
  return new Map(rows.map(({ account, shard }) => [account, shard]));
}

/** The shards that were asked for a rollup by reports of an account: of each report a list. */
export async function askedShards(test: TestStore, account: string, rollup: string): Promise<number[][]> {
  const initial = new Map<string, Set<number>>();
  for (const [n, shard] of test.shards.entries()) {
    await shard.command({ query: 'SYSTEM FLUSH LOGS' });
    const queries = await select<{ id: string; first: number }>(
      shard,
      `SELECT initial_query_id AS id, is_initial_query AS first FROM system.query_log
       WHERE type = 'QueryFinish' AND position(query, {account:String}) > 0 AND position(query, {rollup:String}) > 0
         AND position(query, 'query_log') = 0`,
      { account: `'${account}'`, rollup },
    );
    for (const { id, first } of queries) {
      const shards = initial.get(id) ?? new Set();
      initial.set(id, shards);
      if (!first) shards.add(n + 1);
    }
  }
  return [...initial.values()].map((shards) => [...shards].sort());
}

/** Twelve accounts with events, so that every shard has some, and an oracle that has the same. */
export function useRecounted(test: TestStore) {
  const accounts = Array.from({ length: 12 }, (_, n) => `account-${n}`);
  const oracle = new Oracle();
  const loadBoth = async (some: EventLine[]) => {
    await load(test.store, some, 50_000);
    oracle.load(some);
  };
  beforeAll(() => loadBoth(events(accounts, 1_200)));
  return { accounts, oracle, loadBoth };
}

/** Every report of these accounts equals the recount. */
export async function expectRecount(
  service: TestService,
  oracle: Oracle,
  accounts: readonly string[],
): Promise<void> {
  for (const account of accounts) {
    for (const path of paths) {
      const found = await answer(service, path, account, year);
      const expected = oracle.report(path, account, year);
      expect(lines(found.rows), `${path} of ${account}`).toEqual(lines(expected.rows));
      expect(found.unconfirmed_revenue_dates).toEqual(expected.unconfirmed_revenue_dates);
    }
  }
}
