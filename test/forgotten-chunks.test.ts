import { expect, it } from 'vitest';
import { select } from '../clickhouse/client.ts';
import { verify } from '../clickhouse/verify.ts';
import { catalog } from '../src/catalog.ts';
import { event, load } from './setup/events.ts';
import { useStore } from './setup/store.ts';

const test = useStore();
const mutate = (query: string) => test.store.command({ query, clickhouse_settings: { mutations_sync: '2' } });

it('a chunk in doubt that the engine has forgotten is counted once, whatever of it had arrived', async () => {
  const events = Array.from({ length: 300 }, (_, n) =>
    event({ event_time: `2026-0${1 + (n % 3)}-05T00:00:00Z`, campaign_id: `campaign-${n % 5}`, quantity: 2 }),
  );
  await load(test.store, events, 10_000);

  // The loader died before it could note what was acknowledged; a part of the events and of a rollup was lost.
  await mutate('ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE true');
  await mutate("ALTER TABLE loads UPDATE state = 'failed' WHERE true");
  await mutate("ALTER TABLE events DELETE WHERE day = '2026-02-05'");
  await test.store.command({ query: 'TRUNCATE TABLE campaigns_device_date' });
  // Since then rollups were rebuilt: their memory of chunks does not say any more what they hold.
  await test.store.command({
    query:
      "INSERT INTO loads (load_id, kind, finished_at, state) SELECT 'later', 'rebuild', now64(3) + 1, 'loaded'",
  });
  expect((await verify(test.store, catalog)).differences).not.toEqual([]);

  expect(await load(test.store, events, 10_000)).toMatchObject({ rows: 300, repeatedRows: 0 });

  expect((await verify(test.store, catalog)).differences).toEqual([]);
  expect(
    await select(
      test.store,
      'SELECT toUInt32(count()) AS events, toUInt32(sum(quantity)) AS quantity FROM events',
    ),
  ).toEqual([{ events: 300, quantity: 600 }]);
  expect(await load(test.store, events, 10_000)).toMatchObject({ rows: 0, repeatedRows: 300 });
});
