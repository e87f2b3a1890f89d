import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import zlib from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { createToken } from '../../../src/accounts/tokens.ts';
import {
  type Command,
  environmentOf,
  listening,
  openReport,
  peakMemoryMb,
  startProcess,
  useCommands,
} from '../../support/process.ts';
import { useStore } from '../../support/store.ts';
import { reportsRunning } from '../report-statements.ts';

const db = useStore();
const commands = useCommands();

/** 100 days × 25 campaigns × 3 devices × 48 creatives. */
const rows = 360_000;
const money = (n: number) => BigInt(n % 100_003) * 1_000_001n;

let serve: Command;
let url: string;
let token: string;

beforeAll(async () => {
  await db.store.command({
    query: `INSERT INTO campaigns_device_creative_date
            SELECT 'large' AS account_id, toDate('2026-01-01') + intDiv(number, 3600) AS day,
                   concat('campaign-', leftPad(toString(intDiv(number, 144) % 25), 4, '0')) AS campaign_id,
                   ['desktop', 'mobile', 'tablet'][1 + intDiv(number, 48) % 3] AS device,
                   concat('creative-', leftPad(toString(number % 48), 60, '0')) AS creative_id,
                   number % 9973 AS impressions, number % 7 AS conversions, number % 101 AS referrals,
                   toDecimal128(number % 100003, 6) * toDecimal128('1.000001', 6) AS spent,
                   toDateTime64(0, 6) AS unconfirmed_at
            FROM numbers(${rows})`,
  });
  token = await createToken(db.store, { account: 'large', label: '' });
  serve = commands.start(['serve'], { PORT: '0', ...environmentOf(db.address) });
  url = await listening(serve);
});

interface Row {
  start_time: string;
  campaign: string;
  device: string;
  creative_id: string;
  impressions: number;
  conversions: number;
  referrals: number;
  spent: number;
}

test('the first row is there long before the last, and no row is missing or doubled', async () => {
  let share = 1;
  let body = Buffer.alloc(0);
  // A busy machine can hold up one of them.
  for (let round = 0; round < 3 && share >= 0.5; round++) {
    const startedAt = performance.now();
    const answer = await openReport(url, { token });
    expect(answer.statusCode).toBe(200);
    await once(answer, 'readable');
    const firstByteMs = performance.now() - startedAt;
    body = await buffer(answer);
    const totalMs = performance.now() - startedAt;
    share = firstByteMs / totalMs;
    console.info(`${body.length >> 20} MiB: first byte ${firstByteMs | 0} ms, last ${totalMs | 0} ms`);
  }
  expect(share).toBeLessThan(0.5);

  const { result } = JSON.parse(body.toString()) as { result: { rows: Row[] } };
  expect(result.rows).toHaveLength(rows);
  const keys = result.rows.map((row) => [row.start_time, row.campaign, row.device, row.creative_id].join());
  expect(keys.findIndex((key, n) => n > 0 && key <= (keys[n - 1] ?? ''))).toBe(-1);
  const found = { impressions: 0, conversions: 0, referrals: 0, spent: 0n };
  const wanted = { impressions: 0, conversions: 0, referrals: 0, spent: 0n };
  for (const [n, row] of result.rows.entries()) {
    found.impressions += row.impressions;
    found.conversions += row.conversions;
    found.referrals += row.referrals;
    found.spent += BigInt(Math.round(row.spent * 1e6));
    wanted.impressions += n % 9973;
    wanted.conversions += n % 7;
    wanted.referrals += n % 101;
    wanted.spent += money(n);
  }
  expect(found).toEqual(wanted);
});

test('the answer begins while the statement still runs', async () => {
  const answer = await openReport(url, { token });
  await once(answer, 'readable');
  // Nothing is read: the statement cannot end, because its answer is larger than every buffer on the way.
  expect(await reportsRunning(db.store)).toHaveLength(1);
  // All that has come; of a given length there may not be enough yet.
  expect(answer.read().toString()).toMatch(/^\{"result":\{"last_update_time":"/);
  expect((await buffer(answer)).length).toBeGreaterThan(50e6);
});

test('every coding carries the same answer, and another JSON reader accepts it', async () => {
  const ask = { token, end: '2026-01-10' };
  const plain = await unpacked(await openReport(url, ask));
  for (const coding of ['gzip', 'br', 'zstd']) {
    const answer = await openReport(url, { ...ask, accept: coding });
    expect(answer.headers['content-encoding']).toBe(coding);
    expect(answer.headers.vary).toMatch(/accept-encoding/i);
    expect((await unpacked(answer)) === plain, `${coding} differs`).toBe(true);
  }
  const count = 'import json, sys; print(len(json.load(sys.stdin)["result"]["rows"]))';
  const { stdout } = await startProcess('python3', ['-c', count], {}, plain).ended;
  expect(stdout.trim()).toBe(String(10 * 3_600));
});

test.each([
  [undefined, undefined],
  ['', undefined],
  ['identity', undefined],
  ['deflate', undefined],
  ['gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['gzip, deflate, br, zstd', 'zstd'],
  ['br;q=0.9, gzip;q=0.5', 'br'],
  ['br;q=0.2, gzip;q=0.5', 'gzip'],
  ['zstd;q=0, gzip', 'gzip'],
  ['gzip;q=0', undefined],
  ['gzip;q=0.1, identity', undefined],
  ['*;q=0.1, zstd;q=0, br;q=0', 'gzip'],
])('the caller chooses the coding: Accept-Encoding %s gives %s', async (accept, coding) => {
  const answer = await openReport(url, { token, end: '2026-01-01', ...(accept !== undefined && { accept }) });
  expect(answer.headers['content-encoding']).toBe(coding);
  const body = await unpack(await buffer(answer), coding);
  expect(JSON.parse(body.toString()).result.rows).toHaveLength(3600);
});

test('the memory of the service grows neither with the answer nor with slow callers', async () => {
  const alone = peakMemoryMb(serve.pid);
  const answers = await Promise.all([
    ...['identity', 'gzip', 'zstd'].map((accept) => openReport(url, { token, accept })),
    openReport(url, { token, format: 'xlsx' }),
  ]);
  for (const answer of answers) for await (const _ of answer);
  const together = peakMemoryMb(serve.pid);
  console.info(`at most ${alone | 0} MB for one caller at a time, ${together | 0} MB for four`);
  expect(alone).toBeGreaterThan(20);
  expect(alone).toBeLessThan(200);
  // One answer is larger than that.
  expect(together - alone).toBeLessThan(100);
});

/** The text of an answer without the time of its request. */
async function unpacked(answer: IncomingMessage): Promise<string> {
  const body = await unpack(await buffer(answer), answer.headers['content-encoding']);
  return body.toString().replace(/("last_update_time":")[^"]*/, '$1');
}

async function unpack(body: Buffer, coding = 'identity'): Promise<Buffer> {
  switch (coding) {
    case 'gzip':
      return zlib.gunzipSync(body);
    case 'br':
      return zlib.brotliDecompressSync(body);
    case 'zstd':
      // Node reads it from version 22.15 on only.
      return Buffer.from((await startProcess('zstd', ['-dc'], {}, body).ended).stdout);
    default:
      return body;
  }
}
