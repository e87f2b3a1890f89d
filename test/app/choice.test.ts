import { parquetMetadata } from 'hyparquet';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { event, load, loadRows } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';
import { daysAgo, holdNext, shownDay, totalsRow, visibleRows, whole } from './pages.ts';

const db = useStore();
const service = useService(db);
const browser = useBrowser();
const account = 'acme';
const signedIn = async (state = '') => `${service.url}/app#token=${await service.token(account)}${state}`;

const columns = async (page: Page) => Object.keys(await totalsRow(page));

beforeAll(async () => {
  const events = ['boots', 'tents'].flatMap((campaign_id) =>
    [2, 3, 4].map((day) =>
      event({
        event_id: `${campaign_id}-${day}`,
        event_time: `${daysAgo(day)}T08:00:00Z`,
        advertiser_id: account,
        publisher_id: account,
        campaign_id,
        quantity: 10 * day,
        spend: '1.5',
      }),
    ),
  );
  await load(db.store, events);
  await loadRows(db.store, 'confirmations', [[account, daysAgo(2)]]);
});

test('columns are a step of the history, and remembered for the next visit and not for a link', async () => {
  const page = await browser.open(await signedIn());
  await whole(page);
  const usual = await columns(page);
  expect(usual).toContain('CPA');
  await page.locator('.columns summary').click();
  await page.getByLabel('Show CPA').uncheck();
  await page.getByRole('button', { name: 'Move Impressions to the left' }).press('Enter');
  // It is the first now, and its button can do no more.
  expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe(
    'Show Impressions',
  );
  await page.keyboard.press('Escape');
  await whole(page);
  const chosen = await columns(page);
  expect(chosen).not.toContain('CPA');
  expect(chosen.indexOf('Impressions')).toBeLessThan(chosen.indexOf('Spent'));
  const link = page.url();

  await page.goBack();
  await page.goBack();
  await whole(page);
  expect(await columns(page)).toEqual(usual);
  await page.goForward();
  await page.goForward();
  await whole(page);
  expect(await columns(page)).toEqual(chosen);
  await page.locator('.families label', { hasText: 'Ad units' }).click();
  await whole(page);
  await page.locator('.families label', { hasText: 'Campaigns' }).click();
  await whole(page);
  expect(await columns(page)).toEqual(chosen);

  for (const [address, shown] of [
    [`${service.url}/app`, chosen],
    [`${service.url}/app#report=campaigns`, usual],
    [link, chosen],
  ] as const) {
    await page.goto('about:blank');
    await page.goto(address);
    await whole(page);
    expect(await columns(page)).toEqual(shown);
  }
  await page.locator('.columns summary').click();
  await page.getByLabel('Show Spent').uncheck();
  await page.goto('about:blank');
  await page.goto(`${service.url}/app`);
  await whole(page);
  expect(await page.locator('.card :checked').count()).toBe(1);
  expect(await page.locator('figcaption').textContent()).toMatch(/^Impressions by day/);
  expect(browser.complaints).toEqual([]);
});

test('the language is the first of the reader that there is, or the one they choose, which stays', async () => {
  const swiss = await browser.open(await signedIn(), { locale: 'de-CH' });
  await whole(swiss);
  expect(await columns(swiss)).toContain('Ausgaben');
  const french = await browser.open(await signedIn(), { locale: 'fr-FR' });
  await whole(french);
  expect(await columns(french)).toContain('Spent');
  await french.getByLabel('Language').selectOption('Deutsch');
  await french.getByLabel('Sprache').waitFor();
  await whole(french);
  expect(await french.locator('html').getAttribute('lang')).toBe('de');
  expect(await french.title()).toBe('adtally: Berichte');
  // The worker writes and finds days in the language of the page.
  const day = shownDay(daysAgo(3), 'de-DE');
  await french.getByLabel('In den Zeilen suchen').fill(day);
  await french.getByRole('heading', { name: '2 von 6 Zeilen' }).waitFor();
  expect(new Set((await visibleRows(french)).map(({ Tag }) => Tag))).toEqual(new Set([day]));
  await french.goto('about:blank');
  await french.goto(`${service.url}/app`);
  await whole(french);
  expect(await columns(french)).toContain('Ausgaben');
  expect(browser.complaints).toEqual([]);
});

test.each(['slowly', 'faster than the table draws'])(
  'a column keeps the width that was drawn %s, until widths are reset; numbers never wrap',
  async (how) => {
    const page = await browser.open(await signedIn());
    await whole(page);
    const head = page.locator('regular-table thead tr:first-child th', { hasText: 'Impressions' });
    const width = async () => Math.round((await head.boundingBox())?.width ?? 0);
    const usual = await width();
    const n = (await columns(page)).indexOf('Impressions') + 1;
    const totals = page.locator(`regular-table thead tr:nth-child(2) th:nth-child(${n})`);
    const handle = await totals.locator('.rt-column-resize').boundingBox();
    if (!handle) throw new Error('the column has no handle');
    const [x, y] = [handle.x + handle.width / 2, handle.y + handle.height / 2];
    await page.mouse.move(x, y);
    await page.mouse.down();
    if (how === 'slowly') await page.mouse.move(x - 90, y, { steps: 5 });
    else await page.evaluate(movesAtOnce, { x, y });
    await page.mouse.up();
    await whole(page);
    const drawn = await width();
    expect(drawn).toBeLessThan(usual - 20);
    const heights = () =>
      page.evaluate(() => [
        ...new Set(
          [...document.querySelectorAll('regular-table tr')].map((row) => row.getBoundingClientRect().height),
        ),
      ]);
    expect(await heights()).toHaveLength(1);
    await page.reload();
    await whole(page);
    expect(await width()).toBe(drawn);
    await page.locator('.columns summary').click();
    await page.getByRole('button', { name: 'Reset widths' }).click();
    await whole(page);
    expect(await width()).toBe(usual);
  },
);

test('days whose money may still change are marked in the chart, in its table and in the rows', async () => {
  const page = await browser.open(await signedIn(`&days=${daysAgo(4)}/${daysAgo(2)}`));
  await whole(page);
  expect(await page.locator('regular-table tr.open').count()).toBe(4);
  await page.getByText('The chart as a table').click();
  const table = await page.locator('.as-table tbody tr').allTextContents();
  expect(table.map((row) => [row.endsWith('(money may still change)3.00'), row.endsWith('3.00')])).toEqual([
    [true, true],
    [true, true],
    [false, true],
  ]);
  // Above the line nothing is drawn but the hatching.
  const drawn = await page.evaluate(() => {
    const canvas = document.querySelector('.chart canvas') as HTMLCanvasElement;
    const { width } = canvas;
    const painted = (from: number, to: number) => {
      const x = Math.floor(width * from);
      const { data } = (canvas.getContext('2d') as CanvasRenderingContext2D).getImageData(
        x,
        14,
        Math.floor(width * to) - x,
        6,
      );
      return data.filter((value, n) => n % 4 === 3 && value > 0).length;
    };
    return { open: painted(0.2, 0.4), confirmed: painted(0.85, 0.95) };
  });
  expect(drawn.open).toBeGreaterThan(50);
  expect(drawn.confirmed).toBe(0);
});

test('paper has the account, the days, every row up to a thousand, the totals, and which money may still change', async () => {
  const page = await browser.open(await signedIn());
  await whole(page);
  await page.evaluate(() => {
    window.print = () => document.body.setAttribute('data-printed', 'yes');
  });
  await page.keyboard.press('Control+p');
  await page.locator('body[data-printed]').waitFor();
  const printed = await page.evaluate(() => {
    const table = document.querySelector('table.printed') as HTMLTableElement;
    return {
      caption: table.caption?.textContent,
      rows: [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent)),
    };
  });
  expect(printed.caption).toMatch(/^\w+ · \d.* \d{4} · 6 rows \* The money of this row may still change$/);
  expect(printed.rows).toHaveLength(1 + 6 + 1);
  expect(printed.rows[1]?.slice(0, 3)).toEqual([`${shownDay(daysAgo(4))} *`, 'boots', '1.50']);
  expect(printed.rows.at(-1)?.slice(0, 3)).toEqual(['Total', '', '9.00']);
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  expect(await page.locator('table.printed').count()).toBe(0);
});

test('colours that the reader chose hold also for who signs in again, and paper stays light', async () => {
  const page = await browser.open(await signedIn());
  await whole(page);
  const ink = () => page.evaluate(() => getComputedStyle(document.body).color);
  const line = (event = 'nothing') =>
    page.evaluate((event) => {
      dispatchEvent(new Event(event));
      const canvas = document.querySelector('.plot canvas') as HTMLCanvasElement;
      const data =
        canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ??
        new Uint8ClampedArray();
      // The green of what is opaque.
      return data.reduce(
        (most, green, n) => (n % 4 === 1 && data[n + 2] === 255 ? Math.max(most, green) : most),
        0,
      );
    }, event);
  const light = [await ink(), await line()];
  await page.getByLabel('Colours').selectOption('Dark');
  const dark = await line();
  expect(dark).toBeGreaterThan(180);
  expect(await ink()).not.toBe(light[0]);
  // A browser takes the page for paper as soon as its listeners have returned.
  expect(await line('beforeprint')).toBe(light[1]);
  expect(await ink()).toBe(light[0]);
  expect(await line('afterprint')).toBe(dark);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.reload();
  await page.getByLabel('Login token').waitFor();
  expect(await ink()).not.toBe(light[0]);
});

test('of a comparison paper has every column: a browser shrinks a sheet by a third at most', async () => {
  const page = await browser.open(
    await signedIn('&each=total&compare=previous_period&by=device,creative&only.campaign=boots'),
  );
  await whole(page);
  await page.evaluate(() => {
    window.print = () => {};
  });
  await page.keyboard.press('Control+p');
  const table = page.locator('table.printed');
  await table.waitFor({ state: 'attached' });
  await page.emulateMedia({ media: 'print' });
  // Between the margins of A4.
  const sheet = 1.5 * 718;
  expect((await table.boundingBox())?.width).toBeLessThan(sheet);
  // Nobody can press a button on paper.
  expect(await page.locator('button:visible').allTextContents()).toEqual([]);
  expect(await table.locator('caption').textContent()).toMatch(/ · 1 row( |$)/);
});

test('SQL for DuckDB reads a file with the chosen columns', async () => {
  const page = await browser.open(await signedIn('&show=spent,impressions&only.campaign=boots&sort=-spent'), {
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  await whole(page);
  await page.locator('.take summary').click();
  await page.getByRole('button', { name: 'SQL for DuckDB', exact: true }).click();
  await page.getByText('Copied: SQL for DuckDB').waitFor();
  const sql = await page.evaluate(() => navigator.clipboard.readText());
  const [, address = ''] = /read_parquet\('([^']+)'\)/.exec(sql) ?? [];
  const answer = await fetch(address, {
    headers: { authorization: `Bearer ${await service.token(account)}` },
  });
  expect(answer.status).toBe(200);
  const { schema, num_rows } = parquetMetadata(await answer.arrayBuffer());
  expect(num_rows).toBe(3n);
  expect(schema.slice(1).map(({ name }) => name)).toEqual([
    'start_time',
    'end_time',
    'campaign',
    'spent',
    'impressions',
  ]);
  expect(sql).toMatch(/ORDER BY spent DESC;$/);
});

test('until when there is data is said of all rows up to now, and of no part of them', async () => {
  const page = await browser.open(await signedIn());
  await whole(page);
  const fresh = page.locator('.fresh');
  expect(await fresh.textContent()).toContain('Data until');
  await page.locator('regular-table tbody th', { hasText: 'boots' }).first().click();
  await whole(page);
  expect(await fresh.textContent()).not.toContain('Data until');
  await page.goto(await signedIn(`&days=${daysAgo(9)}/${daysAgo(3)}`));
  await page.reload();
  await whole(page);
  expect(await fresh.textContent()).not.toContain('Data until');
});

test('a comparison says until when there is data, and draws nothing for days that only the other one has', async () => {
  const days = '&days=last_28_days&compare=';
  const page = await browser.open(await signedIn(`${days}${daysAgo(30)}/${daysAgo(3)}`));
  await whole(page);
  expect(await page.locator('.fresh').textContent()).toContain(`Data until ${shownDay(daysAgo(2))}`);
  await page.getByText('The chart as a table').click();
  const table = await page.locator('.as-table tbody tr').allTextContents();
  const open = '(money may still change)';
  expect(table).toEqual([
    `${shownDay(daysAgo(4))} ${open}3.00No figures`,
    `${shownDay(daysAgo(3))} ${open}3.00No figures`,
    `${shownDay(daysAgo(2))}3.003.00`,
    `${shownDay(daysAgo(1))}No figures3.00`,
  ]);
});

test.each(['day', 'week', 'month'])('of all years, each %s is drawn that rows are in', async (grain) => {
  const page = await browser.open(await signedIn(`&days=0001-01-01/9999-12-31&each=${grain}`));
  await whole(page);
  const plot = page.locator('.plot[aria-valuetext]');
  await plot.waitFor();
  const points = Number(await plot.getAttribute('aria-valuemax')) + 1;
  expect(points).toBeLessThan(4);
  if (grain === 'day') expect(points).toBe(3);
  expect(await plot.getAttribute('aria-valuetext')).not.toContain('No figures');
  expect(browser.complaints).toEqual([]);
});

test('a year of which there can be no rows is not taken from the fields of days', async () => {
  const page = await browser.open(await signedIn('&compare=previous_period'));
  await whole(page);
  const before = page.url();
  await page.locator('.range summary').click();
  await page.locator('#first-day').fill('0026-11-01');
  await page.locator('.range form button').click();
  expect(page.url()).toBe(before);
  await page.locator('#first-day').fill(daysAgo(3));
  await page.locator('#last-day').fill(daysAgo(9));
  await page.locator('.range form button').click();
  const said = page.locator('.range .said');
  expect(await said.textContent()).toBe('The first day is after the last.');
  await page.getByRole('button', { name: 'Yesterday' }).click();
  // It was said of days that are not in the fields any more.
  expect(await said.textContent()).toBe('');
  await whole(page);
  await page.getByLabel('Compare with').selectOption('Other days …');
  await whole(page);
  const compared = page.url();
  await page.getByLabel('Compared from').fill('0026-11-01');
  await page.getByLabel('Compared from').blur();
  expect(page.url()).toBe(compared);
});

test('where the browser keeps nothing for the page it works until it is closed', async () => {
  const page = await browser.open(`${service.url}/app`);
  await page.addInitScript(() => {
    for (const name of ['sessionStorage', 'localStorage']) {
      Object.defineProperty(window, name, {
        get() {
          throw new DOMException('denied', 'SecurityError');
        },
      });
    }
  });
  await page.goto(await signedIn());
  await whole(page);
  await page.getByText('6 rows', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Login token').waitFor();
  expect(browser.complaints).toEqual([]);
});

test('a chart that cannot be drawn takes nothing away from the rows, and nothing of other rows stands beside them', async () => {
  const page = await browser.open(await signedIn('&compare=previous_period'));
  await whole(page);
  const fresh = page.locator('.fresh');
  expect(await fresh.textContent()).toContain('compared with');
  await page.evaluate(() => {
    const { postMessage } = Worker.prototype;
    const range = { start: '2000-01-01', end: '2000-01-01' };
    Worker.prototype.postMessage = function (message: { method: string; argument: { show: unknown } }) {
      if (message.method === 'chart') message.argument.show = { range, each: 'day' };
      postMessage.call(this, message);
    };
  });
  await page.getByLabel('Compare with').selectOption('Nothing');
  await page.waitForURL((url) => !url.hash.includes('compare='));
  await whole(page);
  expect(await visibleRows(page)).not.toEqual([]);
  expect(await fresh.textContent()).not.toContain('compared with');
  expect(await page.locator('figure.chart').innerText()).not.toMatch(/Spent|What changed most/);
  expect(await page.locator('figure.chart canvas').count()).toBe(0);
  // Also where the points have come, and there is nothing to draw them on.
  await page.reload();
  await whole(page);
  await page.evaluate(() => {
    HTMLCanvasElement.prototype.getContext = () => null;
  });
  await page.getByLabel('Compare with').selectOption('Previous period');
  await page.waitForURL(/compare=/);
  await whole(page);
  expect(await fresh.textContent()).toContain('compared with');
  expect(await page.locator('figure.chart canvas').count()).toBe(0);
});

test('values offered to choose from are those of the days that are chosen, whichever answer comes last', async () => {
  const page = await browser.open(await signedIn());
  await whole(page);
  const values = page.locator('.filter .values label');
  const release = await holdNext(page, '**/v1/campaigns', () => page.locator('.filter summary').click());
  await page.evaluate(
    (days) => {
      location.hash += `&days=${days}`;
    },
    `${daysAgo(1)}/${daysAgo(1)}`,
  );
  const nothing = page.getByText('No such value on these days.');
  await nothing.waitFor();
  await release();
  expect(await values.count()).toBe(0);
  expect(await nothing.isVisible()).toBe(true);
  // Nor are those of other days there until an answer comes.
  await page.goBack();
  await values.first().waitFor();
  const next = await holdNext(page, '**/v1/campaigns', () => page.goForward());
  await expect.poll(() => values.count()).toBe(0);
  await next();
  await nothing.waitFor();
  expect(browser.complaints).toEqual([]);
});

function movesAtOnce({ x, y }: { x: number; y: number }): void {
  const moved = { bubbles: true, clientY: y };
  for (const by of [30, 60, 90]) {
    document.dispatchEvent(new MouseEvent('mousemove', { ...moved, clientX: x - by }));
  }
  document.dispatchEvent(new MouseEvent('mouseup', moved));
}
