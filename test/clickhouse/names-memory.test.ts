import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { useStore } from '../support/store.ts';

const db = useStore();

test('a name takes no more memory than docs/scaling.md plans for', async () => {
  await db.store.command({
    query: `INSERT INTO campaigns (account_id, campaign_id, name)
      SELECT concat('account-', toString(number % 500)), concat('campaign-', toString(number)), concat('Summer sale ', toString(number), ' prospecting')
      FROM numbers(200000)`,
  });
  await db.store.command({ query: 'SYSTEM RELOAD DICTIONARY campaign_names' });
  const [row] = await select<{ bytes: number }>(
    db.store,
    `SELECT toFloat64(bytes_allocated / element_count) AS bytes FROM system.dictionaries
     WHERE database = currentDatabase() AND name = 'campaign_names'`,
  );
  expect(row?.bytes).toBeLessThan(250);
});
