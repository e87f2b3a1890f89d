import type { Page } from 'playwright-core';
import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { event, load } from '../support/events.ts';
import { useOpenIdProvider } from '../support/openid-provider.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { violations } from './axe.ts';
import { useBrowser } from './browser.ts';
import { choose, daysAgo, visibleRows, whole } from './pages.ts';

const db = useStore();
const provider = useOpenIdProvider({
  anna: { accounts: 'acme' },
  ben: { accounts: ['acme', 'Größe & Co'] },
  dora: {},
});
const service = useService(db, provider.env());
const browser = useBrowser();

beforeAll(() =>
  load(
    db.store,
    ['acme', 'Größe & Co'].map((advertiser_id, n) =>
      event({
        event_id: advertiser_id,
        event_time: `${daysAgo(1)}T10:00:00Z`,
        advertiser_id,
        campaign_id: `of ${advertiser_id}`,
        spend: `${n + 1}.5`,
      }),
    ),
  ),
);
afterEach(() => {
  vi.useRealTimers();
  provider.hold(false);
});

const door = (page: Page) => page.getByRole('link', { name: `Sign in with ${provider.host}` });
/** What whoever is at the provider types. */
const enter = async (page: Page, person: string) => {
  await page.getByLabel('Name').fill(person);
  await page.keyboard.press('Enter');
};
const open = async (hash = '', options = {}) => {
  const page = await browser.open(`${service.url}/app${hash}`, options);
  await door(page).waitFor();
  return page;
};
const signedIn = async (person: string, hash = '', options = {}) => {
  const page = await open(hash, options);
  await door(page).click();
  await enter(page, person);
  return page;
};
const account = (page: Page) => page.locator('.masthead .account');
const signOut = async (page: Page, where: string) => {
  await page.getByText('Sign out', { exact: true }).click();
  await page.getByRole('button', { name: where }).click();
};

test('a person signs in without a token, comes to the report that the address names, and out again', async () => {
  const page = await signedIn('anna', '#report=campaigns&each=total');
  await whole(page);
  expect(page.url()).toBe(`${service.url}/app#report=campaigns&each=total`);
  expect(await visibleRows(page)).toMatchObject([{ Campaign: 'of acme', Spent: '1.50' }]);
  expect(await account(page).textContent()).toBe('Account acme');
  const download = page.waitForEvent('download');
  await page.locator('.take > summary').click();
  await page.getByRole('button', { name: 'CSV', exact: true }).click();
  expect((await download).suggestedFilename()).toContain('.csv');
  await page.reload();
  await whole(page);
  const other = await page.context().newPage();
  await other.goto(`${service.url}/app`);
  await whole(other);

  await signOut(page, 'In this browser');
  await page.getByText('You are signed out here').waitFor();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  await choose(other, 'Total');
  await other.getByText('Your session has ended').waitFor();
  await page.reload();
  await door(page).waitFor();
  expect(await page.locator('.said').textContent()).toBe('');
  expect(browser.complaints).toEqual([]);
});

test('a person with several accounts chooses one, and changes to another', async () => {
  const page = await signedIn('ben', '', { bypassCSP: true });
  await page.getByRole('heading', { name: 'Choose an account' }).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Größe & Co' }).click();
  await whole(page);
  expect(await visibleRows(page)).toMatchObject([{ Campaign: 'of Größe & Co' }]);
  // The other account has no campaign of this name.
  await page.locator('regular-table tbody th', { hasText: 'of Größe' }).click();
  await page.waitForURL(/only\.campaign/);
  await whole(page);
  await choose(page, 'Total');
  await whole(page);
  await page.getByLabel('Account').selectOption('acme');
  await page.getByText('of acme').first().waitFor();
  await whole(page);
  expect(await visibleRows(page)).toMatchObject([{ Campaign: 'of acme' }]);
  // Nor do steps that were taken before the change filter by it.
  await page.goBack();
  await page.waitForURL((url) => !url.hash.includes('each='));
  await whole(page);
  expect(await visibleRows(page)).toMatchObject([{ Campaign: 'of acme' }]);
  expect(await page.locator('.unread').isVisible()).toBe(false);
  await page.getByText('Sign out', { exact: true }).click();
  expect(await violations(page)).toEqual([]);
  // A tab stays with its account.
  await page.reload();
  await whole(page);
  expect(await page.getByLabel('Account').inputValue()).toBe('acme');
  // Also where it was asked to go to another one.
  await page.goto('about:blank');
  await page.goto(`${service.url}/app#token=${await service.token('Größe & Co')}`);
  await page.getByRole('button', { name: /Stay with .*acme/ }).click();
  await whole(page);
  expect(await page.getByLabel('Account').inputValue()).toBe('acme');
  // Nor does what was chosen before a sign-in at the provider filter another account.
  await page.locator('regular-table tbody th', { hasText: 'of acme' }).click();
  await page.waitForURL(/only\.campaign/);
  await signOut(page, 'In this browser');
  await door(page).click();
  await page.getByRole('button', { name: 'Größe & Co' }).click();
  await whole(page);
  expect(await visibleRows(page)).toMatchObject([{ Campaign: 'of Größe & Co' }]);
});

test('nobody is taken for a stranger while the service cannot tell who they are', async () => {
  const page = await signedIn('anna');
  await whole(page);
  const tab = await page.context().newPage();
  const body = '{"detail":"the service cannot tell"}';
  await tab.route('**/auth/session', (route) =>
    route.fulfill({ status: 500, contentType: 'application/problem+json', body }),
  );
  await tab.goto(`${service.url}/app`);
  await tab.getByText('the service cannot tell').waitFor();
  await tab.getByText('The service cannot say who is signed in').waitFor();
  // A proxy may answer with a page of its own.
  await tab.route('**/auth/session', (route) => route.fulfill({ contentType: 'text/html', body: '<h1>' }));
  await tab.reload();
  await tab.getByText('a network may want you to sign in').waitFor();
  expect(await door(tab).count()).toBe(0);
  expect(await tab.getByRole('button', { name: 'Or with a token' }).count()).toBe(1);
  await tab.unroute('**/auth/session');
  await tab.getByRole('button', { name: 'Try again' }).click();
  await whole(tab);
});

test('a session that ends while a report is open asks to sign in again, and keeps what was chosen', async () => {
  const page = await signedIn('ben');
  await page.getByRole('button', { name: 'Größe & Co' }).click();
  await whole(page);
  await choose(page, 'Total');
  await whole(page);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 9 * 3_600_000 });
  await choose(page, 'Device');
  await page.getByText('Your session has ended').waitFor();
  vi.useRealTimers();
  const chosen = page.url();
  expect(chosen).toMatch(/by=device/);
  await door(page).click();
  // At the provider the person is still signed in.
  await whole(page);
  expect(page.url()).toBe(chosen);
  expect(await visibleRows(page)).toMatchObject([{ Campaign: 'of Größe & Co', Device: 'unknown' }]);
});

test('whoever signs out everywhere is signed out in another browser, too', async () => {
  const [here, there] = [await signedIn('ben'), await signedIn('ben')];
  for (const page of [here, there]) {
    await page.getByRole('button', { name: 'acme' }).click();
    await whole(page);
  }
  await signOut(here, 'Everywhere');
  await here.getByText('signed out in every browser').waitFor();
  await choose(there, 'Total');
  await there.getByText('Your session has ended').waitFor();
});

test('the door says why nobody was let in, and has nothing that axe finds', async () => {
  const page = await signedIn('dora', '#report=campaigns&each=total', { bypassCSP: true });
  await page.getByText('no account is open to you here').waitFor();
  expect(page.url()).toBe(`${service.url}/app#report=campaigns&each=total`);
  expect(await violations(page)).toEqual([]);
  const other = await open();
  await door(other).click();
  await enter(other, '');
  await other.getByText('You were not signed in').waitFor();
  await door(other).click();
  await other.getByLabel('Name').waitFor();
  provider.hold(true);
  await other.goto(`${service.url}/auth/callback?state=late`);
  await other.getByText('This attempt to sign in is over').waitFor();
  // Whoever has a token needs no provider.
  await other.getByLabel('Login token').fill(await service.token('acme'));
  await other.keyboard.press('Enter');
  await whole(other);
  await other.getByRole('button', { name: 'Sign out' }).click();
  await other.getByText('You are signed out.').waitFor();
});
