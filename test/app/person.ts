import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

/** Someone who uses the page in one way alone, and how often they have clicked. */
export interface Person {
  clicks: number;
  press(what: Locator): Promise<void>;
  pick(field: Locator, choice: string): Promise<void>;
  type(field: Locator, word: string): Promise<void>;
}

/** A choice of a list is a click on it, and one on the choice. */
const pointing = (click: (what: Locator) => Promise<void>): Person => ({
  clicks: 0,
  async press(what) {
    this.clicks++;
    await click(what);
  },
  async pick(field, choice) {
    this.clicks += 2;
    await field.selectOption(choice);
  },
  type: (field, word) => field.fill(word),
});

const isFocused = (what: Locator) => what.evaluate((element) => element === document.activeElement);

function typing(page: Page): Person {
  const press = (key: string) => page.keyboard.press(key);
  const until = async (key: string, isThere: () => Promise<boolean>) => {
    for (let n = 0; n < 90; n++) {
      if (await isThere()) return;
      await press(key);
    }
    throw new Error(`${key} does not lead there`);
  };
  const reach = (what: Locator) => until('Tab', () => isFocused(what));
  const placeOf = async (cell: Locator) => ({
    row: Number(await cell.locator('xpath=..').getAttribute('aria-rowindex')),
    column: Number(await cell.getAttribute('aria-colindex')),
  });
  /** From the first cell in sight with the arrow keys. */
  const walk = async (what: Locator) => {
    const cell = what.locator('xpath=ancestor-or-self::*[self::td or self::th]');
    await reach(page.locator('regular-table'));
    await press('ArrowDown');
    const here = await placeOf(page.locator('tbody :is(td, th):focus'));
    const there = await placeOf(cell);
    for (let { row } = here; row < there.row; row++) await press('ArrowDown');
    for (let { column } = here; column < there.column; column++) await press('ArrowRight');
    await expect.poll(() => isFocused(cell)).toBe(true);
  };
  return {
    clicks: 0,
    async press(what) {
      if (await what.evaluate((element) => element.closest('tbody') !== null)) {
        await walk(what);
        return press('Enter');
      }
      const input = what.locator('input');
      const target = (await input.count()) > 0 ? input : what;
      const type = await target.getAttribute('type');
      if (type !== 'radio') {
        await reach(target);
        return press(type === 'checkbox' ? 'Space' : 'Enter');
      }
      const name = await target.getAttribute('name');
      await reach(page.locator(`input[name=${name}]:checked`));
      await until('ArrowRight', () => target.isChecked());
    },
    async pick(field, choice) {
      await reach(field);
      await page.keyboard.type(choice);
    },
    async type(field, word) {
      await reach(field);
      await page.keyboard.type(word);
    },
  };
}

/** By name: how a tab is opened, and who sits before it. */
export const ways: readonly (readonly [string, BrowserContextOptions, (page: Page) => Person])[] = [
  ['the mouse', {}, () => pointing((what) => what.click())],
  ['the keyboard', {}, typing],
  [
    'a finger on a phone',
    { viewport: { width: 390, height: 844 }, hasTouch: true },
    () => pointing((what) => what.tap()),
  ],
];
