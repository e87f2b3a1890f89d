import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { startOf } from '../support/compiled.ts';
import { type EventLine, event, ndjson } from '../support/events.ts';
import { csvColumns as columns, countedInReports } from '../support/handed-over.ts';
import { useLoader } from '../support/loader.ts';
import type { Ended } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
let account: string;
let home: string;
const { env, file, run } = useLoader(db, (own) => {
  ({ account, home } = own);
});

const ingest = (...args: string[]): Promise<Ended> => run(['ingest', ...args]);

const counted = () => countedInReports(db, account);

type Cells = Partial<Record<(typeof columns)[number], string | number>>;

/** So many lines of the current account as CSV, the last one with these cells instead. */
function csv(count: number, wrong: Cells = {}): string {
  const lines = Array.from({ length: count }, (_, n): Cells => {
    const line: Cells = { ...event({ event_id: `${account}-${n}`, advertiser_id: account }) };
    return n === count - 1 ? { ...line, ...wrong } : line;
  });
  const rows = lines.map((line) => columns.map((name) => line[name] ?? '').join(','));
  return [columns.join(','), ...rows].map((row) => `${row}\n`).join('');
}

function lines(count: number, last: Partial<Record<keyof EventLine | 'extra', unknown>> = {}): string {
  const good = Array.from({ length: count }, (_, n) =>
    event({ event_id: `${account}-${n}`, advertiser_id: account }),
  );
  const wrong = { ...good.at(-1), ...last };
  return `${ndjson(good.slice(0, -1))}${JSON.stringify(wrong)}\n`;
}

describe('a row that is no event is named with its file, line, field and reason', () => {
  test.each<[Partial<Record<keyof EventLine, unknown>>, string, RegExp]>([
    [{ quantity: 0 }, 'quantity', /whole number from 1 to 4294967295/],
    [{ quantity: 4294967297 }, 'quantity', /4294967295/],
    [{ quantity: 1.5 }, 'quantity', /whole number/],
    [{ event_type: 'click' }, 'event_type', /ad_request, impression, referral, conversion, revenue/],
    [{ event_type: undefined }, 'event_type', /required/],
    [{ event_id: 'x'.repeat(65) }, 'event_id', /64/],
    [{ event_time: '2026-02-30T00:00:00Z' }, 'event_time', /exists/],
    [{ event_time: 17723664 }, 'event_time', /date-time/],
    [{ spend: '1.0000001' }, 'spend', /more than 6 decimal places \(--round-money/],
    [{ campaign_id: undefined }, 'campaign_id', /required beside advertiser_id/],
    [{ device: 'd'.repeat(33) }, 'device', /32/],
    [{ confirmed: 'maybe' }, 'confirmed', /true or false/],
  ])('%j', async (wrong, field, reason) => {
    const path = await file('e.ndjson', lines(3, wrong));
    const { code, stdout, stderr } = await ingest('events', path, '--max-rejects', '0');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`${path} line 3: ${field} `);
    expect(stderr).toMatch(reason);
    expect(await counted()).toBe(0);
  });

  test.each([
    ['{"event_id":', 'the record is not JSON'],
    ['[]', 'the record is not a JSON object'],
    ['3', 'the record is not a JSON object'],
    ['{} {}', 'the record is not JSON'],
  ])('NDJSON: %s', async (wrong, reason) => {
    const path = await file('e.ndjson', `${lines(2)}${wrong}\n`);
    const { code, stderr } = await ingest('events', path, '--max-rejects', '0');
    expect(code).toBe(1);
    expect(stderr).toContain(`${path} line 3: ${reason}`);
    expect(await counted()).toBe(0);
  });

  test('CSV, where a quoted field goes over several lines before it', async () => {
    const early = csv(3).replace(/,campaign,/g, ',"spring\nsale",');
    const path = await file('e.csv', `${early}${csv(1, { quantity: 'many' }).replace(/^.*\n/, '')}`);
    const { code, stderr } = await ingest('events', path, '--max-rejects', '0');
    expect(code).toBe(1);
    expect(stderr).toContain(`${path} line 8: quantity `);
    expect(stderr).toContain('"many"');
  });

  test('CSV with a cell too few', async () => {
    const path = await file('e.csv', `${csv(2)}only,three,cells\n`);
    const { code, stderr } = await ingest('events', path, '--max-rejects', '0');
    expect(code).toBe(1);
    expect(stderr).toMatch(/e\.csv line 4: .*as many cells as the header, 6, not "3"/);
  });

  test.each(['none', 'snappy', 'zstd', 'gzip', 'brotli', 'lz4'] as const)(
    'Parquet packed with %s',
    async (codec) => {
      const { stream } = await db.store.exec({
        query: `SELECT concat('parquet-', toString(number)) AS event_id, now() AS event_time,
                     'impression' AS event_type, {account:String} AS advertiser_id, 'campaign' AS campaign_id,
                     toInt64(if(number = 6, 0, 1)) AS quantity
              FROM numbers(9) FORMAT Parquet`,
        query_params: { account },
        clickhouse_settings: { output_format_parquet_compression_method: codec },
      });
      const path = await file('e.parquet', await buffer(stream));
      const { code, stderr } = await ingest('events', path, '--max-rejects', '0');
      expect(code).toBe(1);
      expect(stderr).toContain(`${path} row 7: quantity `);
      expect(await counted()).toBe(0);
    },
  );
});

describe.each(['csv', 'ndjson'])('a faulty line at the end of a %s', (kind) => {
  const content = (count: number, quantity: number) =>
    kind === 'csv' ? csv(count, { quantity }) : lines(count, { quantity });

  test('leaves the chunks before it loaded, and the corrected file is completed exactly', async () => {
    const path = await file(`e.${kind}`, content(40, 0));
    const failed = await ingest('events', path, '--chunk-bytes', '1000', '--max-rejects', '0');
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain(`line ${kind === 'csv' ? 41 : 40}: quantity`);
    const before = await counted();
    expect(before).toBeGreaterThan(10);
    expect(before).toBeLessThan(40);

    await file(`e.${kind}`, content(40, 1));
    const { code, stdout } = await ingest('events', '--json', path, '--chunk-bytes', '3000');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ rows: 40 - before, repeated_rows: before });
    expect(await counted()).toBe(40);
  });

  test('does not hold up the others where rejected rows are allowed: exit code 4', async () => {
    const path = await file(`e.${kind}`, content(40, 0));
    const { code, stdout, stderr } = await ingest('events', '--json', path);
    expect(code).toBe(4);
    expect(JSON.parse(stdout)).toMatchObject({ rows: 39, rejected_rows: 1 });
    expect(stderr).toContain(`line ${kind === 'csv' ? 41 : 40}: quantity`);
    expect(await counted()).toBe(39);
    const again = await ingest('events', path);
    expect(again.code).toBe(4);
    expect(again.stderr).toContain('1 row rejected before waits');
    expect(await counted()).toBe(39);
  });
});

test('a column that no event has, and one that is missing, are named and nothing is loaded', async () => {
  const unknown = await file('unknown.csv', csv(2).replace('quantity', 'quanity'));
  const missing = await file(
    'missing.csv',
    csv(2)
      .replace('event_time,', '')
      .replaceAll(/^(account[^,]*),[^,]*,/gm, '$1,'),
  );
  for (const [path, column] of [
    [unknown, 'column quanity is not a field'],
    [missing, 'column event_time is missing'],
  ] as const) {
    const { code, stderr } = await ingest('events', path);
    expect(code).toBe(1);
    expect(stderr).toContain(`${path}: ${column}`);
  }
  const field = await file('e.ndjson', lines(2, { extra: 1 }));
  const { stderr } = await ingest('events', field, '--max-rejects', '0');
  expect(stderr).toContain(`${field} line 2: extra is not a field`);
  expect(await counted()).toBe(0);
});

test.each([
  ['nowhere.csv', /nowhere\.csv: there is no such file/],
  ['nowhere-*.csv', /nowhere-\*\.csv: no file there/],
])('%s, which does not exist, is exit code 1', async (name, reason) => {
  const { code, stdout, stderr } = await ingest('events', join(home, name));
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(reason);
});

describe('names', () => {
  const names = () =>
    select<{ id: string; name: string }>(
      db.store,
      `SELECT campaign_id AS id, dictGet('campaign_names', 'name', (account_id, campaign_id)) AS name
       FROM campaigns FINAL WHERE account_id = {account:String} ORDER BY campaign_id`,
      { account },
    );

  test('the last one loaded wins, from CSV and from NDJSON', async () => {
    const first = `account_id,campaign_id,name\n${account},c1,Old\n${account},c2,"Two, ""2"""\n`;
    expect(await ingest('campaigns', await file('n.csv', first))).toMatchObject({ code: 0, stdout: '' });
    const update = { account_id: account, campaign_id: 'c1', name: 'Ünïcode ☃' };
    await ingest('campaigns', await file('n.ndjson', JSON.stringify(update)));
    expect(await names()).toEqual([
      { id: 'c1', name: 'Ünïcode ☃' },
      { id: 'c2', name: 'Two, "2"' },
    ]);
  });

  test.each(['', 'x'.repeat(1025)])('a bad row loads nothing of its list: %j', async (name) => {
    const rows = [...Array.from({ length: 5 }, (_, n) => `c${n},Good`), `c9,${name}`];
    const list = `account_id,campaign_id,name\n${rows.map((row) => `${account},${row}\n`).join('')}`;
    const { code, stderr } = await ingest('campaigns', await file('n.csv', list));
    expect(code).toBe(1);
    expect(stderr).toMatch(/n\.csv.*nothing was loaded/);
    expect(await names()).toEqual([]);
  });
});

test('a list whose reader has enough ends without a word', async () => {
  await db.store.command({
    query: `INSERT INTO rejected_rows (chunk, line, load_id, file, raw)
            SELECT 'long', number, 'long', 'long.csv', repeat('x', 100) FROM numbers(50000)`,
  });
  const list = `set -o pipefail; node ${startOf('src/cli').join(' ')} rejects --json | grep -m 1 long.csv`;
  const options = { env: { ...process.env, ...env() } };
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', list], options);
  expect(JSON.parse(stdout)).toMatchObject({ file: 'long.csv' });
  expect(stderr).toBe('');
});
