import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { maxFileBytes } from '../../src/reconcile/limits.ts';
import { useFolder } from '../support/folder.ts';
import { seededRandom } from '../support/random.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { hours, loadHappened, reported } from '../support/two-sides.ts';
import { violations } from './axe.ts';
import { useBrowser } from './browser.ts';
import { holdNext, tabTo, whole } from './pages.ts';

const db = useStore();
const service = useService(db);
const browser = useBrowser();
const folder = useFolder();
const account = 'shop';
const campaigns = ['north', 'south', 'a campaign with quite a long name, as they have them'];

let theirs: string;
beforeAll(async () => {
  const happened = hours(seededRandom(7), 6, campaigns, () => 0);
  await loadHappened(db, account, happened);
  const lines = reported(happened, -5)
    .filter(({ day }) => day !== '2026-03-04')
    .map(({ day, campaign, impressions, spent }) => {
      const name = campaign === 'south' ? '4711' : campaign;
      return `${day},"${name}",${impressions},${spent / 1e6}`;
    });
  theirs = ['Day,Campaign ID,Impressions,Cost', ...lines, '2026-03-05,north,many,1'].join('\n');
});

const open = async (options = {}) => {
  const page = await browser.open(
    `${service.url}/app#token=${await service.token(account)}&report=campaigns&days=2026-03-01/2026-03-06`,
    { bypassCSP: true, ...options },
  );
  await whole(page);
  return page;
};

test('a file is compared on the page: totals, causes in words, what is left and the rows that differ', async () => {
  const page = await open({ locale: 'de-DE' });
  await page.getByRole('button', { name: 'Mit einer Datei vergleichen …' }).click();
  const dialog = page.getByRole('dialog', { name: 'Mit einer Datei vergleichen' });
  const choose = (name: string, text: string) =>
    dialog.getByLabel('Bericht der anderen Seite').setInputFiles({
      ...{ name, mimeType: 'text/csv', buffer: Buffer.from(text) },
    });
  const compare = () => dialog.getByRole('button', { name: 'Vergleichen', exact: true }).click();
  const said = dialog.locator('.said');

  await choose('theirs.csv', theirs);
  const release = await holdNext(page, '**/reconcile?*', compare);
  await choose('theirs.xlsx', theirs);
  await compare();
  await release();
  expect(await said.textContent()).toContain('Wählen Sie eine Datei mit der Endung .csv');

  await choose('theirs.csv', 'x'.repeat(maxFileBytes + 1));
  await compare();
  expect(await said.textContent()).toContain('Die Datei ist größer als 8,4 MB');

  await choose('theirs.csv', 'a,b\n1,2\n');
  await compare();
  await dialog.getByText(/: no column holds days or times: name its column event_time$/).waitFor();

  const path = join(folder, 'theirs.csv');
  await writeFile(path, 'a,b');
  const chosen = dialog.getByLabel('Bericht der anderen Seite');
  await chosen.setInputFiles(path);
  // The browser knows when the file changed only after it has looked at it.
  await chosen.evaluate((input: HTMLInputElement) => input.files?.[0]?.text());
  await writeFile(path, theirs);
  await compare();
  await dialog.getByText(/^Die Datei hat sich geändert/).waitFor();

  await chosen.setInputFiles(path);
  await compare();
  const causes = dialog.locator('.causes li');
  await causes.first().waitFor();
  expect(await said.textContent()).toContain('theirs.csv');
  expect(await causes.locator('strong').allTextContents()).toEqual([
    expect.stringMatching(/^Die Tage der anderen Seite sind die von UTC-05:00, hier sind es die von UTC\./),
    'Die andere Seite hat nichts von 04.03.2026.',
    'Die andere Seite verwendet andere Namen: \u20684711\u2069 ist hier \u2068south\u2069.',
  ]);
  expect(await causes.first().locator('.shares').textContent()).toMatch(
    /^Ausgaben .*\s%\), Impressionen .*\s%\)$/,
  );
  const totals = dialog.getByRole('table', { name: 'Summen' });
  expect(await totals.locator('tbody tr').count()).toBe(2);
  expect(await dialog.textContent()).toContain('nicht lesen lassen und mit nichts verglichen sind: 1');
  expect(await dialog.locator('ul[lang=en] li').allTextContents()).toEqual([
    expect.stringContaining('impressions must be a whole number from 0 to 999999999999999, not "many"'),
  ]);
  const rows = dialog.getByRole('table', { name: 'Zeilen, die sich unterscheiden' }).locator('tbody tr');
  expect(await rows.count()).toBeGreaterThan(10);
  expect(await rows.first().textContent()).toContain('nur andere Seite');
  expect(await violations(page, '.reconciled')).toEqual([]);
  expect(browser.complaints).toEqual([]);
});

test('the keyboard alone compares a file, Escape ends it, and a phone has it in its width', async () => {
  const page = await open({ viewport: { width: 390, height: 844 } });
  await tabTo(page, '.actions > button');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Comparison with a file' });
  await dialog.locator('input[type=file]').setInputFiles({
    ...{ name: 'theirs.csv', mimeType: 'text/csv', buffer: Buffer.from(theirs) },
  });
  await tabTo(page, '.reconciled .primary');
  await page.keyboard.press('Enter');
  await dialog.locator('.causes li').first().waitFor();
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(await overflow()).toBeLessThanOrEqual(0);
  expect(await dialog.evaluate((element) => element.scrollWidth - element.clientWidth)).toBeLessThanOrEqual(
    0,
  );
  expect(await violations(page, '.reconciled')).toEqual([]);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  expect(await page.evaluate(() => document.activeElement?.matches('.actions > button'))).toBe(true);
});
