import { expect, test, vi } from 'vitest';
import { isReport, reportsRunning } from '../http/report-statements.ts';
import { insertLarge } from '../support/accounts.ts';
import { usePast } from '../support/past.ts';
import { useService } from '../support/service.ts';
import { reachedBy, useStatementsBetween } from '../support/statements-between.ts';
import { onEveryShard, useStore } from '../support/store.ts';

const db = useStore();
const between = useStatementsBetween(
  () => db.address.url,
  async (passing) => {
    if (!isReport(passing)) return;
    const query = "INSERT INTO rewrites (month, began_at) VALUES (202601, now64(6, 'UTC'))";
    await db.store.command({ query });
  },
);
const service = useService(reachedBy(between, db));
const past = usePast(db, service);

test('a report as of a moment that is refused when its first rows are there leaves no statement behind', async () => {
  await insertLarge(db.store, ['large']);
  // As if they had come long ago: no day has changed since the moment.
  await onEveryShard(db, 'TRUNCATE TABLE campaigns_date');
  const as_of = await past.now();
  const response = await service.post('/v1/campaigns/breakdowns/device_creative_date', 'large', {
    ...{ start_time: '2026-01-01', end_time: '2026-12-31', as_of },
  });
  expect([response.status, await response.json()]).toMatchObject([409, { code: 'as_of_too_old' }]);
  // Its answer is larger than every buffer on the way: it does not end by itself.
  await vi.waitFor(async () => expect(await reportsRunning(db.store)).toEqual([]), { timeout: 10_000 });
});
