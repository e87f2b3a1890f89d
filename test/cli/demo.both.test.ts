import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { connect, select } from '../../clickhouse/client.ts';
import { engineIn } from '../support/embedded-processes.ts';
import { thorough } from '../support/mode.ts';
import {
  type Command,
  listening,
  outputOf,
  postJson,
  startProcess,
  useCommands,
} from '../support/process.ts';
import { listeningPorts } from '../support/strangers.ts';

const accounts = ['northwind-outdoor', 'daily-harbor', 'luma-cosmetics', 'pixelplay-games'];
const sample = 500_000;

const commands = useCommands();
/** A DATA_DIR for each test. */
let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'adtally-demo-'));
});
afterEach(async () => {
  await commands.killAll();
  await vi.waitUntil(() => engineUrl() === undefined, { timeout: 30_000 });
  rmSync(dataDir, { recursive: true, maxRetries: 20 });
});

const engineUrl = (): string | undefined => engineIn(dataDir)?.address.url;
/** One number from the store. @throws while there is no store, or no such table yet */
const number = async (query: string): Promise<number> => {
  const engine = engineIn(dataDir);
  if (!engine) throw new Error('there is no store');
  const store = connect({ ...engine.address, database: 'adtally' });
  try {
    const [row] = await select<{ number: string }>(store, `SELECT toString((${query})) AS number`);
    return Number(row?.number);
  } finally {
    await store.close();
  }
};

const startDemo = () => commands.start(['demo'], { DATA_DIR: dataDir, PORT: '0', RECEIVE_PORT: '0' });

/** The sample is there once, in the raw events and in every rollup; no rollup may lag behind. */
async function expectWholeSample(): Promise<void> {
  expect(await number('SELECT count() FROM events')).toBe(sample);
  expect(await number('SELECT uniqExact(event_id) FROM events')).toBe(sample);
  for (const [table, side] of [
    ['campaigns_device_creative_date', 'advertiser_id'],
    ['campaigns_date', 'advertiser_id'],
    ['ad_units_device_site_date', 'publisher_id'],
    ['ad_units_date', 'publisher_id'],
  ]) {
    const raw = `SELECT sum(impressions) FROM events WHERE ${side} != ''`;
    expect(await number(`SELECT sum(impressions) FROM ${table}`)).toBe(await number(raw));
  }
}

const curlLines = (printed: string): string[] =>
  printed.split('\n').filter((line) => line.startsWith('curl '));

/** What it has written to standard output when it is ready, up to the last of its `curl` lines. */
const forScripts = async (running: Command, curls: number): Promise<string> => {
  const [printed] = await running.said(new RegExp(`(?:^[^]*?^curl .*\\n){${curls}}`, 'm'));
  return printed;
};

test.runIf(!thorough)(
  'a port in use is told before anything is loaded; a script finds tokens, links and curl lines that work on standard output, and logs elsewhere',
  async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const PORT = String((other.address() as AddressInfo).port);
    const refused = await commands.run(['demo'], { DATA_DIR: dataDir, PORT, RECEIVE_PORT: '0' });
    other.close();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`PORT=${PORT}: is in use on 127.0.0.1`);
    expect(refused.stderr).not.toContain('ClickHouse is empty');

    const first = startDemo();
    const url = await listening(first);
    await expectWholeSample();

    const printed = await forScripts(first, 3);
    const lines = curlLines(printed);
    expect(lines).toHaveLength(3);
    for (const line of lines) {
      expect(line).toContain(url);
      const stdout = await outputOf(startProcess('sh', ['-c', line]).ended);
      const { result } = JSON.parse(stdout);
      expect(result.rows.length).toBeGreaterThan(3);
      expect(result.rows[0].impressions).toBeGreaterThan(0);
    }
    const tokens = accounts.map(
      (account) => new RegExp(`^${account}\\t(adt_\\w{36})\\t${url}/app#token=\\1$`, 'm').exec(printed)?.[1],
    );
    expect(new Set(tokens).size).toBe(accounts.length);
    expect(tokens).not.toContain(undefined);
    const { code, stdout, stderr } = await first.kill('SIGINT');
    expect(code).toBe(0);
    expect(stdout.trim().split('\n')).toHaveLength(accounts.length + lines.length);
    expect(stderr).not.toContain('adt_');
    expect(engineUrl()).toBeUndefined();

    const second = startDemo();
    const again = await listening(second);
    const answer = await postJson(
      `${again}/v1/ad_units`,
      tokens[3],
      '{"start_time":"2000-01-01","end_time":"2100-01-01"}',
    );
    expect(answer.status).toBe(200);
    await expectWholeSample();
    // Each start has other passwords, and the dictionaries of names log in, too.
    expect(await number('SELECT count() FROM dictionary(ad_unit_names)')).toBeGreaterThan(3);
    const next = curlLines(await forScripts(second, 2));
    expect(next).toHaveLength(2);
    for (const line of next) {
      const { stdout } = await startProcess('sh', ['-c', line], { TOKEN: tokens[0] ?? '' }).ended;
      expect(JSON.parse(stdout).result.rows.length).toBeGreaterThan(3);
    }
    const { pid = 0, address } = engineIn(dataDir) ?? {};
    expect(listeningPorts(pid)).toEqual([Number(new URL(address?.url ?? '').port)]);
    const ended = await second.kill('SIGINT');
    expect(ended.code).toBe(0);
    expect(ended.stdout + ended.stderr).not.toMatch(/is empty|adt_/);
  },
);

test.runIf(!thorough)('a store with events of its own is left alone', async () => {
  const line = {
    event_id: 'own',
    event_time: '2026-03-01T00:00:00Z',
    event_type: 'impression',
    advertiser_id: 'me',
  };
  const own = JSON.stringify({ ...line, campaign_id: 'mine' });
  const loaded = await commands.run(['ingest', 'events', '-'], { DATA_DIR: dataDir }, own);
  expect(loaded.code, loaded.stderr).toBe(0);
  const running = startDemo();
  await listening(running);
  expect(await number('SELECT count() FROM events')).toBe(1);
  expect(await number('SELECT count() FROM tokens')).toBe(0);
  expect((await running.kill('SIGINT')).code).toBe(0);
});

test.runIf(thorough)(
  'a demo killed while it loads its sample has all of it, once, after the next start',
  async () => {
    const events = 'SELECT count() FROM events';
    const moments = [async () => engineUrl() !== undefined, async () => (await number(events)) > sample / 2];
    let printed = '';
    for (const moment of moments) {
      const interrupted = startDemo();
      const reached = () => moment().catch(() => false);
      await vi.waitUntil(reached, { timeout: 60_000, interval: 5 });
      printed += (await interrupted.kill('SIGKILL')).stdout;
    }
    const last = startDemo();
    await listening(last);
    await expectWholeSample();
    const { code, stdout } = await last.kill('SIGTERM');
    expect(code).toBe(0);
    printed += stdout;
    for (const account of accounts) expect(printed).toMatch(new RegExp(`^${account}\\tadt_`, 'm'));
  },
);
