import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { event } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const { own, counted, file, ingest } = useLoader(db);

const line = () => JSON.stringify(event({ advertiser_id: own.account }));

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
