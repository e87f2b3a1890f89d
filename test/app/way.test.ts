import { readFile } from 'node:fs/promises';
import { parse } from 'csv-parse/sync';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import type { Download, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { event, load, loadRows } from '../support/events.ts';
import { startProcess } from '../support/process.ts';
import { readers } from '../support/readers.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';
import {
  choose,
  daysAgo,
  holdNext,
  jumps,
  plain,
  shownDay,
  tabTo,
  totalsRow,
  visibleRows,
  whole,
} from './pages.ts';

const db = useStore();
const service = useService(db, { LINK_SECRET: 'a secret of more than 32 characters' });
const browser = useBrowser();
const account = 'acme';
const campaigns = ['boots', 'tents', 'socks'];
beforeAll(async () => {
  const events = campaigns.flatMap((campaign_id, c) =>
    ['mobile', 'desktop']
      .flatMap((device, d) =>
        Array.from({ length: 60 }, (_, day) =>
          (['impression', 'referral', 'conversion'] as const).map((event_type, t) =>
            event({
              event_id: `${c}-${d}-${day}-${t}`,
              event_time: `${daysAgo(day + 1)}T08:00:00Z`,
              event_type,
              advertiser_id: account,
              campaign_id,
              device,
              quantity: t === 0 ? 900 + ((c * 7 + d * 5 + day * 3) % 97) : 3 + ((day + c + t) % 5),
              spend:
                t === 0
                  ? `${(c + 1) * 2 + d}.${String((day * 7919 + c * 31) % 1_000_000).padStart(6, '0')}`
                  : '0',
            }),
          ),
        ),
      )
      .flat(),
  );
  await load(db.store, events);
  await loadRows(db.store, 'campaigns', [
    [account, 'boots', 'Winter Boots'],
    [account, 'tents', 'Family Tents'],
  ]);
  const confirmed = Array.from({ length: 50 }, (_, n) => [account, daysAgo(n + 8)]);
  await loadRows(db.store, 'confirmations', confirmed);
});

const asked = {
  start_time: daysAgo(28),
  end_time: daysAgo(1),
  filters: { campaign: ['Family Tents', 'Winter Boots'] },
  compare_to: 'previous_period',
  totals: true,
};

/** What the API answers, numbers as it writes them. */
async function answer(
  change: Record<string, unknown>,
): Promise<{ rows: Record<string, string>[]; totals: Record<string, string> }> {
  const body = { ...asked, ...change };
  const response = await service.post('/v1/campaigns/breakdowns/device_date', account, body);
  const text = (await response.text()).replace(/":(-?\d[\d.]*)/g, '":"$1"');
  return JSON.parse(text).result;
}

async function file(page: Page, format: string): Promise<Download> {
  await page.locator('.take summary').click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: format, exact: true }).click(),
  ]);
  await page.keyboard.press('Escape');
  return download;
}

test('a person opens a link, chooses, reads totals that are those of the API, and takes the report along', async () => {
  const page = await browser.open(`${service.url}/app#token=${await service.token(account)}`);
  await whole(page);
  await choose(page, 'Device');
  await whole(page);
  await page.getByLabel('Compare with').selectOption('previous_period');
  await whole(page);
  await page.locator('regular-table tbody th', { hasText: 'Winter Boots' }).first().click();
  await whole(page);
  await page.locator('.filter summary').click();
  await page.locator('.values').getByLabel('Family Tents').check();
  await whole(page);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Spent', exact: true }).click();
  await whole(page);

  const { rows, totals } = await answer({ order_by: [{ field: 'spent', direction: 'desc' }] });
  expect(rows).toHaveLength(2 * 2 * 28);
  await page.getByText(`${rows.length} rows`, { exact: true }).waitFor();
  const shown = await visibleRows(page);
  expect(shown.length).toBeGreaterThan(5);
  for (const [n, row] of shown.entries()) {
    const same = rows[n];
    expect([row.Day, row.Campaign, row.Device]).toEqual([
      shownDay(same?.start_time ?? ''),
      same?.campaign,
      same?.device,
    ]);
    expect(Number(plain(row.Spent ?? ''))).toBe(Number(same?.spent));
    expect(Number(plain(row['Spent change'] ?? ''))).toBe(Number(same?.spent_change));
  }
  const total = await totalsRow(page);
  expect(plain(total.Spent ?? '').replace(/0+$/, '')).toBe(totals.spent?.replace(/0+$/, ''));
  expect(Number(plain(total.Impressions ?? ''))).toBe(Number(totals.impressions));
  expect(Number(plain(total['Spent change'] ?? ''))).toBe(Number(totals.spent_change));
  await page.locator('.open-days').waitFor();

  const csv = await file(page, 'CSV');
  const columns = (row: Record<string, unknown>) =>
    Object.entries(row).map(([id, value]) => [id, String(value)]);
  const read = parse(await readFile(await csv.path(), 'utf8'), { columns: true }) as Record<string, string>[];
  const ordered = (row: Record<string, string>) =>
    Object.fromEntries(Object.keys(read[0] ?? {}).map((id) => [id, row[id]]));
  expect(csv.suggestedFilename()).toMatch(/^campaigns_device_date_.*\.csv$/);
  expect(read.map(columns)).toEqual(rows.map(ordered).map(columns));
  const parquet = await file(page, 'Parquet');
  const packed = await parquetReadObjects({
    file: await asyncBufferFromFile(await parquet.path()),
    compressors,
  });
  // The reader of the test takes decimals for floats.
  const value = (cell: number) => Number(cell.toFixed(6));
  const text = (cell: unknown) => (cell instanceof Date ? cell.toISOString().slice(0, 10) : cell);
  const cells = (row: Record<string, unknown>, like: Record<string, unknown>) =>
    Object.entries(row).map(([id, cell]) => [
      id,
      typeof text(like[id]) === 'string' ? text(cell) : value(Number(cell)),
    ]);
  expect(packed.map((row) => cells(row, row))).toEqual(
    rows.map(ordered).map((row, n) => cells(row, packed[n] ?? {})),
  );

  const excel = await file(page, 'Excel');
  expect(excel.suggestedFilename()).toMatch(/^campaigns_device_date_.*\.xlsx$/);
  const sheet = await readers.xlsx(await readFile(await excel.path()));
  const last = rows.length;
  expect(sheet.columns).toEqual(Object.keys(read[0] ?? {}));
  expect(sheet.rows.slice(0, last)).toEqual(read.map((row) => Object.values(row)));
  const lastRow = Object.fromEntries(sheet.columns.map((id, n) => [id, sheet.rows[last]?.[n]]));
  expect(lastRow).toMatchObject({ ...totals, start_time: 'Total' });
  const ndjson = await readFile(await (await file(page, 'NDJSON')).path(), 'utf8');
  const parsed = ndjson
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line.replace(/":(-?\d[\d.]*)/g, '":"$1"')));
  expect(parsed.map(columns)).toEqual(rows.map(ordered).map(columns));

  const link = page.url();
  expect(link).not.toContain('adt_');
  await page.goBack();
  await whole(page);
  expect(page.url()).not.toContain('sort=');
  await page.goForward();
  await whole(page);
  await page.reload();
  await whole(page);
  expect(page.url()).toBe(link);
  expect(await totalsRow(page)).toEqual(total);
  expect(await jumps(page)).toEqual([]);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Login token').waitFor();
  expect(browser.complaints).toEqual([]);
});

test('what is copied runs: curl and Python get the rows of the page', async () => {
  const permissions = ['clipboard-read', 'clipboard-write'];
  const token = await service.token(account);
  const page = await browser.open(`${service.url}/app#token=${token}&by=device&only.campaign=Winter+Boots`, {
    permissions,
  });
  await whole(page);
  const run = async (what: string, ...command: string[]) => {
    await page.locator('.take summary').click();
    await page.getByRole('button', { name: what, exact: true }).click();
    await page.getByText(`Copied: ${what}`).waitFor();
    await page.keyboard.press('Escape');
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).not.toContain('adt_');
    const [program = '', ...args] = command;
    const ended = await startProcess(program, [...args, copied], { TOKEN: token }).ended;
    expect(ended.code, ended.stderr).toBe(0);
    return ended.stdout;
  };
  await page.locator('.take summary').click();
  await page.getByRole('button', { name: 'Link to the file', exact: true }).click();
  await page.getByText('Copied: Link to the file').waitFor();
  await page.keyboard.press('Escape');
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const file = await readers.xlsx(Buffer.from(await (await fetch(link)).arrayBuffer()));
  expect(file.rows).toHaveLength(56 + 1);
  expect(await run('Python', 'python3', '-c')).toBe('56 rows\n');
  const shell = 'cd "$(mktemp -d)" && eval "$0" && cat report.csv && rm -r "$PWD"';
  const rows = parse(await run('curl', 'sh', '-c', shell), { columns: true }) as Record<string, string>[];
  expect(rows).toHaveLength(2 * 28);
  expect(new Set(rows.map(({ campaign }) => campaign))).toEqual(new Set(['Winter Boots']));
});

test('the same way with the keyboard alone', async () => {
  const page = await browser.open(`${service.url}/app`);
  const press = (key: string) => page.keyboard.press(key);
  await page.keyboard.type(await service.token(account));
  await press('Enter');
  await whole(page);
  await tabTo(page, '.range summary');
  await press('Enter');
  await tabTo(page, '.preset:nth-child(2)');
  await press('Enter');
  await whole(page);
  await tabTo(page, 'select#compare');
  await page.keyboard.type('Previous p');
  await whole(page);
  await tabTo(page, 'input[name=grain]');
  await press('ArrowRight');
  await whole(page);
  await tabTo(page, 'input[value=device]');
  await press('Space');
  await whole(page);
  await tabTo(page, '.filter summary');
  await press('Enter');
  await page.locator('.values input').first().waitFor();
  await tabTo(page, '.values input');
  await press('Space');
  await whole(page);
  await press('Tab');
  await press('Space');
  await whole(page);
  await press('Escape');
  const focused = () =>
    page.evaluate(() => document.activeElement?.ariaLabel ?? document.activeElement?.textContent);
  await tabTo(page, '.chips li:nth-child(2) button');
  await press('Enter');
  await whole(page);
  expect(await focused()).toBe('Take off the filter Campaign: Family Tents');
  await tabTo(page, '.opened button');
  await press('Enter');
  await whole(page);
  expect(await focused()).toBe('Days');
  await tabTo(page, '.chips button', 'Shift+Tab');
  await press('Enter');
  await whole(page);
  expect(await focused()).toBe('Add a filter');
  for (let n = 0; n < 3; n++) {
    await page.goBack();
    await whole(page);
  }
  await tabTo(page, 'button.head[data-column=spent]');
  await press('Enter');
  await whole(page);
  expect(new URL(page.url()).hash).toBe(
    '#report=campaigns&by=device&each=week&days=last_7_days&compare=previous_period&only.campaign=Family+Tents&only.campaign=socks&sort=-spent',
  );
  const change = { start_time: daysAgo(7), time_grain: 'week' };
  const { totals } = await answer({ ...change, filters: { campaign: ['Family Tents', 'socks'] } });
  expect(Number(plain((await totalsRow(page)).Spent ?? ''))).toBe(Number(totals.spent));
  await tabTo(page, 'regular-table');
  await press('End');
  await tabTo(page, '.take summary');
  await press('Enter');
  await tabTo(page, '.take .choices button');
  for (const name of [/\.csv$/, /\.parquet$/]) {
    const [taken] = await Promise.all([page.waitForEvent('download'), press('Enter')]);
    expect(taken.suggestedFilename()).toMatch(name);
    for (let n = 0; n < 2; n++) await press('Tab');
  }
  await press('Escape');
  await tabTo(page, '.masthead .aside button');
  await press('Enter');
  await page.getByText('You are signed out').waitFor();
});

test('what was asked for last is there to be copied, until another report is chosen', async () => {
  const page = await browser.open(`${service.url}/app#token=${await service.token(account)}`);
  await whole(page);
  await page.locator('.take summary').click();
  const release = await holdNext(page, '**/v1/links/**', () =>
    page.getByRole('button', { name: 'Link to the file', exact: true }).click(),
  );
  await page.getByRole('button', { name: 'curl', exact: true }).click();
  const shown = page.locator('.take textarea');
  await shown.waitFor();
  await release();
  expect(await shown.inputValue()).toMatch(/^curl /);
  await page.keyboard.press('Escape');
  await choose(page, 'Device');
  await whole(page);
  await page.locator('.take summary').click();
  await page.getByRole('button', { name: 'curl', exact: true }).waitFor();
  expect(await shown.isVisible()).toBe(false);
  expect(browser.complaints).toEqual([]);
});
