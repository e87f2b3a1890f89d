import { beforeAll, expect, test } from 'vitest';
import { event, load, loadRows } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { violations } from './axe.ts';
import { useBrowser } from './browser.ts';
import { daysAgo, tabTo, visibleRows, whole } from './pages.ts';

const db = useStore();
const service = useService(db, { BRAND_COLOR: '#ff6600', BRAND_NAME: 'Fjord' });
const browser = useBrowser();
const arabic = 'أحذية الشتاء';
const long = `${'Größe '.repeat(170)}Ende`;

beforeAll(async () => {
  await load(
    db.store,
    ['a', 'b', 'c'].flatMap((campaign_id, n) =>
      Array.from({ length: 40 }, (_, day) =>
        event({
          event_id: `${campaign_id}-${day}`,
          event_time: `${daysAgo(day + 1)}T10:00:00Z`,
          advertiser_id: 'acme',
          publisher_id: 'acme',
          campaign_id,
          spend: `${n + 1}.5`,
        }),
      ),
    ),
  );
  await loadRows(db.store, 'campaigns', [
    ['acme', 'a', arabic],
    ['acme', 'b', long],
  ]);
});

const open = async (hash: string, options = {}) => {
  const page = await browser.open(`${service.url}/app#token=${await service.token('acme')}${hash}`, {
    bypassCSP: true,
    ...options,
  });
  await whole(page);
  return page;
};

test('the door has nothing that axe finds', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.open(`${service.url}/app`, { bypassCSP: true, colorScheme });
    await page.getByLabel('Login token').waitFor();
    expect(await violations(page)).toEqual([]);
  }
});

test('nor has the documentation, in the colour of the network', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.open(`${service.url}/docs`, { bypassCSP: true, colorScheme });
    expect(await violations(page)).toEqual([]);
  }
});

test('nor has the report with every menu open, compared and filtered, in light and dark', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await open('&compare=previous_period&by=device&only.device=unknown&only.campaign=c', {
      colorScheme,
    });
    await page.locator('.as-table summary').click();
    expect(await violations(page)).toEqual([]);
    for (const menu of ['.range', '.filter', '.columns', '.take']) {
      await page.locator(`${menu} > summary`).click();
      expect(await violations(page, menu), menu).toEqual([]);
    }
  }
});

test('nor what changed most in a campaign, nor where a figure comes from, asked with the keyboard', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const own = `${daysAgo(40)}/${daysAgo(13)}`;
    const page = await open(`&only.campaign=c&compare=${own}`, { colorScheme });
    await page.getByRole('button', { name: 'What changed most' }).click();
    await page.locator('.bars.changes').waitFor();
    await tabTo(page, 'regular-table');
    const press = (key: string) => page.keyboard.press(key);
    const row = (number: number) => page.locator(`tbody tr[aria-rowindex="${number}"] :focus`);
    await press('End');
    await row(28 + 2).waitFor();
    await press('Home');
    await row(3).waitFor();
    for (const key of ['ArrowRight', 'ArrowRight', 'ArrowDown']) await press(key);
    await row(4).waitFor();
    expect(await violations(page)).toEqual([]);
    await press('Enter');
    const panel = page.getByRole('dialog');
    await panel.getByRole('table').waitFor();
    expect(await panel.textContent()).toContain('3.5');
    expect(await violations(page, '.explained')).toEqual([]);
    await press('Escape');
    await panel.waitFor({ state: 'hidden' });
    await row(4).waitFor();
    await press('ArrowLeft');
    await page.locator('tbody th:focus').waitFor();
  }
});

test('nor the largest values on a phone, nor a report without rows', async () => {
  const phone = await open('&each=total', { viewport: { width: 390, height: 800 }, colorScheme: 'dark' });
  await phone.locator('.bars').waitFor();
  expect(await violations(phone)).toEqual([]);
  const scrolls = () => document.documentElement.scrollWidth > document.documentElement.clientWidth;
  expect(await phone.evaluate(scrolls)).toBe(false);
  const empty = await open('&days=2001-01-01/2001-01-02');
  await empty.getByText('No rows').waitFor();
  expect(await violations(empty)).toEqual([]);
});

test('names of 1,024 characters and from right to left keep to their cells', async () => {
  const page = await open('&each=total');
  const names = new Set((await visibleRows(page)).map(({ Campaign }) => Campaign));
  expect(names).toContain(long);
  const widest = await page.evaluate(() =>
    Math.max(
      ...[...document.querySelectorAll('regular-table tbody tr > *')].map(
        (cell) => cell.getBoundingClientRect().width,
      ),
    ),
  );
  expect(widest).toBeLessThan(600);
  const counted = await page.locator('regular-table table').getAttribute('aria-rowcount');
  expect(counted).toBe(String(3 + 2));
});
