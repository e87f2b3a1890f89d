import type { ClickHouseSettings } from '@clickhouse/client';
import { beforeEach, expect } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { verifyLedger } from '../../ingest/history/verify-ledger.ts';
import type { TestStore } from './store.ts';

export const all = rollups(catalog);

/** Empties events and rollups before each test. */
export function emptyBeforeEach(test: TestStore): void {
  beforeEach(async () => {
    const tables = ['events', 'loads', 'load_chunks', ...all.map(({ table }) => table)];
    for (const table of tables) await run(test.store, `TRUNCATE TABLE ${table}`);
  });
}

/** Events of January and February 2026, made in the store. */
export async function generate(store: Store, events: number): Promise<void> {
  await run(
    store,
    `INSERT INTO events (event_id, event_time, impressions, referrals, conversions, ad_requests,
       advertiser_id, campaign_id, creative_id, publisher_id, ad_unit_id, site_id, device, spend, revenue, confirmed)
     SELECT toString(number), toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + cityHash64(number) % (59 * 86400),
       number % 5 = 0, number % 5 = 1, number % 5 = 2, number % 5 = 3,
       concat('a', toString(number % 7)), concat('c', toString(number % 11)), concat('x', toString(number % 13)),
       concat('p', toString(number % 3)), concat('u', toString(number % 17)), concat('s', toString(number % 5)),
       ['desktop', 'mobile', 'tablet'][1 + number % 3], 0.000001 * (number % 100), 0.01, number % 2
     FROM numbers(${events})`,
  );
}

/** A fingerprint of what every rollup has from the events. */
export function content(store: Store): Promise<unknown[]> {
  return ofEach(
    store,
    (table) => `SELECT count() AS n, toString(sum(cityHash64(* EXCEPT changed_at))) AS h FROM ${table} FINAL`,
  );
}

export function ofEach(store: Store, query: (table: string) => string): Promise<unknown[]> {
  const queries = all.map(({ table }) => `SELECT '${table}' AS t, * FROM (${query(table)})`);
  return select(store, `SELECT * FROM (${queries.join(' UNION ALL ')}) ORDER BY t`);
}

/** Rollups and ledger agree with the events. */
export async function requireAgreement(store: Store): Promise<void> {
  expect((await verifyRollups(store, catalog)).differences).toEqual([]);
  expect((await verifyLedger(store)).differences).toEqual([]);
}

/** What a rebuild left behind. */
export function staging(store: Store): Promise<unknown[]> {
  return select(
    store,
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, 'rebuild_')",
  );
}

export async function run(store: Store, query: string, settings: ClickHouseSettings = {}): Promise<void> {
  await store.command({ query, clickhouse_settings: settings });
}
