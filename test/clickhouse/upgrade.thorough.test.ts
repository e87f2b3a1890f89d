import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { embedded } from '../support/compiled.ts';
import { checkout, listening, useCommands } from '../support/process.ts';

/**
 * test/fixtures/store-0.1 was made by adtally 0.1.0: it loaded events.ndjson.gz (400 events, two faulty rows) and
 * names, confirmed some days, made tokens, wrote the reports of every endpoint to reports.json.gz, and was backed up.
 */
const fixture = join(checkout, 'test/fixtures/store-0.1');
const { tokens, reports } = JSON.parse(
  gunzipSync(readFileSync(join(fixture, 'reports.json.gz'))).toString(),
) as { tokens: Record<string, string>; reports: { account: string; path: string; text: string }[] };

const commands = useCommands();
const folder = mkdtempSync(join(tmpdir(), 'adtally-upgrade-'));
const dataDir = join(folder, 'data');
const env = { DATA_DIR: dataDir, PORT: '0', RATE_LIMIT_REQUESTS: '1000' };
const adtally = (...args: string[]) => commands.run(args, env);

async function withStore<T>(work: (store: Store) => Promise<T>, database = 'adtally'): Promise<T> {
  const lease = await (await embedded()).acquireEmbedded(dataDir);
  const store = connect({ ...lease.address, database });
  try {
    return await work(store);
  } finally {
    await store.close();
    await lease.release();
  }
}

beforeAll(async () => {
  await withStore(async (store) => {
    const backups = join(dataDir, 'store/backups');
    mkdirSync(backups, { recursive: true });
    copyFileSync(join(fixture, 'store.tar.zst'), join(backups, 'store.tar.zst'));
    await store.command({ query: "RESTORE DATABASE adtally FROM File('store.tar.zst')" });
  }, 'default');
});
afterAll(() => rmSync(folder, { recursive: true, maxRetries: 20 }));

test('a store of 0.1 gives the same reports, to the byte, after the update', async () => {
  const [latest] = await withStore((store) =>
    select<{ name: string }>(store, 'SELECT name FROM migrations ORDER BY version DESC LIMIT 1'),
  );
  expect(latest?.name).toBe('0016_store_state');
  const migrated = await adtally('migrate');
  expect(migrated.code, migrated.stderr).toBe(0);

  const service = commands.start(['serve'], env);
  const url = await listening(service);
  expect(reports).toHaveLength(36);
  for (const { account, path, text } of reports) {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens[account]}`, 'content-type': 'application/json' },
      body: '{"start_time":"2026-01-05","end_time":"2026-03-28"}',
    });
    const now = (await answer.text()).replace(/("last_update_time":")[^"]*/, '$1');
    expect(now, `${account} ${path}`).toBe(text);
  }
  expect((await service.kill('SIGTERM')).code).toBe(0);
  for (const command of ['check', 'verify']) {
    const { code, stdout, stderr } = await adtally(command);
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: '' });
  }
});

test('what 0.1 loaded is known: the same file counts nothing twice, and what it rejected is still open', async () => {
  const copy = join(folder, 'events.ndjson.gz');
  copyFileSync(join(fixture, 'events.ndjson.gz'), copy);
  const { code, stdout } = await adtally('ingest', 'events', copy, '--json');
  expect(code).toBe(4);
  expect(JSON.parse(stdout)).toMatchObject({
    rows: 0,
    repeated_rows: 400,
    rejected_rows: 0,
    open_rejects: 2,
  });
  expect(JSON.parse((await adtally('limit', '--json')).stdout)).toEqual([
    { account: 'advertiser-1', requests: 77 },
  ]);
});

test('an older version says what going back needs', async () => {
  await withStore((store) =>
    store.command({
      query: "INSERT INTO migrations (version, name, checksum) VALUES (9000, '9000_future', '')",
    }),
  );
  for (const command of [['serve'], ['ingest', 'events', 'x.ndjson']]) {
    const { code, stderr } = await adtally(...command);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/9000_future.*update adtally, or go back to a backup/s),
    });
  }
});
