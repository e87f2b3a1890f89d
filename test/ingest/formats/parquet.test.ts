import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { insertData, select } from '../../../clickhouse/client.ts';
import { insertSettings } from '../../../ingest/event/insert-settings.ts';
import { judgeRecords } from '../../../ingest/event/judge.ts';
import type { RejectedRow } from '../../../ingest/rejects/rejected-rows.ts';
import { onlyChunk } from '../../support/only-chunk.ts';
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

test('rows are numbered in their order, also where row groups are quicker to read than those before them', async () => {
  await written(200_000, { group: 2048, quantity: 'if(intDiv(number, 2048) % 2 = 0, 1, 1 + rand() % 1000)' });
  const { source, stream } = await onlyChunk(loads.path, 1 << 20);
  const judge = { reportTimezone: 'UTC', timezone: 'UTC', roundMoney: false, requireEventId: false };
  await db.store.command({
    query: 'CREATE OR REPLACE TABLE numbered (line UInt64, id String) ENGINE = Memory',
  });
  // What reads the rows must be quicker than what unpacks them: the statement of a load rarely gets ahead of a row group.
  await insertData(db.store, {
    into: 'numbered',
    select: `SELECT line, event_id FROM (${judgeRecords(source, judge)})`,
    format: source.format,
    data: stream(),
    params: { chunk: '', loadTime: '1970-01-01 00:00:00', loadId: '', file: '', firstLine: '1' },
    settings: { ...insertSettings('numbered'), ...source.settings },
  });
  const query = `SELECT toUInt32(count()) AS rows, toUInt32(countIf(id != concat({account:String}, '-', toString(line - 1)))) AS wrong FROM numbered`;
  expect(await select(db.store, query, { account: loads.account })).toEqual([{ rows: 200_000, wrong: 0 }]);
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
