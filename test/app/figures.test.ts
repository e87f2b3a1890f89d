import { expect, test } from 'vitest';
import {
  compareAxes,
  compareCards,
  compareInk,
  compareMenu,
  comparePointed,
  compareTable,
  compareTouched,
  compareWithKeys,
  questions,
  type Size,
  useFigures,
} from './figures.ts';

const figures = useFigures();

const opened = (name: string, size: Size) => {
  const question = questions[name];
  if (!question) throw new Error(`${name} is no question`);
  return figures.open(name, size, question);
};

test.each([
  ['four days of 28', 'desktop'],
  ['one day', 'laptop'],
  ['400 days by week', 'laptop'],
  ['400 days by month', 'phone'],
] as const)(
  '%s on a %s: tooltip, axes, cards and table have the figures of the API, whole',
  async (name, size) => {
    const shown = await opened(name, size);
    await compareAxes(shown);
    if (shown.size === 'phone') await compareTouched(shown);
    else await comparePointed(shown);
    await compareWithKeys(shown);
    await compareCards(shown);
    await compareTable(shown);
    await compareMenu(shown.page);
    if (name === 'four days of 28') await compareInk(shown);
    expect(figures.browser.complaints).toEqual([]);
  },
);

test('in a wide comparison, and on a phone, what a row is stays in sight', async () => {
  await compareTable(await opened('a comparison', 'laptop'));
  await compareTable(await opened('a comparison', 'phone'));
});

test('a value that is larger than the total has room', async () => {
  await compareTable(await opened('corrections', 'phone'));
});

test('without rows the Columns menu has its boxes', async () => {
  const { account } = questions['one day'] ?? { account: '' };
  const token = await figures.service.token(account);
  const page = await figures.browser.open(
    `${figures.service.url}/app#token=${token}&days=2001-01-01/2001-01-02`,
  );
  await page.getByRole('heading', { name: 'No rows' }).waitFor();
  await compareMenu(page);
});
