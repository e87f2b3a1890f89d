import { expect, it } from 'vitest';
import { catalog } from '../../../catalog/catalog.ts';
import { type Store, select } from '../../../clickhouse/client.ts';
import { rollups } from '../../../clickhouse/rollups.ts';
import { withdrawChunks } from '../../../ingest/delivery/withdraw-chunks.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { useChunksInDoubt } from '../../support/chunks-in-doubt.ts';
import { load } from '../../support/events.ts';
import { shards, useStore } from '../../support/store.ts';

const test = useStore();
const { events, counted, mutate } = useChunksInDoubt(test);

it('what a killed loader still sends at the server is ended before its chunk is withdrawn', async () => {
  await load(test.store, events());
  const [sent] = await select<{ chunk: string }>(test.store, 'SELECT DISTINCT chunk FROM events');
  const chunk = sent?.chunk ?? '';
  const late = test.store.command({
    query: 'INSERT INTO events (* EXCEPT day) SELECT * EXCEPT day FROM events WHERE sleepEachRow(0.01) = 0',
    clickhouse_settings: { insert_deduplication_token: `${chunk} of-a-dead-load 0`, max_block_size: '10' },
  });
  const ended = expect(late).rejects.toThrow(/killed|cancelled/);
  const running =
    "SELECT count() > 0 AS runs FROM system.processes WHERE query_kind = 'Insert' AND query LIKE '%sleepEachRow%'";
  await expect.poll(() => select(test.store, running)).toEqual([{ runs: 1 }]);
  await withdrawChunks(test.store, [chunk]);
  await ended;
  const left = 'SELECT chunk FROM events UNION ALL SELECT chunk FROM chunk_days';
  expect(await select(test.store, left)).toEqual([]);
});

// On a cluster each shard is reached by a client of its own, which a test cannot hold back.
it.runIf(shards === 1)(
  'a deletion that the engine takes for done and never applies is repeated',
  async () => {
    const lines = events();
    await load(test.store, lines);
    const [sent] = await select<{ chunk: string }>(test.store, 'SELECT DISTINCT chunk FROM events');
    const forgetful: Store = Object.create(test.store);
    const forgotten = new Set<string>();
    forgetful.command = (params) => {
      const isFirst = params.query.startsWith('ALTER') && !forgotten.has(params.query);
      if (isFirst) forgotten.add(params.query);
      return test.store.command(isFirst ? { query: 'SELECT 1 FORMAT Null' } : params);
    };
    await withdrawChunks(forgetful, [sent?.chunk ?? '']);
    expect(forgotten.size).toBe(2);
    const left = 'SELECT chunk FROM events UNION ALL SELECT chunk FROM chunk_days';
    expect(await select(test.store, left)).toEqual([]);
  },
);

it('a chunk whose claim is lost, as by a power failure, counts once', async () => {
  const lines = events();
  await load(test.store, lines);
  for (const table of ['load_chunks', 'loads']) await mutate(`TRUNCATE TABLE ${table}`);
  // The tokens that ClickHouse remembers are lost, too.
  for (const table of ['events', 'chunk_days', ...rollups(catalog).map(({ table }) => table)]) {
    for (const size of [0, 10_000])
      await mutate(`ALTER TABLE ${table} MODIFY SETTING non_replicated_deduplication_window = ${size}`);
  }
  await load(test.store, lines);
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
  expect((await verifyLedger(test.store)).differences).toEqual([]);
});
