import { beforeEach, expect } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { type EventLine, event, load } from './events.ts';
import { onEveryShard, type TestStore } from './store.ts';

/** A store that is empty before each test. */
export function useChunksInDoubt(test: TestStore) {
  const mutate = (query: string) => onEveryShard(test, query);

  const tables = ['events', ...rollups(catalog).map(({ table }) => table)];
  beforeEach(async () => {
    for (const table of [...tables, 'loads', 'load_chunks', 'chunk_days', 'withdrawn_chunks'])
      await mutate(`TRUNCATE TABLE ${table}`);
  });

  /** Three hundred events of two months. */
  const events = (): EventLine[] =>
    Array.from({ length: 300 }, (_, n) =>
      event({
        event_time: `2026-0${1 + (n % 2)}-05T00:00:00Z`,
        campaign_id: `campaign-${n % 5}`,
        quantity: 2,
      }),
    );

  /** Loads events by a loader that died before it could note what was acknowledged; rollups were rebuilt since. */
  async function leaveInDoubt(lines: readonly EventLine[], options?: { readonly dedupe?: boolean }) {
    await load(test.store, lines, 40_000, options);
    await mutate(
      'ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0, rejected_rows = 0 WHERE true',
    );
    await mutate("ALTER TABLE loads UPDATE state = 'failed' WHERE true");
    // Since then the rollups' memory of chunks does not say any more what they hold.
    await test.store.command({
      query:
        "INSERT INTO loads (load_id, kind, finished_at, state) SELECT 'later', 'rebuild', now64(3) + 1, 'loaded'",
    });
  }

  /** What the store has; its rollups must agree. */
  async function counted(): Promise<unknown> {
    expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
    const query =
      'SELECT toUInt32(count()) AS events, toUInt32(sum(impressions + referrals + conversions + ad_requests)) AS quantity FROM events';
    return (await select(test.store, query))[0];
  }

  /** The same of a loader that died with its server. */
  async function leaveInDoubtAtRestart(lines: readonly EventLine[], sentAt = '2026-01-01') {
    // Otherwise the engine removes a part half a minute after a test deletes its last row, and forgets its name.
    for (const table of tables) {
      await mutate(`ALTER TABLE ${table} MODIFY SETTING remove_empty_parts = 0`);
    }
    await load(test.store, lines, 40_000);
    await mutate(
      `ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0, sent_at = toDateTime64('${sentAt} 00:00:00', 6, 'UTC') WHERE true`,
    );
    await mutate("ALTER TABLE loads UPDATE state = 'failed' WHERE true");
  }

  const withdrawn = () => select(test.store, 'SELECT DISTINCT chunk FROM withdrawn_chunks');
  return { events, leaveInDoubt, leaveInDoubtAtRestart, counted, withdrawn, mutate };
}
