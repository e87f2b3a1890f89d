import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { connect, select } from '../../clickhouse/client.ts';
import { type Command, listening, startProcess, useCommands } from '../support/process.ts';

vi.setConfig({ testTimeout: 180_000 });

const commands = useCommands();
const accounts = ['northwind-outdoor', 'daily-harbor', 'luma-cosmetics', 'pixelplay-games'];
const sample = 500_000;

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'adtally-demo-'));
});
afterEach(async () => {
  await commands.killAll();
  await vi.waitUntil(() => engineUrl() === undefined, { timeout: 30_000 });
  rmSync(dataDir, { recursive: true, maxRetries: 20 });
});

const demo = (): Command => commands.start(['demo'], { DATA_DIR: dataDir, PORT: '0' });

function engineUrl(): string | undefined {
  const file = join(dataDir, 'clickhouse.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).url : undefined;
}

/** One number from the store. @throws while there is no store, or no such table yet */
async function number(query: string): Promise<number> {
  const store = connect({ url: engineUrl() ?? '', user: 'default', password: '', database: 'adtally' });
  try {
    const [row] = await select<{ number: string }>(store, `SELECT toString((${query})) AS number`);
    return Number(row?.number);
  } finally {
    await store.close();
  }
}

/** The sample is there once: in the raw events and in every rollup, of which none may lag behind. */
async function expectWholeSample(): Promise<void> {
  expect(await number('SELECT count() FROM events')).toBe(sample);
  expect(await number('SELECT uniqExact(event_id) FROM events')).toBe(sample);
  for (const [table, side] of [
    ['campaigns_device_creative_date', 'advertiser_id'],
    ['campaigns_date', 'advertiser_id'],
    ['ad_units_device_site_date', 'publisher_id'],
    ['ad_units_date', 'publisher_id'],
  ]) {
    const raw = `SELECT sum(quantity) FROM events WHERE event_type = 'impression' AND ${side} != ''`;
    expect(await number(`SELECT sum(impressions) FROM ${table}`)).toBe(await number(raw));
  }
}

const curlLines = (printed: string): string[] =>
  printed.split('\n').filter((line) => line.startsWith('curl '));

test('the first start prints tokens and curl lines that work as they are; the next one serves at once', async () => {
  const first = demo();
  const url = await listening(first);
  await expectWholeSample();

  const [printed = ''] = await first.said(/^[\s\S]*Ctrl-C stops/);
  const lines = curlLines(printed);
  expect(lines).toHaveLength(3);
  for (const line of lines) {
    expect(line).toContain(url);
    const { code, stdout, stderr } = await startProcess('sh', ['-c', line]).ended;
    expect(code, stderr).toBe(0);
    const { result } = JSON.parse(stdout);
    expect(result.rows.length).toBeGreaterThan(3);
    expect(result.rows[0].impressions).toBeGreaterThan(0);
  }
  const tokens = accounts.map(
    (account) => new RegExp(`^${account}\\t(adt_\\w{36})$`, 'm').exec(printed)?.[1],
  );
  expect(new Set(tokens).size).toBe(accounts.length);
  expect(tokens).not.toContain(undefined);
  expect((await first.kill('SIGINT')).code).toBe(0);
  expect(engineUrl()).toBeUndefined();

  const second = demo();
  const again = await listening(second);
  const answer = await fetch(`${again}/v1/ad_units`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokens[3]}`, 'content-type': 'application/json' },
    body: '{"start_time":"2000-01-01","end_time":"2100-01-01"}',
  });
  expect(answer.status).toBe(200);
  await expectWholeSample();
  const ended = await second.kill('SIGINT');
  expect(ended.code).toBe(0);
  expect(ended.stderr).not.toMatch(/store is empty|adt_/);
  expect(curlLines(ended.stderr)).toHaveLength(3);
});

test('a demo killed while it loads its sample has all of it, once, after the next start', async () => {
  const events = 'SELECT count() FROM events';
  const moments = [
    async () => engineUrl() !== undefined,
    async () => (await number(events)) > 0,
    async () => (await number(events)) > sample / 2,
  ];
  let printed = '';
  for (const moment of moments) {
    const interrupted = demo();
    const reached = () => moment().catch(() => false);
    await vi.waitUntil(reached, { timeout: 60_000, interval: 5 });
    printed += (await interrupted.kill('SIGKILL')).stderr;
  }
  const last = demo();
  await listening(last);
  await expectWholeSample();
  const { code, stderr } = await last.kill('SIGTERM');
  expect(code).toBe(0);
  printed += stderr;
  for (const account of accounts) expect(printed).toMatch(new RegExp(`^${account}\\tadt_`, 'm'));
});

test('a store with events of its own is left alone', async () => {
  const line = {
    event_id: 'own',
    event_time: '2026-03-01T00:00:00Z',
    event_type: 'impression',
    advertiser_id: 'me',
  };
  const own = JSON.stringify({ ...line, campaign_id: 'mine' });
  const loaded = await commands.run(['ingest', 'events', '-'], { DATA_DIR: dataDir }, own);
  expect(loaded.code, loaded.stderr).toBe(0);
  const running = demo();
  await listening(running);
  expect(await number('SELECT count() FROM events')).toBe(1);
  expect(await number('SELECT count() FROM tokens')).toBe(0);
  expect((await running.kill('SIGINT')).code).toBe(0);
});
