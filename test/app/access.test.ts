import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { event, load, loadRows } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { violations, violationsInBoth } from './axe.ts';
import { useBrowser } from './browser.ts';
import { daysAgo, tabTo, visibleRows, whole } from './pages.ts';

const db = useStore();
const service = useService(db, { BRAND_COLOR: '#ff6600', BRAND_NAME: 'Fjord', ACCOUNT_MAILS: 'on' });
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
  const page = await browser.open(`${service.url}/app`, { bypassCSP: true });
  await page.getByLabel('Login token').waitFor();
  expect(await violationsInBoth(page)).toEqual([]);
});

test('nor has the documentation, in the colour of the network', async () => {
  const page = await browser.open(`${service.url}/docs`, { bypassCSP: true });
  expect(await violationsInBoth(page)).toEqual([]);
});

test('nor has the report with every menu open, compared and filtered, in light and dark', async () => {
  const page = await open('&compare=previous_period&by=device&only.device=unknown&only.campaign=c');
  await page.locator('.as-table summary').click();
  expect(await violationsInBoth(page)).toEqual([]);
  for (const menu of ['.range', '.filter', '.columns', '.take', '.mail']) {
    await page.locator(`${menu} > summary`).click();
    expect(await violationsInBoth(page, menu), menu).toEqual([]);
  }
});

test('nor what changed most in a campaign, nor where a figure comes from, asked with the keyboard', async () => {
  const own = `${daysAgo(40)}/${daysAgo(13)}`;
  const page = await open(`&only.campaign=c&compare=${own}`);
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
  expect(await violationsInBoth(page)).toEqual([]);
  await press('Enter');
  const panel = page.getByRole('dialog');
  await panel.getByRole('table').waitFor();
  expect(await panel.textContent()).toContain('3.5');
  expect(await violationsInBoth(page, '.explained')).toEqual([]);
  await press('Escape');
  await panel.waitFor({ state: 'hidden' });
  await row(4).waitFor();
  await press('ArrowLeft');
  await page.locator('tbody th:focus').waitFor();
});

/** Texts that are not whole in sight, and pairs of which one lies over the other; of the table, what its rows are. */
function hiddenTexts(): string[] {
  const elements = [...document.querySelectorAll<HTMLElement>('header *, main *')].filter(
    (element) =>
      [...element.childNodes].some((node) => node instanceof Text && node.data.trim() !== '') &&
      (!element.closest('regular-table') || element.closest('.rt-group-corner')) &&
      !element.closest('.scroll, .unseen, .families legend, option') &&
      element.checkVisibility(),
  );
  const texts = elements.map((element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const { left, right, top, bottom } = range.getBoundingClientRect();
    let clip: HTMLElement | null = element;
    while (clip && getComputedStyle(clip).overflowX === 'visible') clip = clip.parentElement;
    const room = (clip ?? document.body).getBoundingClientRect();
    const seen = { left: Math.max(left, room.left), right: Math.min(right, room.right), top, bottom };
    const isShortened = element.scrollWidth > element.clientWidth && element.clientWidth > 0;
    const isTold = element.closest('[title]') !== null;
    return {
      element,
      text: element.textContent ?? '',
      seen,
      isCut: (isShortened || left < 0 || right > innerWidth) && !isTold,
    };
  });
  const isOver = (a: (typeof texts)[number], b: (typeof texts)[number]) =>
    !a.element.contains(b.element) &&
    Math.min(a.seen.right, b.seen.right) - Math.max(a.seen.left, b.seen.left) > 2 &&
    Math.min(a.seen.bottom, b.seen.bottom) - Math.max(a.seen.top, b.seen.top) > 4;
  const over = texts.flatMap((a, n) =>
    texts
      .slice(n + 1)
      .filter((b) => isOver(a, b))
      .map((b) => [a, b]),
  );
  return [
    ...texts.filter(({ isCut }) => isCut).map(({ text }) => `${text} is cut`),
    ...over.map(([a, b]) => `${a?.text} lies over ${b?.text}`),
  ];
}

/** Unfolds each menu, and looks whether all of it is in the window. */
async function menusHaveRoom(page: Page): Promise<void> {
  for (const menu of ['.range', '.filter', '.columns', '.take', '.mail']) {
    await page.locator(`${menu} > summary`).click();
    const panel = page.locator(`${menu} > .panel`);
    const room = () =>
      panel.evaluate((element) => [
        element.scrollWidth - element.clientWidth,
        Math.min(0, element.getBoundingClientRect().left),
        Math.max(0, element.getBoundingClientRect().right - innerWidth),
      ]);
    // It is put into the window before it is painted, and that may be after the click has returned.
    await expect.poll(room, { message: menu }).toEqual([0, 0, 0]);
    await page.keyboard.press('Escape');
  }
}

test.each([
  ['en-GB', 'Campaigns'],
  ['de-DE', 'Kampagnen'],
  ['ja-JP', 'キャンペーン'],
])('nor has a narrow phone in %s, where no text is cut or lies over another', async (locale, campaigns) => {
  const options = { viewport: { width: 360, height: 740 }, locale, bypassCSP: true } as const;
  // Both years of the days stand there.
  const phone = await open('&each=total&compare=previous_weeks&by=device&days=last_365_days', {
    ...options,
    colorScheme: 'dark',
  });
  await phone.getByText(campaigns, { exact: true }).first().waitFor();
  await phone.locator('.bars').waitFor();
  expect(await phone.evaluate(hiddenTexts)).toEqual([]);
  // In the language of the longest words.
  if (locale === 'de-DE') expect(await violations(phone)).toEqual([]);
  await menusHaveRoom(phone);
  const scrolls = () => document.documentElement.scrollWidth > document.documentElement.clientWidth;
  for (const width of [360, 660, 768, 820]) {
    await phone.setViewportSize({ width, height: 740 });
    expect(await phone.evaluate(scrolls), `${width}`).toBe(false);
  }
  const door = await browser.open(`${service.url}/app`, options);
  await door.locator('#token').waitFor();
  expect(await door.evaluate(hiddenTexts)).toEqual([]);
  if (locale === 'de-DE') expect(await violations(door)).toEqual([]);
});

test('without JavaScript the one line of the page can be read in the dark, its link too', async () => {
  const options = { javaScriptEnabled: false, colorScheme: 'dark' } as const;
  const page = await browser.open(`${service.url}/app`, options);
  const colour = (name: string) => page.locator(name).evaluate((found) => getComputedStyle(found).color);
  // The text is white, or nearly: a link is no darker than half of it.
  const green = async (name: string) => Number((await colour(name)).split(/\D+/)[2]);
  expect(await green('noscript a')).toBeGreaterThan((await green('noscript p')) / 2);
});

test('nor has a report without rows', async () => {
  const empty = await open('&days=2001-01-01/2001-01-02');
  await empty.getByText('No rows').waitFor();
  expect(await violations(empty)).toEqual([]);
  await menusHaveRoom(empty);
});

test('a menu stays in the window when that gets narrower', async () => {
  const page = await open('', { viewport: { width: 1440, height: 900 } });
  for (const menu of ['.columns', '.take', '.mail']) {
    await page.locator(`${menu} > summary`).click();
    for (const width of [1440, 1000, 800, 600, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const beyond = () =>
        page.locator(`${menu} > .panel`).evaluate((panel) => {
          const { left, right } = panel.getBoundingClientRect();
          return Math.max(0, -left, right - innerWidth);
        });
      await expect.poll(beyond, { message: `${menu} at ${width}` }).toBe(0);
    }
    await page.keyboard.press('Escape');
  }
});

test('all of a menu is in sight on a laptop, and so is what it says when something was done', async () => {
  const page = await open('', { viewport: { width: 1280, height: 720 } });
  await menusHaveRoom(page);
  await page.locator('.take summary').click();
  await page.getByRole('button', { name: 'curl' }).click();
  const command = page.getByRole('textbox', { name: 'Copy' });
  await command.waitFor();
  const isInSight = (element: HTMLElement) => element.getBoundingClientRect().bottom <= innerHeight;
  await expect.poll(() => command.evaluate(isInSight)).toBe(true);
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
  const cell = page.locator('regular-table tbody th', { hasText: 'Ende' });
  // Beside that its money may still change.
  expect(await cell.getAttribute('title')).toContain(long);
  await cell.click();
  await whole(page);
  expect(await page.locator('.chips bdi').getAttribute('title')).toBe(long);
});
