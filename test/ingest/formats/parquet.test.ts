import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import type { RejectedRow } from '../../../ingest/rejects/rejected-rows.ts';
import type { Shape } from '../../support/parquet.ts';
import { sums, useParquetLoads } from '../../support/parquet-loads.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const loads = useParquetLoads(db);
const { written, load, stored } = loads;

describe('a file is loaded in chunks along its row groups', () => {
  test.each<[string, number, number, Shape]>([
    ['groups of 50,000', 502_000, 2, {}],
    ['one row', 1, 1, {}],
    ['no rows', 0, 0, {}],
  ])('%s', async (_, rows, chunks, shape) => {
    const { length } = await written(rows, shape);
    expect(await load()).toMatchObject({ rows, chunks, rejectedRows: 0, bytes: length });
    expect(await stored()).toEqual(sums(rows));
    expect(await load({ chunkBytes: 64 << 20 })).toMatchObject({ rows: 0, repeatedRows: rows, chunks });
    expect(await stored()).toEqual(sums(rows));
  });
});

test('rejected rows are named by their number in the file', async () => {
  const faulty = [500_001, 500_002, 501_000, 502_000];
  await written(502_000, { quantity: `if(number + 1 IN (${faulty.join(', ')}), -1, 1)` });
  const rejected: RejectedRow[] = [];
  const result = await load({ onRejected: (row) => rejected.push(row) });
  expect(result).toMatchObject({ rows: 501_996, rejectedRows: 4, chunks: 2 });
  expect(rejected.map(({ line }) => line)).toEqual(faulty);
  const raw = 'SELECT raw FROM rejected_rows WHERE line = 501000 AND raw LIKE {like:String}';
  expect(await select(db.store, raw, { like: `%"${loads.account}-500999"%` })).toHaveLength(1);
  expect((await stored())?.events).toBe(501_996);
  expect(await load()).toMatchObject({ rows: 0, repeatedRows: 501_996 });
});

test('rejected rows are called rows, whatever the file is called', async () => {
  const bytes = await written(3, { quantity: 'number - 1' });
  const path = await loads.loader.file('e.data', bytes);
  const { stderr } = await loads.loader.ingest('--format', 'parquet', path);
  expect(stderr).toContain(`rejected: ${path} row 1: quantity`);
  const refused = await loads.loader.ingest(
    '--format',
    'parquet',
    '--max-rejects',
    '0',
    '--set',
    'device=tablet',
    '--again',
    path,
  );
  expect(refused.stderr).toContain('nothing of the chunk from row 1 was loaded');
});

test.each(['Nullable(Int8)', 'Nullable(UInt64)', 'Nullable(Int64)'])(
  'a truth value may be a %s',
  async (type) => {
    await written(6, { confirmed: `CAST([1, 0, NULL, 2, 255, 1][number + 1] AS ${type})` });
    const rejected: RejectedRow[] = [];
    const result = await load({ onRejected: (row) => rejected.push(row) });
    expect(result).toMatchObject({ rows: 4, rejectedRows: 2 });
    const wrong = type === 'Nullable(Int8)' ? '-1' : '255';
    expect(rejected.map(({ line, faults }) => [line, faults])).toEqual([
      [4, [{ field: 'confirmed', reason: 'must be true or false, not "2"' }]],
      [5, [{ field: 'confirmed', reason: `must be true or false, not "${wrong}"` }]],
    ]);
    const query = 'SELECT confirmed FROM events WHERE advertiser_id = {account:String} ORDER BY event_id';
    expect(await select(db.store, query, { account: loads.account })).toEqual(
      [true, false, false, true].map((confirmed) => ({ confirmed })),
    );
  },
);

test('a file that is deleted between its being named and sent is not loaded', async () => {
  const { length } = await written(20_000);
  const remove = ({ bytes: read }: { bytes: number }) => {
    if (read === length) rmSync(loads.path, { force: true });
  };
  await expect(load({ onProgress: remove })).rejects.toThrow(`${loads.path}: there is no such file`);
  expect((await stored())?.events).toBe(0);
});

test('a file that changes between its being named and sent is not loaded', async () => {
  const bytes = await written(20_000);
  const other = Buffer.from(bytes);
  other.fill(0, 2_000, 2_100);
  const change = ({ bytes: read }: { bytes: number }) => {
    if (read === bytes.length) writeFileSync(loads.path, other);
  };
  await expect(load({ onProgress: change })).rejects.toThrow(`${loads.path}: was changed while it was read`);
  expect((await stored())?.events).toBe(0);
});
