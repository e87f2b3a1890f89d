import { beforeAll, expect, test } from 'vitest';
import { agree, listSchedules, ownOf } from '../../src/schedules/schedules.ts';
import { close } from '../support/closes.ts';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { violations } from './axe.ts';
import { useBrowser } from './browser.ts';
import { choose, daysAgo, holdNext, whole } from './pages.ts';

const db = useStore();
const secret = { LINK_SECRET: 'a secret of more than 32 characters' };
const service = useService(db, { ...secret, ACCOUNT_MAILS: 'on' });
const without = useService(db, secret);
const browser = useBrowser();
beforeAll(() =>
  load(db.store, [
    event({ advertiser_id: 'shop', device: 'mobile', event_time: `${daysAgo(2)}T08:00:00Z` }),
    event({ advertiser_id: 'shop', event_time: '2026-03-05T08:00:00Z' }),
  ]),
);

test('what is seen is scheduled, paused, resumed and removed on the page', async () => {
  const page = await browser.open(`${service.url}/app#token=${await service.token('shop')}`, {
    locale: 'de-DE',
    bypassCSP: true,
  });
  await whole(page);
  await choose(page, 'Gerät');
  await choose(page, 'Woche');
  await page.getByLabel('Vergleichen mit').selectOption('previous_period');
  await whole(page);
  const open = () => page.locator('.mail > summary').click();
  await open();
  await page.getByText('Noch keine.').waitFor();
  await page.getByLabel('Empfänger').fill('anna@example.com, bo@example.com, cy@example.com');
  await page.getByLabel('Wie oft').selectOption('week');
  expect(await page.getByLabel('Für welche Tage').inputValue()).toBe('last_week');
  await page.getByLabel('Uhrzeit').fill('07:45');
  await page.getByRole('button', { name: 'Per E-Mail senden', exact: true }).click();
  const own = page.locator('.schedules li');
  await own.getByText('Kampagnen: Gerät, Woche').waitFor();
  const [stored, ...others] = await listSchedules(db.store);
  expect(others).toEqual([]);
  expect(stored).toMatchObject({
    ...{ account: 'shop', report: 'campaigns/device_date', every: 'week', period: 'last_week', at: '07:45' },
    to: ['anna@example.com', 'bo@example.com', 'cy@example.com'],
    ...{ language: 'de-DE', attach: 'xlsx', state: 'active' },
    body: { compare_to: 'previous_period', metrics: expect.arrayContaining(['spent', 'cpm']) },
  });
  expect(await own.textContent()).toContain('anna@example.com: hat noch nicht zugestimmt');
  expect(await violations(page, '.mail')).toEqual([]);
  await agree(db.store, ownOf('shop'), 'anna@example.com');
  await db.store.command({
    query: `INSERT INTO mails (schedule, day, recipient, attempt, taker, state, at)
            VALUES ({own:String}, '1970-01-01', 'bo@example.com', 1, '', 'refused', now64(3)),
              ({own:String}, '1970-01-01', 'cy@example.com', 1, '', 'unknown', now64(3)),
              ({own:String}, '1970-01-01', 'anna@example.com', 1, '', 'taken', now64(3))`,
    query_params: { own: ownOf('shop') },
  });
  await own.getByRole('button', { name: 'Pausieren' }).click();
  await own.getByText('Pausiert', { exact: true }).waitFor();
  // Whoever pressed a button with a key goes on from there.
  const resume = own.getByRole('button', { name: 'Fortsetzen' });
  expect(await resume.evaluate((button) => button === document.activeElement)).toBe(true);
  expect(await own.textContent()).toContain('anna@example.com: wird gesendet, wenn sie fällig ist');
  await resume.click();
  await own.getByRole('button', { name: 'Pausieren' }).waitFor();
  expect(await own.textContent()).toContain('bo@example.com: die letzte wurde nicht gesendet');
  expect(await own.textContent()).toContain('cy@example.com: niemand weiß, ob die letzte gesendet wurde');
  expect((await listSchedules(db.store))[0]?.state).toBe('active');
  // Whether a sender has died the service tells, whatever the clock of the reader is.
  await db.store.command({
    query: `INSERT INTO mails (schedule, day, recipient, attempt, taker, state, at)
            VALUES ({own:String}, '1970-01-01', 'bo@example.com', 2, '', 'taken', now64(3))`,
    query_params: { own: ownOf('shop') },
  });
  await page.clock.setFixedTime(Date.now() + 7 * 86_400_000);
  await own.getByRole('button', { name: 'Pausieren' }).click();
  await own.getByRole('button', { name: 'Fortsetzen' }).click();
  await own.getByRole('button', { name: 'Pausieren' }).waitFor();
  expect(await own.textContent()).toContain('bo@example.com: hat noch nicht zugestimmt');
  await own.getByRole('button', { name: 'Entfernen' }).click();
  await page.getByText('Noch keine.').waitFor();
  expect(await listSchedules(db.store)).toEqual([]);
  expect(browser.complaints).toEqual([]);
});

test('whoever removes a mail with a key does not remove the next one with a second press', async () => {
  const page = await browser.open(`${service.url}/app#token=${await service.token('shop')}`);
  await whole(page);
  const summary = page.locator('.mail > summary');
  await page.route('**/v1/schedule/list', (route) => route.abort(), { times: 1 });
  await summary.click();
  await page.locator('.mail').getByText('The service cannot be reached').waitFor();
  await summary.click();
  await summary.click();
  await page.getByText('None yet.').waitFor();
  // The list is there: what was said of it before is true no more.
  expect(await page.locator('.mail .said').textContent()).toBe('');
  const removes = page.locator('.schedules').getByRole('button', { name: 'Remove' });
  for (const n of [0, 1]) {
    await page.getByLabel('Recipients').fill(`anna-${n}@example.com`);
    await page.getByRole('button', { name: 'Send by mail', exact: true }).click();
    await removes.nth(n).waitFor();
  }
  await removes.first().press('Enter');
  await removes.nth(1).waitFor({ state: 'detached' });
  expect(await page.locator('.schedules :focus').count()).toBe(0);
  await removes.first().click();
  await removes.first().waitFor({ state: 'detached' });
});

test('a report as its month was closed is sent with the figures of the day of sending, because days that are due are not closed', async () => {
  await close(db.store, '2026-03', 'shop');
  const page = await browser.open(
    `${service.url}/app#token=${await service.token('shop')}&report=campaigns&days=2026-03-01/2026-03-31&figures=closed`,
  );
  await whole(page);
  // What was asked first may be answered last.
  const release = await holdNext(page, '**/v1/schedule/list', () => page.locator('.mail > summary').click());
  await page.getByLabel('Recipients').fill('anna@example.com');
  await page.getByRole('button', { name: 'Send by mail', exact: true }).click();
  await page.locator('.schedules li strong').waitFor();
  const [stored] = await listSchedules(db.store);
  expect(stored?.body).not.toHaveProperty('as_of');
  expect(stored?.body).toHaveProperty('metrics');
  await release();
  expect(await page.locator('.schedules li strong').count()).toBe(1);
});

test('a service whose operator has not allowed it says nothing of mails', async () => {
  const page = await browser.open(`${without.url}/app#token=${await without.token('shop')}`);
  await whole(page);
  expect(await page.locator('.mail').count()).toBe(0);
});
