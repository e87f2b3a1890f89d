import { expect, test, vi } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { close, march, useCloses } from '../support/closes.ts';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const closes = useCloses(db, useService(db));
const account = 'busy';
const events = (count: number, campaign_id: string) =>
  Array.from({ length: count }, () => event({ advertiser_id: account, campaign_id }));

/** Waits until a load is listed that this is true of. */
const listed = (condition: string) =>
  vi.waitFor(
    async () => {
      const query = `SELECT count() > 0 AS there FROM loads AS l WHERE ${condition}`;
      expect(await select(db.store, query)).toEqual([{ there: 1 }]);
    },
    { timeout: 60_000, interval: 20 },
  );

test('a close has all of a load that was under way, and nothing of one that began meanwhile', async () => {
  // Some fifteen chunks.
  const before = load(db.store, events(600, 'before'), 10_000);
  await listed("kind = 'events' AND rows > 0");
  const closing = close(db.store, '2026-03', account);
  await listed("kind = 'rebuild'");
  const meanwhile = load(db.store, events(3, 'meanwhile'));
  await Promise.all([before, closing, meanwhile]);

  const asked = (body: object) => closes.ask('/v1/campaigns', account, { ...march, ...body });
  const closed = await asked({ as_of: 'closed' });
  expect(closed).toContain('"impressions":600');
  expect(closed).not.toContain('meanwhile');
  expect(await asked({})).toContain('"impressions":3');
  expect(await closes.verified()).toEqual([]);
});
