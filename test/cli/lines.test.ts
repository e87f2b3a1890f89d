import { expect, test } from 'vitest';
import { rollupTable } from '../../catalog/breakdowns.ts';
import { createToken, listTokens } from '../../src/accounts/tokens.ts';
import { event, load } from '../support/events.ts';
import { useLoader } from '../support/loader.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const { run } = useLoader(db);

test('a label or an account cannot pass for another line, column or colour of the list', async () => {
  const account = 'a\tb\r\nc\u2028d';
  await createToken(db.store, { account, label: 'x\ny\u001b[31m' });
  const { stdout } = await run(['token', 'list']);
  const [token] = await listTokens(db.store);
  expect(stdout).toBe(
    `${token?.id}\ta\\u0009b\\u000d\\u000ac\\u2028d\tx\\u000ay\\u001b[31m\t${token?.created}\t-\t-\t-\treport\n`,
  );
});

test('the account of a close, or of a difference, is told in one line, too', async () => {
  await load(db.store, [event({ advertiser_id: 'a\nb' })]);
  const { stderr } = await run(['close', '--all', '2026-03']);
  expect(stderr).toContain('closed a\\u000ab 2026-03: 1 row, not signed\n');
  await db.store.command({
    query: `ALTER TABLE ${rollupTable('campaigns', [])} DELETE WHERE true`,
    clickhouse_settings: { mutations_sync: '2' },
  });
  expect((await run(['verify'])).stdout).toMatch(/^\w+\ta\\u000ab\t2026-03-01\t/);
});
