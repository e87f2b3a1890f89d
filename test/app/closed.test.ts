import { beforeAll, expect, test } from 'vitest';
import { close } from '../support/closes.ts';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';
import { choose, totalsRow, whole } from './pages.ts';

const db = useStore();
const service = useService(db);
const browser = useBrowser();
const account = 'acme';
const march = 'days=2026-03-01/2026-03-31';
const of = (fields: object) =>
  event({ advertiser_id: account, event_time: '2026-03-05T08:00:00Z', ...fields });

beforeAll(async () => {
  await load(db.store, [
    of({ spend: '2.5', confirmed: true }),
    of({ campaign_id: 'b', spend: '1', confirmed: true }),
  ]);
  await close(db.store, '2026-03', account);
  await load(db.store, [of({ spend: '-0.25', confirmed: true, reason: 'invalid traffic' })]);
});

const open = async (state: string) =>
  browser.open(`${service.url}/app#token=${await service.token(account)}&report=campaigns&${state}`);

test('a closed month is shown as of today or as it was closed, and what changed since is listed', async () => {
  const page = await open(march);
  await whole(page);
  const spent = async () => (await totalsRow(page)).Spent;
  const figures = page.getByLabel('Figures');
  await figures.waitFor();
  expect([await figures.inputValue(), await spent()]).toEqual(['today', '3.25']);

  await figures.selectOption('As closed');
  await whole(page);
  expect(await spent()).toBe('3.50');
  expect(new URL(page.url()).hash).toContain('figures=closed');
  expect(await page.locator('.closed output').textContent()).toMatch(/^closed \d/);
  // On paper, too, whichever way the browser prints.
  expect(await page.locator('.fresh').textContent()).toContain('As closed');
  await page.evaluate(() => {
    window.print = () => document.body.setAttribute('data-printed', 'yes');
  });
  await page.keyboard.press('Control+p');
  await page.locator('body[data-printed]').waitFor();
  expect(await page.locator('table.printed caption').textContent()).toContain('2026 · As closed · ');
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  // The loads behind a figure are those of today.
  await page.locator('regular-table tbody td.number').first().click();
  expect(await page.locator('dialog[open]').count()).toBe(0);

  await page.getByRole('button', { name: 'What changed since' }).click();
  const dialog = page.getByRole('dialog', { name: 'What changed after the month was closed' });
  const cells = (line: string) => dialog.locator(`${line} :is(td, th)`).allTextContents();
  await dialog.locator('tbody tr').waitFor();
  expect(await cells('tbody tr')).toEqual([
    '5 Mar 2026',
    'campaign',
    'campaign',
    'unknown',
    '',
    '',
    expect.stringMatching(/\d:\d/),
    'Loaded',
    expect.stringMatching(/^\d{14}-/),
    'invalid traffic',
    '+1',
    '0',
    '0',
    '-0.25',
  ]);
  expect((await cells('tfoot tr')).at(-1)).toBe('-0.25');
  await dialog.getByRole('button', { name: 'Close' }).click();

  await page.goBack();
  await expect.poll(() => figures.inputValue()).toBe('today');
  await whole(page);
  expect(await spent()).toBe('3.25');
});

test('a range that is not closed offers today alone, and says why there is nothing else', async () => {
  const page = await open('days=2026-03-01/2026-04-30');
  await page.waitForFunction(() =>
    performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/closes')),
  );
  expect(await page.getByLabel('Figures').isVisible()).toBe(false);
  const other = await open('days=2026-03-01/2026-04-30&figures=closed');
  await other.getByText('2026-04 is not closed').waitFor();
  await other.getByLabel('Figures').selectOption('As of today');
  await whole(other);
  expect((await totalsRow(other)).Spent).toBe('3.25');
});

test('with figures as closed, a month that is not closed has nothing of the one that was seen before', async () => {
  const page = await open(`${march}&figures=closed`);
  await whole(page);
  const changes = page.getByRole('button', { name: 'What changed since' });
  await changes.waitFor();
  const hash = new URL(page.url()).hash;
  await page.evaluate(
    (to) => {
      location.hash = to;
    },
    hash.replace('2026-03-31', '2026-04-30'),
  );
  await page.getByText('2026-04 is not closed').waitFor();
  expect(await changes.isVisible()).toBe(false);
  expect(await page.locator('.closed output').textContent()).toBe('');
  expect(await page.getByLabel('Figures').inputValue()).toBe('closed');
  // What was known comes back with its month.
  await page.goBack();
  await changes.waitFor();
  expect(await page.locator('.closed output').textContent()).toMatch(/^closed \d/);
});

test('a service that did not say what is closed is asked again with the next report', async () => {
  const page = await open(march);
  await whole(page);
  const figures = page.getByLabel('Figures');
  await figures.waitFor();
  const days = async (to: string) => {
    await page.evaluate(
      (hash) => {
        location.hash = hash;
      },
      new URL(page.url()).hash.replace(/days=[^&]*/, `days=${to}`),
    );
    await whole(page);
  };
  let failed = 0;
  await page.route('**/closes', (route) => {
    failed++;
    return route.abort();
  });
  await days('2026-03-02/2026-03-31');
  await expect.poll(() => failed).toBe(1);
  await expect.poll(() => figures.isVisible()).toBe(false);
  await page.unroute('**/closes');
  await choose(page, 'Week');
  await figures.waitFor();
});
