import { execFile } from 'node:child_process';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startOf } from '../support/compiled.ts';
import { type EventLine, event } from '../support/events.ts';
import { csv, useHandedOver } from '../support/handed-over.ts';
import { environmentOf } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const handed = useHandedOver(db);
const { file, ingest, counted, events } = handed;

/** What is told of the rows of these files that are rejected, each without the words before its place. */
async function toldOf(...paths: string[]): Promise<string[]> {
  const { code, stderr } = await ingest(['events', ...paths]);
  expect(code, stderr).toBe(4);
  const told = stderr.split('\n').filter((line) => line.startsWith('rejected: '));
  return told.map((line) => line.replace('rejected: ', ''));
}

const wrong: readonly (readonly [string | Partial<Record<keyof EventLine, unknown>>, string])[] = [
  [{ quantity: 0 }, 'quantity .*whole number from 1 to 4294967295'],
  [{ quantity: 4294967297 }, 'quantity .*4294967295'],
  [{ quantity: 1.5 }, 'quantity .*whole number'],
  [{ event_type: 'click' }, 'event_type .*ad_request, impression, referral, conversion, revenue'],
  [{ event_type: undefined }, 'event_type .*required'],
  [{ event_id: 'x'.repeat(65) }, 'event_id .*64'],
  [{ event_time: '2026-02-30T00:00:00Z' }, 'event_time .*exists'],
  [{ event_time: 17723664 }, 'event_time .*date-time'],
  [{ spend: '1.0000001' }, 'spend .*more than 6 decimal places \\(--round-money'],
  [{ campaign_id: undefined }, 'campaign_id .*required beside advertiser_id'],
  [{ device: 'd'.repeat(33) }, 'device .*32'],
  [{ confirmed: 'maybe' }, 'confirmed .*true or false'],
  ['{"event_id":', 'the record is not JSON'],
  ['[]', 'the record is not a JSON object'],
  ['3', 'the record is not a JSON object'],
  ['{} {}', 'the record is not JSON'],
];

test('a row that is no event is named with its file, line, field and reason', async () => {
  for (const some of [wrong.slice(0, 10), wrong.slice(10)]) {
    const lines = some.map(([each]) =>
      typeof each === 'string' ? each : JSON.stringify({ ...events(1)[0], ...each }),
    );
    const path = await file(`${some.length}.ndjson`, `${lines.join('\n')}\n`);
    expect(await toldOf(path)).toEqual(
      some.map(([, reason], n) => expect.stringMatching(new RegExp(`^${path} line ${n + 1}: ${reason}`))),
    );
  }
  const short = await file('e.csv', `${csv(events(2))}only,three,cells\n`);
  expect(await toldOf(short)).toEqual([
    expect.stringMatching(/e\.csv line 4: .*as many cells as the header, 6, not "3"/),
  ]);
});

test('a row of Parquet is named by its number, however it is packed', async () => {
  const codecs = ['none', 'snappy', 'zstd', 'gzip', 'brotli', 'lz4'] as const;
  const paths: string[] = [];
  for (const codec of codecs) {
    const { stream } = await db.store.exec({
      query: `SELECT concat('${codec}-', toString(number)) AS event_id, now() AS event_time,
                     'impression' AS event_type, {account:String} AS advertiser_id, 'campaign' AS campaign_id,
                     toInt64(if(number = 6, 0, 1)) AS quantity
              FROM numbers(9) FORMAT Parquet`,
      query_params: { account: handed.own.account },
      clickhouse_settings: { output_format_parquet_compression_method: codec },
    });
    paths.push(await file(`${codec}.parquet`, await buffer(stream)));
  }
  const told = await toldOf(...paths);
  expect(told.map((line) => line.replace(/: quantity .*/, '')).sort()).toEqual(
    paths.map((path) => `${path} row 7`).sort(),
  );
  expect(await counted()).toBe(8 * codecs.length);
});

test('a faulty line at the end of a CSV leaves the chunks before it loaded, and the corrected file is completed exactly', async () => {
  const lines = events(40);
  const bad = lines.with(-1, { ...(lines[39] ?? event()), quantity: 0 });
  const path = await file('e.csv', csv(bad));
  const failed = await ingest(['events', path, '--chunk-bytes', '1000', '--max-rejects', '0']);
  expect(failed.code).toBe(1);
  expect(failed.stderr).toContain('line 41: quantity');
  const before = await counted();
  expect(before).toBeGreaterThan(10);
  expect(before).toBeLessThan(40);
  await file('e.csv', csv(lines));
  expect(await handed.loaded([path, '--chunk-bytes', '3000'])).toMatchObject({
    rows: 40 - before,
    repeated_rows: before,
  });
  expect(await counted()).toBe(40);
});

test('a list whose reader has enough ends without a word', async () => {
  await db.store.command({
    query: `INSERT INTO rejected_rows (chunk, line, load_id, file, raw)
            SELECT 'long', number, 'long', 'long.csv', repeat('x', 100) FROM numbers(50000)`,
  });
  const list = `set -o pipefail; node ${startOf('src/cli').join(' ')} rejects --json | grep -m 1 long.csv`;
  const options = { env: { ...process.env, ...environmentOf(db.address) } };
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', list], options);
  expect(JSON.parse(stdout)).toMatchObject({ file: 'long.csv' });
  expect(stderr).toBe('');
});
