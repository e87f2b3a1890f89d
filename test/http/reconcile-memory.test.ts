import { blob } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { useService } from '../support/service.ts';
import { reachedBy, useStatementsBetween } from '../support/statements-between.ts';
import { useStore } from '../support/store.ts';

const db = useStore();

/** Every statement has a limit of memory, as the user of a service has it. */
const bounded = useStatementsBetween(
  () => db.address.url,
  ({ settings }) => settings.set('max_memory_usage', '100000000'),
);
const service = useService(reachedBy(bounded, db));

test('a file that unpacks to more than a statement may hold is refused', async () => {
  const { stream } = await db.store.exec({
    query: `SELECT toDate('2026-03-01') AS event_time, repeat('a', 1000000) AS campaign_id, toUInt32(7) AS impressions
            FROM numbers(200) FORMAT Parquet`,
    clickhouse_settings: {
      output_format_parquet_row_group_size: '50',
      output_format_parquet_parallel_encoding: 0,
      max_block_size: '50',
    },
  });
  const type = 'application/vnd.apache.parquet';
  const file = await blob(stream);
  expect(file.size).toBeLessThan(1 << 20);
  const answer = await service.post('/v1/campaigns/reconcile', 'acme', file, { 'content-type': type });
  expect([answer.status, JSON.parse(await answer.text())]).toMatchObject([
    400,
    { code: 'invalid_request', field: 'start_time' },
  ]);
});
