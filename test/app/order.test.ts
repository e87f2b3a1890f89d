import { parse } from 'csv-parse/sync';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { event, load, loadRows } from '../support/events.ts';
import { startProcess } from '../support/process.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';
import { choose, daysAgo, visibleRows, whole } from './pages.ts';

const db = useStore();
const service = useService(db);
const browser = useBrowser();
const account = 'acme';
const permissions = ['clipboard-read', 'clipboard-write'];
const open = async (state: string) =>
  browser.open(`${service.url}/app#token=${await service.token(account)}${state}`, { permissions });

beforeAll(async () => {
  const events = ['b1', 'b2', 'tents'].flatMap((campaign_id, n) =>
    [1, 8, 15].map((day) =>
      event({
        event_id: `${campaign_id}-${day}`,
        event_time: `${daysAgo(day)}T08:00:00Z`,
        advertiser_id: account,
        publisher_id: account,
        campaign_id,
        device: n === 1 ? 'mobile' : 'desktop',
        quantity: 10 * day,
        spend: `${day + n}.5`,
      }),
    ),
  );
  await load(db.store, events);
  await loadRows(db.store, 'campaigns', [
    [account, 'b1', 'boots'],
    [account, 'b2', 'boots'],
  ]);
});

async function copied(page: Page, what: string): Promise<string> {
  await page.locator('.take summary').click();
  // What was said before is no answer to this click.
  const said = await page
    .getByRole('button', { name: what, exact: true })
    .evaluate((button: HTMLButtonElement) => {
      button.click();
      return button.closest('.take')?.querySelector('.said')?.textContent;
    });
  expect(said).toBe('');
  await page.getByText(`Copied: ${what}`).waitFor();
  await page.keyboard.press('Escape');
  return page.evaluate(() => navigator.clipboard.readText());
}

/** Runs what the page copies, and returns what it writes. */
async function run(page: Page, what: string, ...[program = '', ...args]: string[]): Promise<string> {
  const text = await copied(page, what);
  const ended = await startProcess(program, [...args, text], { TOKEN: await service.token(account) }).ended;
  expect(ended.code, ended.stderr).toBe(0);
  return ended.stdout;
}

async function requireSameFile(page: Page): Promise<void> {
  await whole(page);
  const shown = await visibleRows(page);
  expect(shown.length).toBeGreaterThan(1);
  const csv = await run(page, 'curl', 'sh', '-c', 'cd "$(mktemp -d)" && eval "$0" && cat report.csv');
  const rows = parse(csv, { columns: true }) as Record<string, string>[];
  expect(rows.map(({ spent }) => Number(spent))).toEqual(shown.map(({ Spent }) => Number(Spent)));
  expect(await run(page, 'Python', 'python3', '-c')).toBe(`${rows.length} rows\n`);
}

test('a file and what is copied have the order of the table, also where ids tell campaigns apart', async () => {
  const page = await open('&each=week&days=last_28_days');
  const head = (column: string) => page.locator(`button.head[data-column=${column}]`).click();
  await whole(page);
  expect(Object.keys((await visibleRows(page))[0] ?? {})).toContain('Campaign id');
  await head('end_time');
  await requireSameFile(page);
  expect(page.url()).toContain('sort=-end_time');
  await head('campaign_id');
  await requireSameFile(page);
  expect(browser.complaints).toEqual([]);
});

test('an order by a column that is no longer there ends with it, and so the address can be read again', async () => {
  const page = await open('&each=total&days=last_28_days');
  const head = (column: string) => page.locator(`button.head[data-column=${column}]`).click();
  const requireNone = async () => {
    await whole(page);
    expect(page.url()).not.toContain('sort=');
    expect(await copied(page, 'curl')).not.toContain('order_by');
  };
  await whole(page);
  await choose(page, 'Device');
  await whole(page);
  await head('device');
  await whole(page);
  expect(page.url()).toContain('sort=-device');
  await choose(page, 'Device');
  await requireNone();
  await page.getByLabel('Compare with').selectOption('Previous period');
  await whole(page);
  await head('spent_change');
  await requireSameFile(page);
  await page.getByLabel('Compare with').selectOption('Nothing');
  await requireNone();
  await head('spent');
  await whole(page);
  expect(page.url()).toContain('sort=-spent');
  await choose(page, 'Ad units');
  await requireNone();
  await page.reload();
  await whole(page);
  await page.locator('p.unread').waitFor({ state: 'hidden' });
  expect(browser.complaints).toEqual([]);
});

test('a search looks at what the table shows', async () => {
  const page = await open('&each=total&days=last_28_days');
  await whole(page);
  const find = page.getByRole('searchbox', { name: 'Find in the rows' });
  for (const [wanted, rows] of [
    [daysAgo(3).slice(0, 4), 0],
    ['boots', 2],
    ['b1', 1],
  ] as const) {
    await find.fill(wanted);
    await page.waitForURL((url) => url.hash.endsWith(`find=${wanted}`));
    await whole(page);
    if (rows === 0) await page.getByRole('heading', { name: 'No row has this' }).waitFor();
    else expect(await visibleRows(page)).toHaveLength(rows);
    expect(await page.locator('.toolbar > [role=status]').textContent()).toBe(`${rows} of 3 rows`);
  }
});

test('a search ends with the step of the history that it belongs to', async () => {
  const page = await open('&each=total&days=last_28_days');
  await whole(page);
  await page.locator('button.head[data-column=spent]').click();
  await whole(page);
  const find = page.getByRole('searchbox', { name: 'Find in the rows' });
  await find.fill('tents');
  await page.waitForURL((url) => url.hash.endsWith('find=tents'));
  await page.goBack();
  await whole(page);
  expect(await find.inputValue()).toBe('');
  expect(await visibleRows(page)).toHaveLength(3);
});

test('what is typed while all rows are being ordered is searched for', async () => {
  const page = await open('&each=total&days=last_28_days');
  await whole(page);
  // The worker is slow with large reports.
  await page.addInitScript(() => {
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (message: { method: string }) {
      const ask = () => postMessage.call(this, message);
      if (message.method === 'arrange') performance.mark('ordered');
      if (message.method === 'arrange' && performance.getEntriesByName('ordered').length === 1)
        addEventListener('order', ask);
      else ask();
    };
  });
  await page.reload();
  await page.waitForFunction(() => performance.getEntriesByName('ordered').length === 1);
  await page.getByRole('searchbox', { name: 'Find in the rows' }).fill('tents');
  await page.waitForURL((url) => url.hash.endsWith('find=tents'));
  await page.evaluate(() => dispatchEvent(new Event('order')));
  await whole(page);
  expect(await visibleRows(page)).toHaveLength(1);
});

test('rows that come while a scroll waits for the table to be drawn are drawn behind it', async () => {
  const page = await open('&each=total&days=last_28_days&find=tents');
  await whole(page);
  await page.evaluate(() => {
    const table = document.querySelector('regular-table') as HTMLElement & {
      draw(): Promise<void>;
      addStyleListener(listener: () => Promise<void>): () => void;
    };
    const { postMessage } = Worker.prototype;
    // The chart is asked for when the table has been told of other rows.
    const told = new Promise<void>((resolve) => {
      Worker.prototype.postMessage = function (message: { method: string }) {
        if (message.method === 'chart') resolve();
        postMessage.call(this, message);
      };
    });
    const remove = table.addStyleListener(async () => {
      remove();
      table.dispatchEvent(new Event('scroll'));
      const find = document.querySelector('.toolbar input') as HTMLInputElement;
      find.value = '';
      find.dispatchEvent(new Event('input'));
      await told;
    });
    void table.draw();
  });
  await page.waitForURL((url) => !url.hash.includes('find='));
  await whole(page);
  expect(await visibleRows(page)).toHaveLength(3);
});

test('on a new day the page counts its days anew', async () => {
  const page = await open('&each=total&days=yesterday');
  await whole(page);
  const asked: string[] = [];
  page.on('request', (request) => {
    const { start_time } = (request.postDataJSON() ?? {}) as { start_time?: string };
    if (start_time && start_time !== '1970-01-01') asked.push(start_time);
  });
  // It was opened yesterday.
  await page.route('**/v1/*', async (route) => {
    const response = await route.fetch();
    const headers = { ...response.headers(), 'adtally-last-update-time': `"${daysAgo(1)} 23:59:00 UTC"` };
    const { start_time } = route.request().postDataJSON() as { start_time: string };
    if (start_time === '1970-01-01' && asked.length === 0) return route.fulfill({ response, headers });
    return route.fulfill({ response });
  });
  await page.reload();
  await page.waitForFunction(() => performance.getEntriesByName('all rows').length > 0);
  await whole(page);
  expect([...new Set(asked)]).toEqual([daysAgo(2), daysAgo(1)]);
  expect(await page.locator('.range summary').textContent()).toContain('Yesterday');
  expect(browser.complaints).toEqual([]);
});
