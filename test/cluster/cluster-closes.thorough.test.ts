import { expect, test } from 'vitest';
import { manifestText } from '../../src/close/closes.ts';
import { checkManifest } from '../../src/close/manifest.ts';
import { close, march, useCloses } from '../support/closes.ts';
import { useCluster } from '../support/cluster.ts';
import { load } from '../support/events.ts';
import { testSeed as seed } from '../support/random.ts';
import { randomEvents } from '../support/random-events.ts';
import { useService } from '../support/service.ts';
import { useClusterStore, useStore } from '../support/store.ts';

const spread = useClusterStore(useCluster(3));
const single = useStore();
const service = useService(spread);
const onShards = useCloses(spread, service);
const onOne = useCloses(single, useService(single));
const accounts = ['both', 'both-2'];

test(`a close on three shards is that of a single node, with a manifest that fits (seed ${seed})`, async () => {
  const events = randomEvents(seed, 1500);
  for (const { store } of [spread, single]) {
    await load(store, events, 40_000);
    await close(store, '2026-03', undefined, { anyway: true });
  }
  for (const account of accounts) {
    const [closed] = await onShards.of(account);
    const [other] = await onOne.of(account);
    if (!closed) throw new Error(`${account} is not closed`);
    expect(closed.rows).toBeGreaterThan(10);
    expect([closed.revision, closed.rows]).toEqual([other?.revision, other?.rows]);
    const text = Buffer.from(await onShards.textOf(closed));
    const manifest = Buffer.from((await manifestText(spread.store, { revision: closed.revision })) ?? '');
    const rows = async function* () {
      yield text;
    };
    expect(await checkManifest(rows(), manifest)).toMatchObject({ rows: closed.rows });
  }
  const asked = (account: string, body: object = {}) =>
    onShards.ask('/v1/ad_units/breakdowns/device_site_date', account, { ...march, ...body });
  const then = await Promise.all(accounts.map((account) => asked(account)));
  await load(spread.store, randomEvents(seed + 1, 300), 40_000);
  for (const [n, account] of accounts.entries()) {
    expect(await asked(account, { as_of: 'closed' })).toBe(then[n]);
    expect(await asked(account)).not.toBe(then[n]);
  }
  expect(await onShards.verified()).toEqual([]);
});
