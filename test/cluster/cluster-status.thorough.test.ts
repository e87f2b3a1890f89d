import { expect, test } from 'vitest';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { useCluster } from '../support/cluster.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { event, load } from '../support/events.ts';
import { environmentOf } from '../support/process.ts';
import { useClusterStore } from '../support/store.ts';

const cluster = useCluster(3);
const db = useClusterStore(cluster);
const run = useCommandRunners();

test('status counts what all shards have', async () => {
  const accounts = Array.from({ length: 30 }, (_, n) => `account-${n}`);
  await load(db.store, [
    ...accounts.map((account) =>
      event({ advertiser_id: account, publisher_id: account, spend: '1', revenue: '1' }),
    ),
    event({ event_time: 'never' }),
  ]);
  for (const account of accounts.slice(0, 10))
    await confirmDays(db.store, account, '2026-03-01', '2026-03-31');
  const { code, stdout, stderr } = await run(['status', '--json'], {
    ...environmentOf(db.address),
    CLICKHOUSE_CLUSTER: cluster.name,
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({
    migrations: [],
    data: {
      events: 30,
      open: { rejectedRows: 1, chunksInDoubt: 0, unconfirmedDays: 40 },
      loads: { failed: 0, running: 0 },
    },
  });
});

test('with a shard down status, loads and rejects say what the others know and which one is missing', async () => {
  const env = { ...environmentOf(db.address), CLICKHOUSE_CLUSTER: cluster.name };
  const last = cluster.nodes.at(-1);
  await last?.kill();
  try {
    for (const command of [
      ['status', '--json'],
      ['loads', '--json'],
      ['rejects', '--json'],
    ]) {
      const { code, stdout, stderr } = await run(command, env);
      expect({ command, code }).toEqual({ command, code: 1 });
      expect(stderr).toMatch(/shard 3 \(\S+\) cannot be reached: what is stored there is missing/);
      if (command[0] !== 'status') continue;
      const { events } = JSON.parse(stdout).data;
      expect(events).toBeGreaterThan(0);
      expect(events).toBeLessThan(30);
    }
  } finally {
    await last?.restart();
  }
});
