import { describe, expect, test } from 'vitest';
import {
  compareAxes,
  compareCards,
  compareInk,
  compareMenu,
  comparePointed,
  compareTable,
  compareTouched,
  compareWithKeys,
  periods,
  questions,
  sizeNames,
  useFigures,
} from './figures.ts';

const figures = useFigures();

describe.each(sizeNames)('on a %s', (size) => {
  test.each(Object.entries(questions))('%s: every figure is that of the API', async (name, question) => {
    const shown = await figures.open(name, size, question);
    await compareAxes(shown);
    // Where a day has less than a few pixels its neighbours reach into it.
    const { width } = (await shown.page.locator('.u-over').boundingBox()) ?? { width: 0 };
    if (width / periods(question).length > 6) await compareInk(shown);
    if (size === 'phone') await compareTouched(shown, 50);
    else await comparePointed(shown);
    await compareWithKeys(shown);
    await compareCards(shown);
    await compareTable(shown);
    await compareMenu(shown.page);
    expect(figures.browser.complaints).toEqual([]);
  });
});
