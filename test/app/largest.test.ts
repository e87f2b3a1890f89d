import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { seededRandom, testSeed } from '../support/random.ts';
import { type Report, useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';
import { jumps, longTasks, plain, settled, shownDay, totalsRow, whole } from './pages.ts';

const account = 'large';
const path = '/v1/campaigns/breakdowns/device_creative_date';
const rowsOfDay = 300;
const start = '2025-01-01';
const end = '2025-12-31';
const rows = 365 * rowsOfDay;
/** Rows that are compared cell by cell, at least. */
const compared = 1_000;

const db = useStore();
const service = useService(db);
const browser = useBrowser();
let report: Report;

beforeAll(async () => {
  await db.store.command({
    query: `INSERT INTO campaigns_device_creative_date
              (account_id, day, campaign_id, device, creative_id, impressions, referrals, conversions, spent)
            SELECT {account:String}, toDate({start:String}) + intDiv(number, ${rowsOfDay}),
              concat('campaign-', toString(intDiv(number, 30) % 30)), ['desktop', 'mobile', 'tablet'][1 + intDiv(number, 10) % 3],
              concat('creative-', toString(intDiv(number, 30) % 30), '-', toString(number % 10)),
              cityHash64(number) % 100000, cityHash64(number, 1) % 1000, cityHash64(number, 2) % 50,
              toDecimal128(cityHash64(number, 3) % 10000000000, 6) / 1000000
            FROM numbers({rows:UInt32})`,
    query_params: { account, start, rows },
  });
  report = await service.report(path, account, start, end);
});

test(`${rows} rows: every cell of ${compared} (seed ${testSeed}), and totals to the last digit`, async () => {
  const random = seededRandom(testSeed);
  expect(report.rows).toHaveLength(rows);
  const token = await service.token(account);
  const page = await browser.open(
    `${service.url}/app#token=${token}&by=device,creative&days=${start}/${end}`,
  );
  await whole(page);
  const seen = new Set(await compare(page, 1));
  while (seen.size < compared) for (const row of await compare(page, random())) seen.add(row);
  const spent = report.rows.reduce((sum, row) => sum + BigInt(Math.round(Number(row.spent) * 1e6)), 0n);
  const total = await totalsRow(page);
  expect(BigInt(plain(total.Spent ?? '').replace('.', ''))).toBe(spent);
  const impressions = report.rows.reduce((sum, row) => sum + Number(row.impressions), 0);
  expect(Number(plain(total.Impressions ?? ''))).toBe(impressions);
  await measure(page, token);
  expect(await jumps(page)).toEqual([]);
  expect(browser.complaints).toEqual([]);
});

/** How long the browser takes for an answer that nobody reads, ms: what no page can be faster than. */
function unread(page: Page, token: string, body: string): Promise<number> {
  return page.evaluate(
    async ([address, token, body]) => {
      const began = performance.now();
      const accept = 'application/vnd.apache.arrow.stream';
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept };
      const answer = await fetch(address, { method: 'POST', headers, body, cache: 'no-store' });
      const reader = answer.body?.getReader();
      while (reader && !(await reader.read()).done);
      return performance.now() - began;
    },
    [path, token, body] as const,
  );
}

/** Prints how long all rows take beside the same answer to curl, and what the tab takes; how long is no verdict here. */
async function measure(page: Page, token: string): Promise<void> {
  // As the page asks.
  const body = JSON.stringify({ start_time: start, end_time: end, ids: true });
  const began = performance.now();
  await promisify(execFile)('curl', [
    ...['-sS', '--compressed', '--fail', '-o', '/dev/null', `${service.url}${path}`],
    ...['-H', `authorization: Bearer ${token}`, '-H', 'content-type: application/json'],
    ...['-H', 'accept: application/vnd.apache.arrow.stream'],
    ...['-d', body],
  ]);
  const curl = performance.now() - began;
  await page.reload();
  await whole(page);
  const [asked = 0, first = 0, all = 0] = await page.evaluate(() =>
    ['asked', 'first rows', 'all rows'].map((name) => performance.getEntriesByName(name)[0]?.startTime),
  );
  const times = (ms: number) => `${ms.toFixed(0)} ms, ${(ms / curl).toFixed(2)} times`;
  const alone = times(await unread(page, token, body));
  console.log(
    `curl ${curl.toFixed(0)} ms; first rows ${times(first - asked)}, all ${times(all - asked)}, unread in the browser ${alone}`,
  );
  const frames = await scroll(page);
  console.log(`memory of the tab: ${await tabMegabytes()} MB`);
  console.log(
    `tasks of more than 50 ms: ${(await longTasks(page)).map((ms) => ms.toFixed(0)).join(', ') || 'none'}`,
  );
  console.log(`longest frame while scrolling: ${Math.max(...frames).toFixed(0)} ms of ${frames.length}`);
}

/** Resident memory of the largest tab of this machine, MB. */
async function tabMegabytes(): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'rss,args']);
  const tabs = stdout.split('\n').filter((line) => line.includes('--type=renderer'));
  return Math.max(...tabs.map((line) => Math.round((Number.parseInt(line, 10) * 1024) / 1e6)));
}

/** Scrolls so far down and compares the rows in sight. Returns their numbers. */
async function compare(page: Page, place: number): Promise<number[]> {
  await page.evaluate((share) => {
    const table = document.querySelector('regular-table');
    if (table) table.scrollTop = share * (table.scrollHeight - table.clientHeight);
  }, place);
  await settled(page);
  const seen = await page.evaluate(() => {
    const table = document.querySelector('regular-table table') as HTMLTableElement;
    const ids = [...(table.tHead?.rows[0]?.cells ?? [])].map(
      (cell) => cell.querySelector('button')?.dataset.column ?? '',
    );
    return [...(table.tBodies[0]?.rows ?? [])].map((row) => ({
      index: Number(row.getAttribute('aria-rowindex')) - 3,
      cells: [...row.cells].map((cell, n) => {
        // What is not in view of a number is there on hover.
        const whole = cell.matches('.number') && cell.title;
        return [ids[n] ?? '', whole || (cell.textContent ?? '')] as const;
      }),
    }));
  });
  expect(seen.length).toBeGreaterThan(5);
  for (const { index, cells } of seen) {
    const row = report.rows[index];
    const shown = cells.map(([id, text]) => [id, typeof row?.[id] === 'number' ? Number(plain(text)) : text]);
    const asked = (id: string) => (id === 'start_time' ? shownDay(String(row?.[id])) : row?.[id]);
    expect(shown, `row ${index}`).toEqual(cells.map(([id]) => [id, asked(id)]));
  }
  return seen.map(({ index }) => index);
}

/** From the first row to the last in two seconds; how long each frame took, ms. */
function scroll(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const table = document.querySelector('regular-table') as HTMLElement;
    const frames: number[] = [];
    const began = performance.now();
    let before = began;
    for (;;) {
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      frames.push(now - before);
      before = now;
      const share = (now - began) / 2000;
      table.scrollTop = share * table.scrollHeight;
      if (share >= 1) return frames.slice(1);
    }
  });
}
