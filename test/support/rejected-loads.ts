import { expect } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { correctedRows } from './corrections.ts';
import { event, ndjson } from './events.ts';
import { useLoader } from './loader.ts';
import type { TestStore } from './store.ts';

interface Totals {
  readonly events: number;
  readonly ids: number;
  readonly impressions: number;
}

export const now = (): Date => new Date();

export function useRejectedLoads(db: TestStore) {
  const { own, file, start, run } = useLoader(db);
  /** Loads lines, every fifth without a quantity that counts; returns the file and the id of the load. */
  async function loadWithRejects(count: number): Promise<{ path: string; load: string }> {
    const lines = Array.from({ length: count }, (_, n) =>
      event({
        event_id: `${own.account}-${n}`,
        advertiser_id: own.account,
        quantity: n % 5 === 4 ? 0 : 1,
        spend: '0.1',
      }),
    );
    const path = await file('e.ndjson', ndjson(lines));
    const { loadId = '' } = await loadEvents({
      store: db.store,
      input: new LocalFile(path),
      chunkBytes: 100_000,
      now,
    });
    return { path, load: loadId };
  }

  /** Exports the rejected rows of a load and writes them again with other quantities. */
  const corrected = async (
    load: string,
    kind: 'csv' | 'ndjson',
    quantity: (row: number) => number,
    name = 'corrected',
  ): Promise<string> => {
    const rows = await correctedRows(db.store, load, kind, (_, row) => ({ quantity: quantity(row) }));
    return file(`${name}.${kind}`, rows);
  };

  /** What the store counts for the current account. */
  async function counted(): Promise<Totals | undefined> {
    const [row] = await select<Totals>(
      db.store,
      `SELECT toUInt32(count()) AS events, toUInt32(uniqExact(event_id)) AS ids, toUInt32(sum(e.impressions + e.referrals + e.conversions + e.ad_requests)) AS impressions
     FROM events AS e WHERE advertiser_id = {account:String}`,
      { account: own.account },
    );
    return row;
  }

  return {
    ...{ own, file, loadWithRejects, corrected, counted },
    start: (...args: string[]) => start(args),
    run: (...args: string[]) => run(args),
    /** The same; the rollups must agree with all that is stored. */
    totals: async () => {
      expect(await verifyRollups(db.store, catalog)).toEqual({ differences: [], more: false });
      return counted();
    },
  };
}
