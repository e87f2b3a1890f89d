import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { type EventLoadOptions, loadEvents } from '../../ingest/load/load-events.ts';
import { useLoader } from './loader.ts';
import { parquetFile, type Shape } from './parquet.ts';
import type { TestStore } from './store.ts';

interface Sums {
  readonly events: number;
  readonly quantity: number;
  readonly spend: string;
}

/** A Parquet file of its own for each test. */
export function useParquetLoads(db: TestStore) {
  const loader = useLoader(db);
  const { own } = loader;
  const path = () => join(own.home, 'e.parquet');

  async function written(rows: number, shape?: Shape): Promise<Buffer> {
    const bytes = await parquetFile(db.store, own.account, rows, shape);
    writeFileSync(path(), bytes);
    return bytes;
  }

  function load(options: Partial<EventLoadOptions> = {}) {
    const now = () => new Date('2026-03-02T00:00:00Z');
    return loadEvents({
      store: db.store,
      input: new LocalFile(path()),
      chunkBytes: 1 << 20,
      now,
      ...options,
    });
  }

  /** What the store has of the current account, in the raw table and in its reports alike. */
  async function stored() {
    const [row] = await select<Sums>(
      db.store,
      `SELECT toUInt32(count()) AS events, toUInt32(sum(impressions + referrals + conversions + ad_requests)) AS quantity, toString(sum(spend)) AS spend
     FROM events WHERE advertiser_id = {account:String}`,
      { account: own.account },
    );
    const [reported] = await select<{ quantity: number; spend: string }>(
      db.store,
      `SELECT toUInt32(sum(impressions)) AS quantity, toString(sum(spent)) AS spend FROM campaigns_device_date
     WHERE account_id = {account:String}`,
      { account: own.account },
    );
    expect(reported).toEqual({ quantity: row?.quantity, spend: row?.spend });
    return row;
  }

  return {
    get account() {
      return own.account;
    },
    get path() {
      return path();
    },
    ...{ loader, written, load, stored },
  };
}

/** The sums of `rows` events as `written` makes them. */
export function sums(rows: number): Sums {
  const cents = Array.from({ length: rows }, (_, n) => n % 1000).reduce((sum, n) => sum + n, 0);
  return { events: rows, quantity: rows, spend: String(cents / 100) };
}
