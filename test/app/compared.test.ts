import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { metricsOf } from '../../src/app/state/fields.ts';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';
import { choose, daysAgo, plain, settled, tabTo, totalsRow, visibleRows, whole } from './pages.ts';

const db = useStore();
const service = useService(db);
const browser = useBrowser();
const account = 'acme';
const campaigns = ['boots', 'tents', 'socks', 'gloves'];

beforeAll(async () => {
  const events = campaigns.flatMap((campaign_id, c) =>
    Array.from({ length: 70 }, (_, day) =>
      event({
        event_id: `${c}-${day}`,
        event_time: `${daysAgo(day + 1)}T08:00:00Z`,
        advertiser_id: account,
        campaign_id,
        device: day % 3 ? 'mobile' : 'tv',
        creative_id: `creative-${day % 2}`,
        // Two grow, one falls, and one is as before.
        spend: `${c === 3 ? 5 : c === 2 ? 3 + day : 100 * (c + 1) - day}.25`,
      }),
    ),
  );
  const uneven = ['vast', 'small'].flatMap((campaign_id, n) =>
    [2, 3, 40].map((day) =>
      event({
        event_time: `${daysAgo(day)}T08:00:00Z`,
        advertiser_id: 'uneven',
        campaign_id,
        spend: n === 0 ? '123456789012.34' : '1.5',
      }),
    ),
  );
  const filled = [2, 40].flatMap((day) => {
    const at = { event_time: `${daysAgo(day)}T08:00:00Z`, publisher_id: 'filled', ad_unit_id: 'top' };
    return [
      event({ ...at, event_type: 'ad_request', quantity: 100 }),
      event({ ...at, event_type: 'impression', quantity: day === 2 ? 61 : 59 }),
    ];
  });
  await load(db.store, [...events, ...uneven, ...filled]);
});

const open = async (state = '', options = {}) => {
  const address = `${service.url}/app#token=${await service.token(account)}${state}`;
  const page = await browser.open(address, options);
  await whole(page);
  return page;
};

type Row = Record<string, string>;

/** What the API answers, numbers as it writes them. */
async function answer(path: string, body: object): Promise<{ rows: Row[]; totals: Row; compare_to: Row }> {
  const response = await service.post(path, account, { totals: true, ...body });
  return JSON.parse((await response.text()).replace(/":(-?\d[\d.]*)/g, '":"$1"')).result;
}

/** The days that the page says it has asked for. */
async function days(page: Page): Promise<{ start_time: string; end_time: string }> {
  const shown = await page.locator('.controls').getAttribute('data-days');
  const [start_time = '', end_time = ''] = shown?.split('/') ?? [];
  return { start_time, end_time };
}

const sign = (change: string | undefined) =>
  Number(change) > 0 ? /^▲ \+/ : Number(change) < 0 ? /^▼ -/ : /^no change$/;

test.each([
  ['Same weekdays before', 'previous_weeks'],
  ['Month before', 'previous_month'],
  ['Previous year', 'previous_year'],
])(
  '%s is chosen at once: the figures are those of the API, gain and loss have a sign',
  async (label, name) => {
    const page = await open('&days=this_month');
    await page.getByLabel('Compare with').selectOption(label);
    await whole(page);
    const asked = await days(page);
    const { totals, compare_to } = await answer('/v1/campaigns/breakdowns/date', {
      ...asked,
      compare_to: name,
    });
    const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
    const [first = 0, last = 0] = Object.values(compare_to).map(Date.parse);
    const written = first === last ? format.format(first) : format.formatRange(first, last);
    // Browsers do not agree on which spaces stand around the dash.
    const spaced = (text: string | null) => text?.replace(/\s/g, ' ');
    expect(spaced(await page.locator('.compare .days').textContent())).toBe(spaced(written));
    const shown = await totalsRow(page);
    expect(Number(plain(shown['Spent before'] ?? ''))).toBe(Number(totals.spent_compared));
    const card = page.locator('.card', { hasText: 'Spent' }).locator('.change');
    expect(await card.textContent()).toMatch(sign(totals.spent_change));
    expect(browser.complaints).toEqual([]);
  },
);

test('a period of one’s own is compared, by day as many days as there are, and kept in the link', async () => {
  const page = await open();
  await page.getByLabel('Compare with').selectOption('Other days …');
  await whole(page);
  const first = page.getByLabel('Compared from');
  const last = page.getByLabel('Compared to');
  await first.fill(daysAgo(60));
  await first.blur();
  await whole(page);
  expect([await last.inputValue(), await last.isDisabled()]).toEqual([daysAgo(33), true]);
  await choose(page, 'Total');
  await whole(page);
  await last.fill(daysAgo(51));
  await last.blur();
  await whole(page);
  // Before the first one: what cannot be compared is not shown as if it were.
  await last.fill(daysAgo(65));
  await last.blur();
  expect(await last.inputValue()).toBe(daysAgo(51));
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.reload();
  await whole(page);
  const compare_to = { start_time: daysAgo(60), end_time: daysAgo(51) };
  const { rows } = await answer('/v1/campaigns', { ...(await days(page)), compare_to });
  expect((await visibleRows(page)).map((row) => Number(plain(row['Spent before'] ?? '')))).toEqual(
    rows.map((row) => Number(row.spent_compared)),
  );
});

test.each([
  ['day', 'previous_month'],
  ['week', 'previous_period'],
  ['total', `${daysAgo(50)}/${daysAgo(41)}`],
])(
  'a click on a figure of the compared days shows the loads of those, each %s against %s',
  async (each, compare) => {
    const page = await open(`&each=${each}&compare=${compare}`);
    const [row = {}] = await visibleRows(page);
    const column = Object.keys(row).indexOf('Spent before') + 1;
    await page.locator(`regular-table tbody tr:first-child [aria-colindex="${column}"]`).click();
    const dialog = page.getByRole('dialog', { name: 'Where does this come from?' });
    const sums = dialog.locator('tfoot td');
    await sums.first().waitFor();
    const before = Number(plain(row['Spent before'] ?? ''));
    expect(before).toBeGreaterThan(0);
    expect((await sums.allTextContents()).map((sum) => Number(plain(sum)))).toContain(before);
  },
);

test.each(['day', 'total'])('what changed most is ranked, from gain to loss, each %s', async (each) => {
  const page = await open(`&each=${each}&compare=previous_period`);
  const changes = page.getByRole('button', { name: 'What changed most' });
  await changes.click();
  await whole(page);
  // Whoever pressed it with a key goes on from there.
  expect(await changes.evaluate((button) => button === document.activeElement)).toBe(true);
  const bars = page.locator('.bars.changes li');
  await bars.first().waitFor();
  const order_by = [{ field: 'spent_change', direction: 'desc' }];
  const compare_to = 'previous_period';
  const { rows } = await answer('/v1/campaigns', { ...(await days(page)), compare_to, order_by });
  const expected = rows.filter((row) => Number(row.spent_change) !== 0);
  expect(expected).toHaveLength(3);
  expect(await bars.locator('.label').allTextContents()).toEqual(expected.map(({ campaign }) => campaign));
  const amounts = await bars.locator('.amount').allTextContents();
  for (const [n, { spent_change, spent_compared }] of expected.entries()) {
    const percent = (100 * Number(spent_change)) / Number(spent_compared);
    expect(amounts[n]).toMatch(sign(spent_change));
    const [, change = '', share = ''] = /^[▲▼] (\S+) \((\S+)%\)$/.exec(amounts[n] ?? '') ?? [];
    expect(Number(plain(change))).toBe(Number(spent_change));
    expect(Number(plain(share))).toBeCloseTo(percent, 0);
  }
  await page.goBack();
  await whole(page);
  expect(await page.locator('.bars.changes').count()).toBe(0);
});

test.each([
  ['is largest', ''],
  ['changed most', '&see=changes'],
])('bars of what %s have one scale, and no amount is cut, however long it is', async (_, see) => {
  const state = `&each=total&compare=previous_period${see}`;
  const page = await browser.open(`${service.url}/app#token=${await service.token('uneven')}${state}`);
  await whole(page);
  const lines = page.locator('.bars li');
  await lines.nth(1).waitFor();
  const [first, second] = await lines.locator('.track').evaluateAll((tracks) =>
    tracks.map((track) => {
      const { left, width } = track.getBoundingClientRect();
      return { left, width };
    }),
  );
  expect(second).toEqual(first);
  const cut = await lines.evaluateAll((all) =>
    all.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map((li) => li.textContent),
  );
  expect(cut).toEqual([]);
  if (see) return;
  const thickness = page.locator('.key').evaluateAll((keys) =>
    keys.map((key) => {
      const { borderTopWidth, borderBottomWidth } = getComputedStyle(key, '::before');
      return `${borderTopWidth} ${borderBottomWidth}`;
    }),
  );
  expect(new Set(await thickness).size).toBe(1);
});

test('in the colours of a system with high contrast, bars and what is chosen are seen', async () => {
  const page = await open('&each=total&compare=previous_period&only.campaign=boots', {
    forcedColors: 'active',
  });
  const ground = (selector: string, part?: string) =>
    page
      .locator(selector)
      .first()
      .evaluate((element, name) => getComputedStyle(element, name).backgroundColor, part);
  const plain = [await ground('.card'), await ground('.preset[aria-pressed=false]'), 'rgba(0, 0, 0, 0)'];
  await page.getByRole('button', { name: 'What changed most' }).click();
  await whole(page);
  for (const seen of [
    await ground('.bar'),
    await ground('.card:has(:checked)', '::after'),
    await ground('.preset[aria-pressed=true]'),
  ])
    expect(plain).not.toContain(seen);
});

test('in the colours of a system with high contrast, keys and the marks of open days keep their own', async () => {
  const page = await open('&compare=previous_period', { forcedColors: 'active' });
  const drawn = (selector: string, part?: string) =>
    page
      .locator(selector)
      .first()
      .evaluate((element, name) => {
        const { borderTopColor, backgroundImage } = getComputedStyle(element, name);
        return `${borderTopColor} ${backgroundImage}`;
      }, part);
  const marks = async () => [
    await drawn('.key.now', '::before'),
    await drawn('.key.open', '::before'),
    await drawn('.open-days', '::before'),
    await drawn('tr.open th:first-child'),
  ];
  const forced = await marks();
  await page.emulateMedia({ forcedColors: 'none' });
  expect(forced).toEqual(await marks());
});

test('a change of a share is in points, in its card, in the table and in its bar', async () => {
  const state = '&each=total&compare=previous_period&show=fill_rate&chart=fill_rate';
  const page = await browser.open(`${service.url}/app#token=${await service.token('filled')}${state}`);
  await whole(page);
  expect(await page.locator('.card .value').textContent()).toBe('61.0%');
  expect(await page.locator('.card .change').textContent()).toBe('▲ +2.0 pp');
  const [row] = await visibleRows(page);
  expect(row).toMatchObject({ 'Fill rate before': '59.0%', 'Fill rate change': '+2.0 pp' });
  const isBusy = await page
    .getByRole('button', { name: 'What changed most' })
    .evaluate((button: HTMLButtonElement) => {
      button.click();
      return button.closest('main')?.ariaBusy;
    });
  expect(isBusy).toBe('true');
  await whole(page);
  expect(await page.locator('.bars.changes .amount').allTextContents()).toEqual(['▲ +2.0 pp']);
});

test.each([
  ['in the width of a screen', {}],
  ['in the width of a phone', { viewport: { width: 390, height: 844 } }],
])('the heads of all columns are reached with Tab, forwards, back and fast, %s', async (_, options) => {
  const page = await open('&each=total&compare=previous_period', options);
  const figures = metricsOf('campaigns').flatMap(({ id }) => [id, `${id}_compared`, `${id}_change`]);
  const columns = ['campaign', ...figures];
  const focused = () =>
    page.evaluate(() => {
      const on = document.activeElement;
      return on instanceof HTMLElement ? (on.dataset.column ?? on.nodeName) : '';
    });
  const step = async (key: string) => {
    await page.keyboard.press(key);
    await settled(page);
    return focused();
  };
  await tabTo(page, 'button.head');
  const there = [await focused()];
  for (let n = 1; n < columns.length; n++) there.push(await step('Tab'));
  expect(there).toEqual(columns);
  const inSight = page.locator(`button.head[data-column="${columns.at(-1)}"]`);
  expect((await inSight.boundingBox())?.x).toBeLessThan(page.viewportSize()?.width ?? 0);
  const back = [await focused()];
  for (let n = 1; n < columns.length; n++) back.push(await step('Shift+Tab'));
  expect(back).toEqual(columns.toReversed());
  for (let n = 1; n < columns.length; n++) await page.keyboard.press('Tab');
  await expect.poll(focused).toBe(columns.at(-1));
  expect(columns).not.toContain(await step('Tab'));
  expect(browser.complaints).toEqual([]);
});

test('a campaign is opened from its row: its days, devices and creatives, and Back leads out again', async () => {
  const page = await open('&each=total');
  const before = page.url();
  await page.locator('regular-table tbody th', { hasText: 'tents' }).click();
  await whole(page);
  const opened = page.locator('.opened');
  for (const [label, path, name, key] of [
    ['Devices', 'device', 'Device', 'device'],
    ['Creatives', 'creative', 'Spent', 'spent'],
    ['Days', 'date', 'Spent', 'spent'],
  ] as const) {
    await opened.getByRole('button', { name: label }).click();
    await whole(page);
    const filters = { campaign: ['tents'] };
    const { rows } = await answer(`/v1/campaigns/breakdowns/${path}`, { ...(await days(page)), filters });
    const shown = await visibleRows(page);
    expect(shown.length).toBeGreaterThan(1);
    expect(shown.map((row) => plain(row[name] ?? '').replace(/\.?0+$/, ''))).toEqual(
      rows.slice(0, shown.length).map((row) => (row[key] ?? '').replace(/\.?0+$/, '')),
    );
  }
  for (let n = 0; n < 4; n++) {
    await page.goBack();
    await whole(page);
  }
  expect(page.url()).toBe(before);
  expect(await opened.isHidden()).toBe(true);
  expect(browser.complaints).toEqual([]);
});
