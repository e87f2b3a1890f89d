import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { type EventLoadOptions, loadEvents } from '../../ingest/load/load-events.ts';
import type { RejectedRow } from '../../ingest/rejects/rejected-rows.ts';
import { useLoader } from '../support/loader.ts';
import { parquetFile, type Shape } from '../support/parquet.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 120_000 });

const db = useStore();
let account: string;
let path: string;
const loader = useLoader(db, (own) => {
  account = own.account;
  path = join(own.home, 'e.parquet');
});

async function written(rows: number, shape?: Shape): Promise<Buffer> {
  const bytes = await parquetFile(db.store, account, rows, shape);
  writeFileSync(path, bytes);
  return bytes;
}

function load(options: Partial<EventLoadOptions> = {}) {
  const now = () => new Date('2026-03-02T00:00:00Z');
  return loadEvents({ store: db.store, file: path, chunkBytes: 1 << 20, now, ...options });
}

/** What the store has of the current account, in the raw table and in its reports alike. */
async function stored() {
  const [row] = await select<{ events: number; quantity: number; spend: string }>(
    db.store,
    `SELECT toUInt32(count()) AS events, toUInt32(sum(quantity)) AS quantity, toString(sum(spend)) AS spend
     FROM events WHERE advertiser_id = {account:String}`,
    { account },
  );
  const [reported] = await select<{ quantity: number; spend: string }>(
    db.store,
    `SELECT toUInt32(sum(impressions)) AS quantity, toString(sum(spent)) AS spend FROM campaigns_device_date
     WHERE account_id = {account:String}`,
    { account },
  );
  expect(reported).toEqual({ quantity: row?.quantity, spend: row?.spend });
  return row;
}

/** The sums of `rows` events as `written` makes them. */
function sums(rows: number) {
  const cents = Array.from({ length: rows }, (_, n) => n % 1000).reduce((sum, n) => sum + n, 0);
  return { events: rows, quantity: rows, spend: String(cents / 100) };
}

describe('a file is loaded in chunks along its row groups', () => {
  test.each<[string, number, number, Shape]>([
    ['groups of 50,000', 502_000, 2, {}],
    ['one group', 502_000, 1, { group: 1_000_000 }],
    ['groups of 1,000', 501_000, 2, { group: 1_000 }],
    ['one row', 1, 1, {}],
    ['no rows', 0, 0, {}],
    ['gzip', 502_000, 2, { settings: { output_format_parquet_compression_method: 'gzip' } }],
    ['data pages of version 1', 502_000, 2, { settings: { output_format_parquet_version: '1.0' } }],
  ])('%s', async (_, rows, chunks, shape) => {
    const { length } = await written(rows, shape);
    expect(await load()).toMatchObject({ rows, chunks, rejectedRows: 0, bytes: length });
    expect(await stored()).toEqual(sums(rows));
    expect(await load({ chunkBytes: 64 << 20 })).toMatchObject({ rows: 0, repeatedRows: rows, chunks });
    expect(await stored()).toEqual(sums(rows));
  });

  test('of which those are known that another file begins with', async () => {
    await written(502_000);
    await load();
    await written(1_002_000);
    expect(await load()).toMatchObject({ rows: 502_000, repeatedRows: 500_000, chunks: 3 });
  });

  test('and a load that was killed is completed by the same command', async () => {
    await written(1_502_000);
    const killed = loader.start(['ingest', 'events', path]);
    await vi.waitUntil(async () => ((await stored().catch(() => undefined))?.events ?? 0) > 0, {
      timeout: 60_000,
      interval: 20,
    });
    expect((await killed.kill('SIGKILL')).signal).toBe('SIGKILL');
    const { rows, repeatedRows } = await load();
    expect(rows).toBeGreaterThan(0);
    expect(rows + repeatedRows).toBe(1_502_000);
    expect(await stored()).toEqual(sums(1_502_000));
    expect((await verifyRollups(db.store, catalog)).differences).toEqual([]);
  });
});

test('rejected rows are named by their number in the file', async () => {
  const faulty = [500_001, 500_002, 501_000, 502_000];
  await written(502_000, { quantity: `if(number + 1 IN (${faulty.join(', ')}), -1, 1)` });
  const rejected: RejectedRow[] = [];
  const result = await load({ onRejected: (row) => rejected.push(row) });
  expect(result).toMatchObject({ rows: 501_996, rejectedRows: 4, chunks: 2 });
  expect(rejected.map(({ line }) => line)).toEqual(faulty);
  expect(rejected[2]?.raw.toString()).toContain(`"${account}-500999"`);
  expect((await stored())?.events).toBe(501_996);
  expect(await load()).toMatchObject({ rows: 0, repeatedRows: 501_996 });
});

test('a file that changes between its being named and sent is not loaded', async () => {
  const bytes = await written(20_000);
  const other = Buffer.from(bytes);
  other.fill(0, 2_000, 2_100);
  const change = ({ bytes: read }: { bytes: number }) => {
    if (read === bytes.length) writeFileSync(path, other);
  };
  await expect(load({ onProgress: change })).rejects.toThrow(`${path}: was changed while it was loaded`);
  expect((await stored())?.events).toBe(0);
});
