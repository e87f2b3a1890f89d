import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { placeAccount } from '../../clickhouse/placement/place-account.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { unload } from '../../ingest/history/unload.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { event, load, loadRows } from './events.ts';
import type { TestStore } from './store.ts';

export const accounts = ['a', 'b'] as const;

let made = 0;
export const eventsOf = (account: string, n: number) =>
  ['2026-03-01', '2026-03-02', `2026-04-0${1 + (n % 9)}`].map((day) =>
    event({
      event_time: `${day}T12:00:00Z`,
      advertiser_id: account,
      publisher_id: account,
      site_id: `s${n % 3}`,
      device: n % 2 ? 'tv' : 'mobile',
      spend: `${++made}.5`,
      revenue: `${made}.25`,
    }),
  );

/** Returns what makes the n-th change and says which. */
export function changesOf(
  db: TestStore,
  cluster: boolean,
  below: (bound: number) => number,
): (n: number) => Promise<string> {
  const { store } = db;
  const account = () => accounts[below(2)] ?? 'a';
  const name = () => `name ${randomBytes(4).toString('hex')}`;
  const loads = async () =>
    (
      await select<{ id: string }>(
        store,
        `SELECT load_id AS id FROM loads GROUP BY load_id HAVING argMax(kind, version) = 'events' AND argMax(state, version) = 'loaded'`,
      )
    ).map(({ id }) => id);
  const kinds: Record<string, (n: number) => Promise<unknown>> = {
    load: (n) => load(store, eventsOf(account(), n)),
    loads: (n) =>
      load(
        store,
        accounts.flatMap((each) => eventsOf(each, n)),
        300,
      ),
    confirm: () => confirmDays(store, account(), '2026-03-01', '2026-03-02'),
    rename: () => loadRows(store, 'campaigns', [[account(), 'campaign', name()]]),
    'rename sites': () =>
      loadRows(store, 'sites', [
        [account(), 's0', name()],
        [account(), 's1', name()],
      ]),
    rebuild: () => rebuildRollups(store, catalog, { from: '2026-03-01', to: '2026-03-31' }),
    restore: () => restorePartition(db.shards[below(db.shards.length)] ?? store),
    ...(cluster
      ? { place: () => placeAccount(store, catalog, { account: account(), shards: [1 + below(3)] }) }
      : {
          unload: async () =>
            Promise.all((await loads()).slice(0, 1).map((id) => unload(store, id, () => new Date()))),
        }),
  };
  const names = Object.keys(kinds);
  return async (n) => {
    // Each kind once before any comes again.
    const kind = names[n <= names.length ? n - 1 : below(names.length)] ?? 'load';
    await retrying(async () => kinds[kind]?.(n));
    return kind;
  };
}

/** A rollup's month is lost and comes back from a backup. */
async function restorePartition(store: Store): Promise<void> {
  const table = 'campaigns_device_creative_date';
  const [part] = await select(
    store,
    `SELECT 1 FROM system.parts WHERE database = currentDatabase() AND table = '${table}' AND active AND partition = '202603'`,
  );
  if (!part) return;
  const backup = `File('truth-${randomBytes(6).toString('hex')}')`;
  await store.command({ query: `BACKUP TABLE ${table} TO ${backup}` });
  await store.command({ query: `ALTER TABLE ${table} DROP PARTITION 202603` });
  await delay(150);
  await store.command({
    query: `RESTORE TABLE ${table} PARTITION '202603' FROM ${backup} SETTINGS allow_non_empty_tables = 1`,
  });
}
