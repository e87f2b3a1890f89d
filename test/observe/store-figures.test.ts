import { beforeAll, expect, test } from 'vitest';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
beforeAll(async () => {
  await load(db.store, [
    event({ advertiser_id: 'a', spend: '1' }),
    event({ campaign_id: '' }),
    event({ campaign_id: '' }),
  ]);
});
const service = useService(db);

const metrics = async () => (await fetch(`${service.url}/metrics`)).text();

test('/metrics has what an operator has to be told of: what is open, when the last load ended, and what is left', async () => {
  await expect.poll(metrics, { timeout: 30_000 }).toMatch(/^adtally_clickhouse_memory_bytes \d/m);
  const text = await metrics();
  expect(text).toMatch(/^adtally_rejected_rows_open 2$/m);
  expect(text).toMatch(/^adtally_chunks_in_doubt 0$/m);
  expect(text).toMatch(/^adtally_unconfirmed_days 1$/m);
  const numberOf = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  expect(Math.abs(Date.now() / 1000 - numberOf('adtally_last_load_timestamp_seconds'))).toBeLessThan(3600);
  expect(numberOf('adtally_store_bytes')).toBeGreaterThan(1000);
  expect(numberOf('adtally_store_partition_parts_max')).toBeLessThanOrEqual(numberOf('adtally_store_parts'));
  expect(numberOf('adtally_store_disk_free_bytes')).toBeLessThan(numberOf('adtally_store_disk_bytes'));
  expect(text).toMatch(/^adtally_build_info\{node="v\d+[^"]*",version="\d[^"]*"[^}]*\} 1$/m);
});
