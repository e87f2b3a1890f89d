import { afterAll, beforeAll, expect, it } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { planReport } from '../../src/report/plan.ts';
import { ReportSizes } from '../../src/report/report-sizes.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
let reader: Reader;
afterAll(() => reader.close());
beforeAll(async () => {
  reader = new Reader(db.address, 60_000);
  // 4,000 rows a day, in the middle of those of other accounts and in many parts.
  for (let part = 0; part < 4; part++) {
    await db.store.command({
      query: `INSERT INTO campaigns_device_creative_date (account_id, day, campaign_id, device, creative_id, impressions)
              SELECT arrayJoin(['an', 'account', 'zero']), toDate('2026-01-01') + intDiv(number, 1000), 'campaign', 'mobile',
                     concat('${part}-', toString(number)), 1
              FROM numbers(60000)`,
    });
  }
});

const plan = (account: string, day: boolean, end: string) =>
  planReport({ family: 'campaigns', dimensions: ['device', 'creative'], day }, account, {
    start: '2026-01-01',
    end,
  });

it.each([
  [true, '2026-01-05', true],
  [true, '2026-01-06', false],
  [true, '9999-12-31', false],
  // Rows that are only added up weigh less.
  [false, '2026-01-25', true],
  [false, '2026-01-26', false],
])('counts the rows a report has to read, with days %s until %s', async (day, end, small) => {
  expect(await new ReportSizes(reader).isSmall(plan('account', day, end))).toBe(small);
  expect(await new ReportSizes(reader).isSmall(plan('nobody', day, end))).toBe(true);
});

it('asks the store once for the same report, and again for another', async () => {
  const sizes = new ReportSizes(reader);
  for (let n = 0; n < 50; n++) await sizes.isSmall(plan('once', true, '2026-01-05'));
  await sizes.isSmall(plan('once', true, '2026-01-06'));
  await db.store.command({ query: 'SYSTEM FLUSH LOGS' });
  expect(
    await select(
      db.store,
      `SELECT toUInt32(count()) AS queries FROM system.query_log
       WHERE current_database = currentDatabase() AND type = 'QueryStart' AND position(query, ' AS small FROM') > 0
         AND position(query, 'once') > 0 AND position(query, 'query_log') = 0`,
    ),
  ).toEqual([{ queries: 2 }]);
});
