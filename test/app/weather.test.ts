import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { insertLarge } from '../support/accounts.ts';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { violations } from './axe.ts';
import { useBrowser } from './browser.ts';
import { choose, daysAgo, totalsRow, visibleRows, whole } from './pages.ts';

/** What becomes of an answer between the service and the browser. */
type Weather = 'fair' | 'cut' | 'failed' | 'held' | 'limited' | 'silent';

const db = useStore();
const service = useService(db);
const limited = useService(db, { RATE_LIMIT_REQUESTS: '5', RATE_LIMIT_WINDOW_SECONDS: '15' });
const browser = useBrowser();
let weather: Weather = 'fair';
/** Lets an answer that is held, or the rest of it, go. */
let release: () => void = () => {};
/** The paths of the reports that were asked for. */
const asked: string[] = [];
let between: Server;
let url = '';

beforeAll(async () => {
  await load(db.store, [
    event({ event_id: 'w', event_time: `${daysAgo(1)}T10:00:00Z`, advertiser_id: 'acme', spend: '2.25' }),
  ]);
  await insertLarge(db.store, ['acme'], 60_000);
  between = createServer(pass).listen(0, '127.0.0.1');
  await once(between, 'listening');
  url = `http://127.0.0.1:${(between.address() as AddressInfo).port}`;
});
beforeEach(() => {
  weather = 'fair';
  asked.length = 0;
});
afterAll(() => {
  between.closeAllConnections();
  between.close();
});

function pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const isReport =
    incoming.method === 'POST' && !['/v1/campaigns', '/v1/ad_units'].includes(incoming.url ?? '');
  if (isReport) asked.push(incoming.url ?? '');
  if (isReport && weather === 'limited') {
    outgoing.writeHead(429, { 'content-type': 'application/problem+json', 'retry-after': '30' });
    outgoing.end('{"detail":"too many requests"}');
    return;
  }
  if (isReport && weather === 'failed') {
    outgoing.writeHead(500, { 'content-type': 'application/problem+json', 'x-request-id': 'of-the-gateway' });
    outgoing.end('{"detail":"the gateway is out of order"}');
    return;
  }
  if (isReport && weather === 'silent') {
    release = () => pass(incoming, outgoing);
    return;
  }
  const { headers, method } = incoming;
  const onward = request(service.url + incoming.url, { method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
    if (isReport && weather === 'held') {
      void buffer(answer).then((whole) => {
        const part = Math.floor(whole.length * 0.9);
        outgoing.write(whole.subarray(0, part));
        release = () => void outgoing.end(whole.subarray(part));
      });
      return;
    }
    if (!isReport || weather !== 'cut') {
      answer.pipe(outgoing);
      return;
    }
    // The first piece arrives, then the connection is gone.
    answer.once('data', (piece) => outgoing.write(piece, () => outgoing.destroy()));
  });
  incoming.pipe(onward);
}

/** axe is no script of the page, whose policy would refuse it. */
const withAxe = { bypassCSP: true };
const year = 'by=device,creative&days=2026-01-01/2026-01-31';

test('a transfer that breaks off says so and shows no part of the report; the next one is whole', async () => {
  weather = 'cut';
  const page = await browser.open(`${url}/app#token=${await service.token('acme')}&${year}`, withAxe);
  await page.getByText('The transfer broke off').waitFor();
  expect(await page.locator('regular-table').isVisible()).toBe(false);
  expect(await page.locator('.cards').isVisible()).toBe(false);
  expect(await violations(page)).toEqual([]);
  weather = 'fair';
  await page.getByRole('button', { name: 'Try again' }).click();
  await whole(page);
  await page.getByText('60,000 rows', { exact: true }).waitFor();
  expect(browser.complaints).toEqual([]);
});

test('rows are there to be read while others arrive, and their totals only when all have', async () => {
  weather = 'held';
  const page = await browser.open(`${url}/app#token=${await service.token('acme')}&${year}`);
  const progress = page.getByText(/^[\d,]+ rows, [\d.]+ [kM]B; more are arriving$/);
  await progress.waitFor();
  const arrived = Number((await progress.textContent())?.split(' ')[0]?.replaceAll(',', ''));
  expect(arrived).toBeGreaterThan(1_000);
  expect(arrived).toBeLessThan(60_000);
  expect((await visibleRows(page)).length).toBeGreaterThan(5);
  expect(
    Object.values(await totalsRow(page))
      .join('')
      .trim(),
  ).toBe('');
  // What may be of the question before is paler.
  const paleness = () => page.locator('.chart').evaluate((chart) => Number(getComputedStyle(chart).opacity));
  expect(await paleness()).toBeLessThan(1);
  release();
  await whole(page);
  expect(await paleness()).toBe(1);
  await page.getByText('60,000 rows', { exact: true }).waitFor();
  expect((await totalsRow(page)).Day).toBe('Total');
  expect(browser.complaints).toEqual([]);
});

test('a failure of the service names the request, and offers to try again', async () => {
  const page = await browser.open(`${url}/app#token=${await service.token('acme')}`, withAxe);
  await whole(page);
  weather = 'failed';
  await choose(page, 'Device');
  await page.getByText('The report failed').waitFor();
  await page.getByText('the gateway is out of order').waitFor();
  await page.getByText('Request of-the-gateway').waitFor();
  expect(await violations(page)).toEqual([]);
  expect(await page.locator('regular-table').isVisible()).toBe(false);
  weather = 'fair';
  await page.getByRole('button', { name: 'Try again' }).click();
  await whole(page);
  expect(await visibleRows(page)).toHaveLength(1);
});

test('without a connection the page waits for it, and then goes on by itself', async () => {
  const page = await browser.open(`${url}/app#token=${await service.token('acme')}`, withAxe);
  await whole(page);
  await page.context().setOffline(true);
  await page.locator('.take summary').click();
  await page.getByRole('button', { name: 'Parquet', exact: true }).click();
  await page.getByText('The service cannot be reached. Check your connection.', { exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await choose(page, 'Device');
  await page.locator('.notice').getByText('The service cannot be reached').waitFor();
  await page.getByText('The page tries again by itself').waitFor();
  expect(await violations(page)).toEqual([]);
  await page.context().setOffline(false);
  await whole(page);
  await page.locator('regular-table').waitFor();
});

test('the page of a proxy is taken for no report, no file, no explanation and no account', async () => {
  const page = await browser.open(`${url}/app#token=${await service.token('acme')}`);
  await whole(page);
  const answer = { status: 200, contentType: 'text/html', body: '<h1>Sign in to the network</h1>' };
  await page.route('**/v1/**', (route) => route.fulfill(answer));
  await page.locator('.take summary').click();
  await page.getByRole('button', { name: 'CSV', exact: true }).click();
  const why = 'Something else than the service answered';
  await page.locator('.take').getByText(why).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('regular-table tbody td').first().click();
  await page.getByRole('dialog').getByText(why).waitFor();
  await page.keyboard.press('Escape');
  await choose(page, 'Device');
  await page.locator('.notice').getByText(why).waitFor();
  await page.reload();
  await page.locator('.notice').getByText(why).waitFor();
  await page.unroute('**/v1/**');
  await page.getByRole('button', { name: 'Try again' }).click();
  await whole(page);
  expect(browser.complaints).toEqual([]);
});

test('past the request limit it counts down, and then goes on by itself', async () => {
  const page = await browser.open(`${limited.url}/app#token=${await limited.token('acme')}`, withAxe);
  await whole(page);
  await choose(page, 'Device');
  await whole(page);
  await choose(page, 'Creative');
  await page.getByText(/Trying again in \d/).waitFor();
  expect(await violations(page, '.notice')).toEqual([]);
  await whole(page);
  expect(await visibleRows(page)).toHaveLength(1);
});

test('the wait for a place ends with its question: another one is asked once, and is not broken off', async () => {
  const page = await browser.open(`${url}/app#token=${await service.token('acme')}`);
  await whole(page);
  await page.clock.install();
  weather = 'limited';
  await choose(page, 'Device');
  await page.getByText(/Trying again in \d/).waitFor();
  expect(await page.locator('.notice .detail').textContent()).toBe('too many requests');
  weather = 'silent';
  await choose(page, 'Creative');
  const path = '/v1/campaigns/breakdowns/device_creative_date';
  await expect.poll(() => asked.at(-1)).toBe(path);
  await page.clock.fastForward(60_000);
  expect(await page.getByText(/Trying again/).count()).toBe(0);
  weather = 'fair';
  release();
  await whole(page);
  // The second time is that of its release.
  expect(asked.filter((each) => each === path)).toHaveLength(2);
  expect(browser.complaints).toEqual([]);
});

test('what cannot be listed or downloaded says why, and is not taken for nothing', async () => {
  const page = await browser.open(`${url}/app#token=${await service.token('acme')}`);
  await whole(page);
  weather = 'failed';
  await page.locator('.filter summary').click();
  await page.getByLabel('Field').selectOption('device');
  const why = 'The report failed. the gateway is out of order';
  await page.locator('.filter').getByText(why).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.take summary').click();
  await page.getByRole('button', { name: 'Parquet', exact: true }).click();
  await page.locator('.take').getByText(why).waitFor();
});
