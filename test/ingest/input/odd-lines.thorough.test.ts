import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { event } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
let account: string;
const { counted, file, ingest } = useLoader(db, (own) => {
  ({ account } = own);
});

/** Lines of the rejected rows of a load. */
async function rejectedLines(load: string): Promise<number[]> {
  const query =
    'SELECT toUInt32(line) AS line FROM rejected_rows FINAL WHERE load_id = {load:String} ORDER BY line';
  return (await select<{ line: number }>(db.store, query, { load })).map(({ line }) => line);
}

/** A line whose amounts are text. */
const line = (fields: { quantity?: string; spend?: string } = {}): string =>
  JSON.stringify({ ...event({ advertiser_id: account }), quantity: '1', ...fields });

test('numbers are judged digit for digit beside a bad row', async () => {
  const good = ['1.10', '0.1234560', '123456789012.123456', '999999999999.999999', '-0', '1e2', '-2e-04'];
  const wrong = ['123456789012.1234567', '0.0000001', '1234567890123', '0.12345678901234567'];
  const lines = [...good, ...wrong].map((spend) => line({ spend }).replace(`"${spend}"`, spend));
  const { stdout } = await ingest(await file('e.ndjson', lines.join('\n')));
  expect(JSON.parse(stdout)).toMatchObject({ rows: 7, rejected_rows: 4 });
  expect(await rejectedLines(JSON.parse(stdout).loads[0])).toEqual([8, 9, 10, 11]);
  const sum = 'SELECT toString(sum(spend)) AS spend FROM events WHERE advertiser_id = {account:String}';
  expect(await select(db.store, sum, { account })).toEqual([{ spend: '1123456789113.346711' }]);
});

test.each([0, 1])('a field that appears twice is a fault, beside %i bad rows', async (bad) => {
  const three = () => [line(), line(), line()];
  const twice = () => line().replace('"quantity":"1"', '"quantity":"1","quantity":"1"');
  const wrong = bad ? [line({ quantity: '0' })] : [];
  const lines = [...three(), twice(), ...three(), twice(), ...wrong, ...three()];
  const { code, stdout, stderr } = await ingest(await file('e.ndjson', lines.join('\n')));
  expect(code, stderr).toBe(4);
  expect(JSON.parse(stdout)).toMatchObject({ rows: 9, rejected_rows: 2 + bad });
  expect(await rejectedLines(JSON.parse(stdout).loads[0])).toEqual(bad ? [4, 8, 9] : [4, 8]);
  expect(stderr).toContain('line 4: quantity appears twice');
  expect(await counted()).toBe(9);
});

/** As a loader leaves it that was killed before it noted that all has arrived. */
async function leaveInDoubt(load: string): Promise<void> {
  const mutations = [
    'ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0, rejected_rows = 0 WHERE load_id = {load:String}',
    "ALTER TABLE loads UPDATE state = 'failed' WHERE load_id = {load:String}",
  ];
  for (const query of mutations) {
    await db.store.command({
      query,
      query_params: { load },
      clickhouse_settings: { mutations_sync: '2' },
    });
  }
}

const strange = '--ignore-unknown';
test.each([
  ['was rejected', [], [strange], { code: 4, rejected_rows: 2, rows: 10 }],
  ['was an event', [strange], [], { code: 4, rejected_rows: 2, rows: 10 }],
])('a line that %s by the flags of the load that goes on is counted once', async (_, before, now, wanted) => {
  const stranger = () => line().replace('{', '{"browser":"x",');
  const lines = Array.from({ length: 12 }, (_, n) => (n % 6 === 3 ? stranger() : line()));
  const path = await file('e.ndjson', lines.join('\n'));
  const killed = JSON.parse((await ingest(...before, path)).stdout);
  await leaveInDoubt(killed.loads[0]);
  const { code, stdout, stderr } = await ingest(...now, path);
  expect({ code, ...JSON.parse(stdout) }, stderr).toMatchObject(wanted);
  expect(await counted()).toBe(wanted.rows);
  const kept =
    'SELECT toUInt32(count()) AS kept FROM rejected_rows FINAL WHERE load_id IN {loads:Array(String)}';
  const loads = [...killed.loads, ...JSON.parse(stdout).loads];
  expect(await select(db.store, kept, { loads })).toEqual([{ kept: wanted.rejected_rows }]);
});
