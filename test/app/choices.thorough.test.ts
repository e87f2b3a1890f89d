import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { event, load, loadRows } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { violations } from './axe.ts';
import { useBrowser } from './browser.ts';
import { choose, daysAgo, plain, tabTo, totalsRow, visibleRows, whole } from './pages.ts';

const db = useStore();
const browser = useBrowser();
const account = 'acme';
const names = ['Äpfel', 'Zelte', 'öl', 'Boots 10', 'boots 9'];
/** A page of a network, which shows the one that it is asked for in a frame. */
const panel = createServer((request, response) => {
  const address = new URL(request.url ?? '', 'http://panel').searchParams.get('page') ?? '';
  response.setHeader('content-type', 'text/html');
  response.end(
    `<!doctype html><title>Panel</title><iframe src="${address}" width="1200" height="800"></iframe>`,
  );
}).listen(0, '127.0.0.1');
await once(panel, 'listening');
const panelUrl = `http://127.0.0.1:${(panel.address() as AddressInfo).port}`;
const service = useService(db);
const framed = useService(db, { FRAME_ANCESTORS: panelUrl });
afterAll(() => panel.close());

beforeAll(async () => {
  const events = names.flatMap((_, n) =>
    Array.from({ length: 70 }, (_, day) =>
      event({
        event_id: `${n}-${day}`,
        event_time: `${daysAgo(day + 1)}T10:00:00Z`,
        advertiser_id: account,
        publisher_id: account,
        campaign_id: `c${n}`,
        ad_unit_id: 'unit',
        site_id: `site-${n % 2}`,
        quantity: 1000 + n,
        spend: `${n + 1}234.5`,
        revenue: '0.5',
      }),
    ),
  );
  await load(db.store, events);
  await loadRows(
    db.store,
    'campaigns',
    names.map((name, n) => [account, `c${n}`, name]),
  );
});

const open = async (state = '', options = {}) => {
  const page = await browser.open(
    `${service.url}/app#token=${await service.token(account)}${state}`,
    options,
  );
  await whole(page);
  return page;
};

test('a range of days is typed, and one that ends before it begins is told', async () => {
  const page = await open();
  await tabTo(page, '.range summary');
  await page.keyboard.press('Enter');
  await tabTo(page, '#first-day');
  // Month, day, year: as a browser in American English asks for them.
  const typed = (day: string) => day.slice(5).replace('-', '') + day.slice(0, 4);
  await page.keyboard.type(typed(daysAgo(3)));
  await tabTo(page, '#last-day');
  await page.keyboard.type(typed(daysAgo(9)));
  await page.keyboard.press('Enter');
  await page.getByText('The first day is after the last.').waitFor();
  await tabTo(page, '.preset', 'Shift+Tab');
  await tabTo(page, '#first-day');
  await page.keyboard.type(typed(daysAgo(9)));
  await tabTo(page, '#last-day');
  await page.keyboard.type(typed(daysAgo(3)));
  await page.keyboard.press('Enter');
  await whole(page);
  expect(new URL(page.url()).hash).toContain(`days=${encodeURIComponent(`${daysAgo(9)}/${daysAgo(3)}`)}`);
  await page.getByText(`${7 * names.length} rows`, { exact: true }).waitFor();
  expect(browser.complaints).toEqual([]);
});

test('texts are sorted as people read them, both ways', async () => {
  const page = await open('&each=total');
  const campaigns = async () => (await visibleRows(page)).map(({ Campaign }) => Campaign);
  const sorted = [...names].sort(new Intl.Collator('en-GB', { numeric: true }).compare);
  const head = page.locator('button.head[data-column=campaign]');
  await head.click();
  await whole(page);
  const first = await campaigns();
  await head.click();
  await whole(page);
  expect([first, await campaigns()]).toEqual(
    first[0] === sorted[0] ? [sorted, sorted.toReversed()] : [sorted.toReversed(), sorted],
  );
});

test('numbers are written as the reader of another country does', async () => {
  const page = await open('&each=total', { locale: 'de-DE' });
  const [row] = await visibleRows(page);
  expect(row?.Impressionen).toMatch(/^2\d\.\d{3}$/);
  const german = new Intl.NumberFormat('de-DE', { minimumFractionDigits: 2 });
  const spent = names.reduce((sum, _, n) => sum + 28 * Number(`${n + 1}234.5`), 0);
  expect((await totalsRow(page)).Ausgaben).toBe(german.format(spent));
});

test('ad units by site, for each month and each week: the sums are those of the days', async () => {
  const page = await open('&report=ad_units&days=last_90_days');
  const total = async () => plain((await totalsRow(page)).Revenue ?? '');
  const days = await total();
  expect(Number(days)).toBe(70 * names.length * 0.5);
  await choose(page, 'Site');
  await whole(page);
  expect(new Set((await visibleRows(page)).map(({ Site }) => Site))).toEqual(new Set(['site-0', 'site-1']));
  for (const grain of ['Month', 'Week'] as const) {
    await choose(page, grain);
    await whole(page);
    expect(await total()).toBe(days);
    const rows = await visibleRows(page);
    expect(Object.keys(rows[0] ?? {})).toContain('From');
    expect(rows.length).toBeGreaterThanOrEqual(2 * 3);
  }
  expect(browser.complaints).toEqual([]);
});

test('the page is shown in a frame of the network that may, and of no other', async () => {
  const address = (of: typeof service, token: string) =>
    `${panelUrl}/?page=${encodeURIComponent(`${of.url}/app#token=${token}`)}`;
  const page = await browser.open(address(framed, await framed.token(account)));
  const frame = page.frameLocator('iframe');
  await frame.locator('main.bench[aria-busy=false]').waitFor();
  await frame.getByText(`${28 * names.length} rows`, { exact: true }).waitFor();
  await frame.locator('.segments label', { hasText: /^Device$/ }).click();
  await frame.locator('button.head[data-column=device]').waitFor();
  expect(browser.complaints).toEqual([]);

  const refused = await browser.open(address(service, await service.token(account)));
  await expect.poll(() => browser.complaints.join()).toContain('frame-ancestors');
  expect(await refused.frameLocator('iframe').getByText('rows', { exact: false }).count()).toBe(0);
});

test('axe finds nothing in the states that a person comes through', async () => {
  for (const state of [
    '&each=month&compare=previous_year&days=this_quarter',
    '&report=ad_units&by=device,site&each=week',
    '&find=nowhere',
    '&each=total&by=device&compare=previous_period&sort=-spent',
    '&only.campaign=nowhere',
  ]) {
    const page = await open(state, { bypassCSP: true });
    expect(await violations(page), state).toEqual([]);
    await page.context().close();
  }
  const out = await open('', { bypassCSP: true });
  await out.getByRole('button', { name: 'Sign out' }).click();
  await out.getByText('You are signed out').waitFor();
  expect(await violations(out)).toEqual([]);
});
