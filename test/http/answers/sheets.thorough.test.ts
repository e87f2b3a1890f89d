import { expect, test } from 'vitest';
import { maxRows } from '../../../src/report/sheet.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);

test('a report with one row more than a sheet holds is refused before its first byte, and told the way out', async () => {
  await db.store.command({
    query: `INSERT INTO ad_units_site_date (account_id, day, ad_unit_id, site_id, impressions)
            SELECT 'large', '2026-03-01', 'unit', leftPad(toString(number), 7, '0'), 1 FROM numbers(${maxRows + 1})`,
  });
  const path = '/v1/ad_units/breakdowns/site_date';
  const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
  const accept = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';
  const refused = await service.post(path, 'large', march, { accept });
  expect(refused.status).toBe(406);
  const detail = expect.stringMatching(/1048574 rows.* 1048575.*CSV/);
  expect(JSON.parse(await refused.text())).toMatchObject({ code: 'not_acceptable', detail });
  const narrowed = await service.post(path, 'large', { ...march, limit: maxRows }, { accept });
  expect([narrowed.status, narrowed.headers.get('adtally-row-count')]).toEqual([200, `${maxRows + 1}`]);
  await narrowed.body?.cancel();
});
