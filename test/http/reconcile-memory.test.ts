import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { blob } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();

/** On the way to ClickHouse every statement gets a limit of memory, as the user of a service has it. */
const way = createServer((asked, answer) => {
  const { url = '', method, headers } = asked;
  const { hostname, port } = new URL(db.address.url);
  const path = `${url}&max_memory_usage=100000000`;
  const onward = request({ hostname, port, path, method, headers, agent: false }, (response) => {
    answer.writeHead(response.statusCode ?? 500, response.headers);
    response.pipe(answer);
  });
  onward.on('error', () => answer.destroy());
  answer.on('close', () => onward.destroy());
  asked.pipe(onward);
});
beforeAll(async () => {
  await once(way.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => {
  way.closeAllConnections();
  way.close();
});

const service = useService({
  get store() {
    return db.store;
  },
  get shards() {
    return db.shards;
  },
  get address() {
    return { ...db.address, url: `http://127.0.0.1:${(way.address() as AddressInfo).port}` };
  },
});

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
