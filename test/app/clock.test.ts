import { beforeAll, expect, test } from 'vitest';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';
import { daysAgo, whole } from './pages.ts';

const db = useStore('Pacific/Apia');
// Before the service, which asks for the last load when it starts, and then only every two seconds.
const loading = { from: 0, until: 0 };
beforeAll(async () => {
  loading.from = Date.now();
  await load(db.store, [event({ event_time: `${daysAgo(3)}T08:00:00Z`, advertiser_id: 'acme' })]);
  loading.until = Date.now();
});
const service = useService(db);
const browser = useBrowser();

test('moments are those of one clock, that of the report, wherever the reader is', async () => {
  const format = new Intl.DateTimeFormat('en-GB', {
    ...({ dateStyle: 'medium', timeStyle: 'short' } as const),
    timeZone: 'Pacific/Apia',
  });
  const { from, until } = loading;
  const minutes = Math.ceil((until - from) / 60_000) + 1;
  const loaded = Array.from({ length: minutes }, (_, n) => `${format.format(from + n * 60_000)} +13`);
  const page = await browser.open(`${service.url}/app#token=${await service.token('acme')}`, {
    timezoneId: 'America/Los_Angeles',
  });
  await whole(page);
  const said = page.locator('.fresh span', { hasText: 'loaded' });
  await said.waitFor();
  expect(loaded.map((when) => `loaded ${when}`)).toContain(await said.textContent());
  expect(await page.locator('.fresh span', { hasText: 'asked' }).textContent()).toMatch(/ \+13$/);
  await page.locator('regular-table tbody td.number').first().click();
  const part = page.getByRole('dialog', { name: 'Where does this come from?' }).locator('tbody tr');
  await part.waitFor();
  expect(loaded).toContain(await part.locator('td').nth(2).textContent());
  expect(browser.complaints).toEqual([]);
});
