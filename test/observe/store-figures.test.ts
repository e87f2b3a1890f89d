import { beforeAll, expect, test } from 'vitest';
import { type Store, storeTime } from '../../clickhouse/client.ts';
import { noteLook } from '../../ingest/ledger/followed-files.ts';
import { loadConfig } from '../../src/config/config.ts';
import { Metrics } from '../../src/observe/metrics.ts';
import { StoreFigures } from '../../src/observe/store-figures.ts';
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
  await noteLook(db.store, { places: 's3://bucket/*.gz', everyMs: 1_000 }, await storeTime(db.store));
});
const service = useService(db, { ALERT_LOAD_HOURS: '0', ALERT_NO_EVENTS_HOURS: '2' });

const metrics = async () => (await fetch(`${service.url}/metrics`)).text();

test('/metrics has what an operator has to be told of: what is open, when the last load ended, and what is left', async () => {
  await expect.poll(metrics, { timeout: 30_000 }).toMatch(/^adtally_clickhouse_memory_bytes \d/m);
  const text = await metrics();
  expect(text).toMatch(/^adtally_rejected_rows_open 2$/m);
  expect(text).toMatch(/^adtally_chunks_in_doubt 0$/m);
  expect(text).toMatch(/^adtally_unconfirmed_days 1$/m);
  expect(text).toMatch(/^adtally_files_failing 0$/m);
  expect(text).toMatch(/^adtally_load_under_way_seconds 0$/m);
  expect(text).toMatch(
    /^adtally_followed_look_due_timestamp_seconds\{places="s3:\/\/bucket\/\*\.gz"\} 1\d{9}\.?\d*$/m,
  );
  expect(text).toMatch(/^adtally_alert_limit_seconds\{alert="AdtallyNothingLoaded"\} 7200$/m);
  expect(text).toMatch(/^adtally_alert_limit_seconds\{alert="AdtallyLoadTakesLong"\} \+Inf$/m);
  const numberOf = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  expect(Math.abs(Date.now() / 1000 - numberOf('adtally_last_load_timestamp_seconds'))).toBeLessThan(3600);
  expect(numberOf('adtally_unconfirmed_oldest_timestamp_seconds')).toBe(Date.parse('2026-03-01') / 1000);
  expect(Math.abs(Date.now() / 1000 - numberOf('adtally_last_events_timestamp_seconds'))).toBeLessThan(3600);
  expect(numberOf('adtally_store_bytes')).toBeGreaterThan(1000);
  expect(numberOf('adtally_store_partition_parts_max')).toBeLessThanOrEqual(numberOf('adtally_store_parts'));
  expect(numberOf('adtally_store_disk_free_bytes')).toBeLessThan(numberOf('adtally_store_disk_bytes'));
  expect(text).toMatch(/^adtally_build_info\{node="v\d+[^"]*",version="\d[^"]*"[^}]*\} 1$/m);
});

test('a figure whose question failed is asked again soon, however long the failure took', async () => {
  const errors: unknown[] = [];
  const failsOnce: Store = Object.create(db.store);
  failsOnce.query = async (params: Parameters<Store['query']>[0]) =>
    db.store.query(errors.length === 0 ? { ...params, query: 'SELECT throwIf(sleep(0.3) = 0)' } : params);
  const metrics = new Metrics();
  const figures = new StoreFigures({
    store: failsOnce,
    alerts: loadConfig({}).alerts,
    now: () => new Date(),
    onError: (error) => errors.push(error),
    times: { everyMs: 20, partOfTime: 0.000_1 },
  });
  figures.addTo(metrics);
  figures.start('UTC');
  try {
    await expect.poll(() => metrics.text(), { timeout: 60_000 }).toMatch(/^adtally_damaged_parts 0$/m);
    expect(errors).toHaveLength(1);
  } finally {
    figures.stop();
  }
});
