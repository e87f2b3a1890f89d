import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { type EventLine, event, load, loadRows } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';
import { daysAgo, totalsRow, visibleRows, whole } from './pages.ts';

const db = useStore();
const service = useService(db);
const browser = useBrowser();
const addressOf = async (account: string, state = '') =>
  `${service.url}/app#token=${await service.token(account)}${state}`;

/** The page of an address, with its report. */
async function opened(address: string): Promise<Page> {
  const page = await browser.open(address);
  await whole(page);
  return page;
}

/** An event that costs something, of two days ago. */
const paid = (advertiser_id: string, fields: Partial<EventLine>) =>
  event({ event_time: `${daysAgo(2)}T08:00:00Z`, advertiser_id, spend: '3', ...fields });

beforeAll(async () => {
  const plain = ['boots', 'tents'].flatMap((campaign_id) =>
    [2, 3, 4].map((day) =>
      event({ event_time: `${daysAgo(day)}T08:00:00Z`, advertiser_id: 'plain', campaign_id }),
    ),
  );
  await load(db.store, plain);
  await load(
    db.store,
    ['one', 'two', 'evil'].map((campaign_id) =>
      paid('alike', {
        event_id: campaign_id,
        event_type: campaign_id === 'two' ? 'conversion' : 'impression',
        campaign_id,
      }),
    ),
  );
  await loadRows(db.store, 'campaigns', [
    ['alike', 'one', 'Same name'],
    ['alike', 'two', 'Same name'],
    ['alike', 'evil', '\u202eevil'],
  ]);
  await load(
    db.store,
    ['cr-1', 'cr-2', 'cr-3'].map((creative_id) => paid('headed', { campaign_id: 'boots', creative_id })),
  );
  await loadRows(db.store, 'creatives', [
    ['headed', 'cr-1', 'Same headline'],
    ['headed', 'cr-2', 'Same headline'],
    ['headed', 'cr-3', 'Another'],
  ]);
});

test('campaigns of one name are told apart by their ids, on the page and in its files; other names need none', async () => {
  expect(Object.keys(await totalsRow(await opened(await addressOf('plain'))))).not.toContain('Campaign id');
  const page = await opened(await addressOf('alike'));
  const rows = await visibleRows(page);
  expect(rows.map((row) => row['Campaign id']).sort()).toEqual(['evil', 'one', 'two']);
  const bars = await opened(await addressOf('alike', '&each=total'));
  const labels = await bars.locator('.bars .label').allTextContents();
  expect(labels.sort()).toEqual(['one · Same name', 'two · Same name', '\u202eevil']);
  await page.locator('.take summary').click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV', exact: true }).click(),
  ]);
  const [head = ''] = (await readFile(await download.path(), 'utf8')).split('\n');
  expect(head).toContain('"campaign","campaign_id"');
});

test('bars of creatives of one headline begin with their ids, and leave out the ids that the table leaves out', async () => {
  const page = await opened(await addressOf('headed', '&by=creative&each=total'));
  const labels = await page.locator('.bars .label').allTextContents();
  expect(labels.sort()).toEqual([
    'boots · Another',
    'cr-1 · boots · Same headline',
    'cr-2 · boots · Same headline',
  ]);
});

test('what has no conversion has no CPA, and comes last where that is sorted', async () => {
  const page = await opened(await addressOf('alike', '&sort=cpa'));
  const ids = async () => (await visibleRows(page)).map((row) => row['Campaign id']);
  expect((await ids())[0]).toBe('two');
  await page.getByRole('button', { name: 'CPA', exact: true }).click();
  await whole(page);
  await page.getByRole('button', { name: 'CPA', exact: true }).click();
  await whole(page);
  expect((await ids())[0]).toBe('two');
});

test('a name that turns the direction of writing turns nothing beside it', async () => {
  const page = await opened(await addressOf('alike', '&by=device&each=total'));
  const places = await page.evaluate(() => {
    const label = [...document.querySelectorAll('.bars .label')].find(({ textContent }) =>
      textContent?.includes('evil'),
    );
    const at = (node: Node | null | undefined) => {
      const range = document.createRange();
      if (node) range.selectNodeContents(node);
      return range.getBoundingClientRect().left;
    };
    const [name, device] = label?.querySelectorAll('bdi') ?? [];
    const text = device?.firstChild;
    const first = document.createRange();
    const last = document.createRange();
    if (text?.textContent) {
      first.setStart(text, 0);
      first.setEnd(text, 1);
      last.setStart(text, text.textContent.length - 1);
      last.setEnd(text, text.textContent.length);
    }
    return [at(name), first.getBoundingClientRect().left, last.getBoundingClientRect().left];
  });
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(new Set(places).size).toBe(3);
});

test('what the address has and the page does not know is told; both periods of a comparison are named', async () => {
  const page = await opened(
    await addressOf(
      'plain',
      '&compare=previous_year&days=2028-01-01/2028-12-31&filter.campaign=boots&eahc=week',
    ),
  );
  const told = page.locator('.unread');
  expect(await told.textContent()).toContain('filter.campaign=boots, eahc=week');
  const days = async (where: string) =>
    (await page.locator(where).first().textContent())?.replace(/\s/g, ' ');
  expect(await days('.range .dates')).toBe('1 Jan – 31 Dec 2028');
  expect(await days('.compare output')).toBe('1 Jan – 31 Dec 2027');
  await page.getByLabel('Compare with').selectOption('none');
  await whole(page);
  expect(await told.isHidden()).toBe(true);
});

test('a file that holds more than Find shows says so before the click', async () => {
  const page = await opened(await addressOf('plain'));
  const warning = page.locator('.take .warning');
  await page.locator('.take summary').click();
  expect(await warning.isHidden()).toBe(true);
  await page.keyboard.press('Escape');
  await page.getByPlaceholder('Find').fill('boots');
  await page.getByRole('heading', { name: '3 of 6 rows' }).waitFor();
  await page.locator('.take summary').click();
  await page.getByText('all 6 rows, not only the 3').waitFor();
});

test('a click on a figure shows the loads that it is the sum of, as the service tells them', async () => {
  const page = await opened(await addressOf('plain'));
  await page.locator('regular-table tbody td.number').first().click();
  const dialog = page.getByRole('dialog', { name: 'Where does this come from?' });
  const parts = dialog.locator('tbody tr');
  await parts.first().waitFor();
  expect(await parts.count()).toBe(1);
  // There is nothing to say beside the table, and no gap for it.
  expect(await dialog.getByRole('status').count()).toBe(0);
  const body = { start_time: daysAgo(60), end_time: daysAgo(0), row: { campaign_id: 'boots' } };
  const { result } = (await (await service.post('/v1/campaigns/explain', 'plain', body)).json()) as {
    result: { parts: { load: string }[] };
  };
  expect(await parts.first().textContent()).toContain(result.parts[0]?.load);
  expect(await dialog.locator('tfoot').textContent()).toMatch(/^Total[13]/);
  await page.keyboard.press('Escape');
  await expect.poll(() => dialog.isVisible()).toBe(false);

  // It is the row that was seen, also where all are being ordered.
  const [first] = await visibleRows(page);
  await page.evaluate(() => {
    document.querySelector<HTMLElement>('button.head[data-column=start_time]')?.click();
    document.querySelector<HTMLElement>('regular-table tbody td.number')?.click();
  });
  await parts.first().waitFor();
  expect(await dialog.locator('p').first().textContent()).toContain(first?.Day);
  await page.keyboard.press('Escape');
  await whole(page);
  expect((await visibleRows(page))[0]?.Day).not.toBe(first?.Day);
});
