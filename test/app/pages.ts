import type { Page, Request } from 'playwright-core';
import { expect } from 'vitest';
import { signal } from '../support/held.ts';

/** Days before today, `yyyy-mm-dd`; the services of the tests count days in UTC. */
export function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

/** Waits until the report is there, whole: its totals are computed last. */
export async function whole(page: Page): Promise<void> {
  await page.locator('main.bench[aria-busy=false]').waitFor();
  // Hidden where there are no rows.
  await page.locator('fieldset.cards[aria-busy=false]').waitFor({ state: 'attached' });
  await settled(page);
}

/** Waits until the table shows what it was last asked to show. */
export async function settled(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const table = document.querySelector('regular-table') as unknown as { flush(): Promise<void> } | null;
    // It may still draw what it was asked for before.
    await table?.flush();
    await table?.flush();
  });
}

/** Clicks one of the choices that stand side by side. */
export function choose(page: Page, label: string): Promise<void> {
  return page.locator('.segments label', { hasText: new RegExp(`^${label}$`) }).click();
}

/** The rows of the table in sight: what each cell says, of numbers every digit, by the label of its column. */
export async function visibleRows(page: Page): Promise<Record<string, string>[]> {
  await settled(page);
  return page.evaluate(() => {
    const table = document.querySelector('regular-table table') as HTMLTableElement;
    const names = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => cell.textContent ?? '');
    const whole = (cell: HTMLElement) => (cell.matches('.number') && cell.title) || (cell.textContent ?? '');
    return [...(table.tBodies[0]?.rows ?? [])].map((row) =>
      Object.fromEntries([...row.cells].map((cell, n) => [names[n] ?? '', whole(cell)])),
    );
  });
}

/** The row of totals with every digit, by the label of the column. */
export function totalsRow(page: Page): Promise<Record<string, string>> {
  return page.evaluate(() => {
    const [names, totals] =
      (document.querySelector('regular-table table') as HTMLTableElement).tHead?.rows ?? [];
    return Object.fromEntries(
      [...(names?.cells ?? [])].map((cell, n) => [
        cell.textContent ?? '',
        totals?.cells[n]?.title || (totals?.cells[n]?.textContent ?? ''),
      ]),
    );
  });
}

/** `yyyy-mm-dd` as the page writes it. */
export function shownDay(day: string, locale = 'en-GB'): string {
  const format = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' });
  return format.format(Date.parse(day));
}

/** A number as the page writes it, with the digits that were given. */
export function plain(shown: string, locale = 'en-GB'): string {
  return locale === 'de-DE' ? shown.replaceAll('.', '').replace(',', '.') : shown.replaceAll(',', '');
}

/** Presses a key until the focus is on what the selector says, as a person without a mouse does. */
export async function tabTo(page: Page, selector: string, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  for (let n = 0; n < 80; n++) {
    await page.keyboard.press(key);
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector)) return;
  }
  expect.fail(`${selector} cannot be reached with the keyboard`);
}

/**
 * What jumped in the page since it was opened, without a person having done anything: the share of it that moved. Not
 * the cells of the table, whose columns are as wide as what has come.
 */
export function jumps(page: Page): Promise<string[]> {
  return page.evaluate(async () => {
    type Shift = PerformanceEntry & {
      readonly value: number;
      readonly hadRecentInput: boolean;
      readonly sources: readonly { readonly node: Node | null }[];
    };
    if (!PerformanceObserver.supportedEntryTypes.includes('layout-shift'))
      throw new Error('this browser does not tell what jumps');
    const shifts = (await new Promise<PerformanceEntryList>((resolve) => {
      const observer = new PerformanceObserver((list) => resolve(list.getEntries()));
      observer.observe({ type: 'layout-shift', buffered: true });
      setTimeout(() => resolve([]), 500);
    })) as Shift[];
    return shifts.flatMap(({ value, hadRecentInput, sources }) => {
      const moved = sources
        .map(({ node }) => (node instanceof Element ? node : node?.parentElement))
        .filter((element) => element && !element.closest('regular-table'));
      const what = moved.map((element) => element?.outerHTML.slice(0, 60)).join(' | ');
      return hadRecentInput || moved.length === 0 ? [] : [`${value.toFixed(4)} ${what}`];
    });
  });
}

/** The tasks of the page's own thread that took longer than 50 ms, ms. */
export function longTasks(page: Page): Promise<number[]> {
  return page.evaluate(
    () =>
      new Promise<number[]>((resolve) => {
        const observer = new PerformanceObserver((list) =>
          resolve(list.getEntries().map(({ duration }) => duration)),
        );
        observer.observe({ type: 'longtask', buffered: true });
        setTimeout(() => resolve([]), 500);
      }),
  );
}

/** Holds the answer to the request that `ask` makes, as it is now. Returns what lets it go, and waits until the page has it. */
export async function holdNext(
  page: Page,
  url: string,
  ask: () => Promise<unknown>,
  isIt: (request: Request) => boolean = () => true,
): Promise<() => Promise<void>> {
  const [release, released] = signal();
  let held: Request | undefined;
  // `finished()` of its response waits for ever where the page breaks it off while it is answered.
  const ended = new Promise<void>((resolve) => {
    const end = (request: Request) => {
      if (request === held) resolve();
    };
    page.on('requestfinished', end);
    page.on('requestfailed', end);
  });
  await page.route(url, async (route) => {
    if (held || !isIt(route.request())) return route.fallback();
    held = route.request();
    const answer = route.fetch();
    await released;
    // The page may have broken its request off.
    await answer.then((response) => route.fulfill({ response })).catch(() => {});
  });
  await ask();
  await expect.poll(() => held !== undefined, { timeout: 20_000 }).toBe(true);
  return async () => {
    release();
    await ended;
    await page.evaluate(() => new Promise((resolve) => setTimeout(() => requestAnimationFrame(resolve))));
  };
}
