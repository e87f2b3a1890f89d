import { expect, test, vi } from 'vitest';
import { catalog } from '../../../catalog/catalog.ts';
import { verifyRollups } from '../../../clickhouse/consistency/verify-rollups.ts';
import type { Shape } from '../../support/parquet.ts';
import { sums, useParquetLoads } from '../../support/parquet-loads.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const loads = useParquetLoads(db);
const { written, load, stored } = loads;

test.each<[string, number, number, Shape]>([
  ['one group', 502_000, 1, { group: 1_000_000 }],
  ['groups of 1,000', 501_000, 2, { group: 1_000 }],
  ['gzip', 502_000, 2, { settings: { output_format_parquet_compression_method: 'gzip' } }],
  ['data pages of version 1', 502_000, 2, { settings: { output_format_parquet_version: '1.0' } }],
])('a file is loaded in chunks along its row groups: %s', async (_, rows, chunks, shape) => {
  const { length } = await written(rows, shape);
  expect(await load()).toMatchObject({ rows, chunks, rejectedRows: 0, bytes: length });
  expect(await stored()).toEqual(sums(rows));
  expect(await load({ chunkBytes: 64 << 20 })).toMatchObject({ rows: 0, repeatedRows: rows, chunks });
  expect(await stored()).toEqual(sums(rows));
});

test('chunks of a file are known where another file begins with them', async () => {
  await written(502_000);
  await load();
  await written(1_002_000);
  expect(await load()).toMatchObject({ rows: 502_000, repeatedRows: 500_000, chunks: 3 });
});

test('a load of a file that was killed is completed by the same command', async () => {
  await written(1_502_000);
  const killed = loads.loader.start(['ingest', 'events', loads.path]);
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
