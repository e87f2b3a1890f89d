import type { Page, Request } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { createToken, revokeTokens } from '../../src/accounts/tokens.ts';
import { event, load, loadRows } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';
import { choose, daysAgo, holdNext, visibleRows, whole } from './pages.ts';

const db = useStore();
const service = useService(db);
const browser = useBrowser();
const script = '<script>window.broken = true</script>"><img src=x onerror="window.broken = true">';

beforeAll(async () => {
  await load(db.store, [
    event({
      event_id: 'a',
      event_time: `${daysAgo(1)}T10:00:00Z`,
      advertiser_id: 'both',
      publisher_id: 'both',
      spend: '1.5',
    }),
    event({
      event_id: 'b',
      event_time: `${daysAgo(2)}T10:00:00Z`,
      advertiser_id: 'one',
      publisher_id: 'both',
      campaign_id: 'odd',
    }),
  ]);
  await loadRows(db.store, 'campaigns', [['one', 'odd', script]]);
});

test('a link with a token opens the page signed in, and the token is nowhere in the address', async () => {
  const page = await browser.open(`${service.url}/#token=${await service.token('both')}`);
  await whole(page);
  expect(page.url()).toBe(`${service.url}/app#report=campaigns`);
  expect(await page.evaluate(() => history.length)).toBeLessThan(4);
  expect(await visibleRows(page)).toMatchObject([{ Campaign: 'campaign', Spent: '1.50', Impressions: '1' }]);
  // The account has ad units, too.
  await choose(page, 'Ad units');
  await whole(page);
  expect(await visibleRows(page)).toHaveLength(2);
  await page.goBack();
  await whole(page);
  expect(await visibleRows(page)).toHaveLength(1);
  // Another page of this tab finds the token; another person does not.
  await page.reload();
  await whole(page);
  expect((await browser.open(`${service.url}/app`)).url()).not.toContain('adt_');
  expect(browser.complaints).toEqual([]);
});

test('a token that opens nothing is refused at the door, and the right one is let in', async () => {
  const page = await browser.open(`${service.url}/app`);
  await page.getByLabel('Login token').fill('adt_nothing');
  await page.keyboard.press('Enter');
  await page.getByText('This token opens nothing').waitFor();
  await page.getByLabel('Login token').fill(await service.token('both'));
  await page.keyboard.press('Enter');
  await whole(page);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('You are signed out').waitFor();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  await page.reload();
  await page.getByLabel('Login token').waitFor();
  expect(await page.locator('.said').textContent()).toBe('');
});

test.each([
  ['the rows', (page: Page) => choose(page, 'Device')],
  ['the values of a filter', (page: Page) => page.locator('.filter summary').click()],
])(
  'a token that is revoked while the page is open leads back to the door, with the reason: %s',
  async (_, ask) => {
    const token = await createToken(db.store, { account: 'both', label: 'test' });
    const page = await browser.open(`${service.url}/app#token=${token}`);
    await whole(page);
    await revokeTokens(db.store, { token });
    await expect
      .poll(
        async () =>
          (await service.post('/v1/campaigns', 'both', {}, { authorization: `Bearer ${token}` })).status,
        {
          timeout: 20_000,
        },
      )
      .toBe(401);
    await ask(page);
    await page.getByText('the token has expired or was revoked').waitFor();
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  },
);

test('a token of one family shows that family alone', async () => {
  const token = await createToken(db.store, { account: 'both', label: 'test', family: 'ad_units' });
  const page = await browser.open(`${service.url}/app#token=${token}`);
  await whole(page);
  expect(page.url()).toContain('report=ad_units');
  expect(await page.getByText('Campaigns', { exact: true }).count()).toBe(0);
});

test('a name with markup is a name', async () => {
  const page = await browser.open(`${service.url}/app#token=${await service.token('one')}`);
  await whole(page);
  expect(await visibleRows(page)).toMatchObject([{ Campaign: script }]);
  await choose(page, 'Total');
  await whole(page);
  await page.locator('.bars').waitFor();
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  expect(browser.complaints).toEqual([]);
});

test('two tabs are two sessions', async () => {
  const first = await browser.open(`${service.url}/app#token=${await service.token('one')}`);
  await whole(first);
  const second = await first.context().newPage();
  await second.goto(`${service.url}/app#token=${await service.token('both')}`);
  await whole(second);
  await second.getByRole('button', { name: 'Sign out' }).click();
  await first.reload();
  await whole(first);
  expect(await visibleRows(first)).toMatchObject([{ Campaign: script }]);
});

test('a link with the token of another account asks before it shows that account', async () => {
  const link = async (account: string) =>
    `${service.url}/app#token=${await service.token(account)}&each=total`;
  const page = await browser.open(`${service.url}/app#token=${await service.token('both')}`);
  await whole(page);
  const account = page.locator('.masthead .account bdi');
  const asks = page.getByRole('heading', { name: 'This link opens another account' });
  expect(await account.textContent()).toBe('both');

  // The account that stays has other names.
  await page.goto(`${await link('one')}&only.campaign=${encodeURIComponent(script)}`);
  await asks.waitFor();
  expect(await page.locator('body').innerText()).not.toContain('adt_');
  expect(page.url()).not.toContain('adt_');
  await page.getByRole('button', { name: /Stay with .*both/ }).click();
  await whole(page);
  expect([await account.textContent(), await visibleRows(page)]).toMatchObject(['both', [{ Spent: '1.50' }]]);
  await page.reload();
  await whole(page);
  expect(await account.textContent()).toBe('both');

  // Also where the tab had gone elsewhere meanwhile.
  await page.goto('about:blank');
  await page.goto(await link('one'));
  await asks.waitFor();
  await page.getByRole('button', { name: /Open .*one/ }).click();
  await whole(page);
  expect([await account.textContent(), await visibleRows(page)]).toMatchObject([
    'one',
    [{ Campaign: script }],
  ]);
  expect(browser.complaints).toEqual([]);
});

test('another token of the same account asks nothing, and one that opens nothing changes nothing', async () => {
  const page = await browser.open(`${service.url}/app#token=${await service.token('both')}`);
  await whole(page);
  const other = await createToken(db.store, { account: 'both', label: 'test' });
  await page.goto(`${service.url}/app#token=${other}&each=total`);
  await page.locator('.bars').waitFor();
  expect(await page.evaluate(() => sessionStorage.getItem('adtally-token'))).toBe(other);
  await page.goto(`${service.url}/app#token=adt_nothing&each=day`);
  await page.locator('.chart canvas').waitFor();
  expect(await page.evaluate(() => sessionStorage.getItem('adtally-token'))).toBe(other);
  expect(await page.locator('.account bdi').textContent()).toBe('both');
});

test('what was asked for last is opened, whichever answer comes last', async () => {
  const [one, both] = [await service.token('one'), await service.token('both')];
  const isOne = (request: Request) => request.headers().authorization === `Bearer ${one}`;
  const page = await browser.open(`${service.url}/app`);
  await page.getByLabel('Login token').fill(one);
  const submit = page.getByRole('button', { name: 'Sign in', exact: true });
  const fromTheDoor = await holdNext(page, '**/v1/campaigns', () => submit.click(), isOne);
  await page.goto(`${service.url}/app#token=${both}`);
  await whole(page);
  await fromTheDoor();
  const account = page.locator('.masthead .account bdi');
  expect(await account.textContent()).toBe('both');

  const link = `${service.url}/app#token=${one}`;
  const fromALink = await holdNext(page, '**/v1/campaigns', () => page.goto(link), isOne);
  await page.goto(`${service.url}/app#token=${both}&each=total`);
  await page.locator('.bars').waitFor();
  await fromALink();
  await whole(page);
  expect(await account.textContent()).toBe('both');
  expect(browser.complaints).toEqual([]);
});

test('whoever tries again before the wait is over is let in once', async () => {
  const page = await browser.open('about:blank');
  await page.clock.install();
  await page.route('**/v1/*', (route) =>
    route.fulfill({ status: 429, headers: { 'retry-after': '30' }, json: { detail: 'too many requests' } }),
  );
  await page.goto(`${service.url}/app#token=${await service.token('both')}`);
  await page.getByText(/Trying again in \d/).waitFor();
  await page.unroute('**/v1/*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await whole(page);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.clock.fastForward(60_000);
  // Whatever was asked before has been told then.
  await page.evaluate(() => fetch('/app'));
  expect(asked).not.toContain('/v1/campaigns');
  expect(browser.complaints).toEqual([]);
});
