import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect } from '../../clickhouse/client.ts';
import type { EmbeddedLease } from '../../clickhouse/embedded/embedded.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { embedded } from '../support/compiled.ts';
import { event, ndjson } from '../support/events.ts';
import { useFolder } from '../support/folder.ts';
import { heldAt } from '../support/held.ts';
import { outputOf, postJson, useCommands } from '../support/process.ts';

const commands = useCommands();
const run = useCommandRunners();
const folder = useFolder();

const env = { DATA_DIR: join(folder, 'data') };
/** The engine runs throughout, so that commands need not start one each. */
let lease: EmbeddedLease;
beforeAll(async () => {
  lease = await (await embedded()).acquireEmbedded(env.DATA_DIR);
});
afterAll(() => lease.release());
const adtally = (...args: string[]) => run(args, env);
const done = (...args: string[]) => outputOf(adtally(...args));
const events = async () => JSON.parse(await done('status', '--json')).data.events;

function file(name: string, days: readonly string[]): string {
  const path = join(folder, name);
  writeFileSync(path, ndjson(days.map((day) => event({ event_time: `${day}T00:00:00Z`, spend: '1' }))));
  return path;
}

const first = file('first.ndjson', ['2020-01-15', '2020-02-15', '2026-01-15']);
const second = file('second.ndjson', ['2026-02-15', '2026-02-16']);

test('a restored backup, one file or a folder, has what was backed up, and counts later files once', async () => {
  const backups = ['backup.tar.xz', 'backup'].map((name) => join(folder, name));
  await done('ingest', 'events', first);
  await done('close', 'advertiser', '2026-01', '--anyway');
  const closes = await done('closes', '--json');
  const { revision } = JSON.parse(closes)[0];
  const kept = async () => [
    await done('closes', 'rows', revision),
    await done('closes', 'manifest', revision),
  ];
  const whole = await kept();
  const report = ['campaigns', 'anna@example.com', '--every', 'day'];
  const schedule = (await done('schedule', 'create', 'advertiser', ...report)).trim();
  for (const to of backups) {
    await done('backup', to);
    expect(statSync(to).size).toBeGreaterThan(0);
  }
  await done('ingest', 'events', second);
  await done('schedule', 'remove', schedule);
  expect(await events()).toBe(5);
  for (const wrong of [...backups, join(folder, 'none', 'backup')]) {
    expect((await adtally('backup', wrong)).code, wrong).toBe(2);
  }
  for (const to of backups) {
    const refused = await adtally('restore', to);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--replace') });
    await done('restore', to, '--replace');
    expect(await events()).toBe(3);
    expect(await done('schedule', 'list', '--json')).toBe('[]\n');
    expect(await done('closes', '--json')).toBe(closes);
    expect(await kept()).toEqual(whole);
    await done('ingest', 'events', second);
    expect(await events()).toBe(5);
  }
  expect(JSON.parse(await done('loads', '--json'))).toEqual(
    expect.arrayContaining([expect.objectContaining({ kind: 'rebuild', state: 'loaded' })]),
  );
  await done('ingest', 'events', first);
  expect(await events()).toBe(5);
  await done('verify');
});

test('what is restored can be taken back and loaded again, however often the ledger was changed before the backup', async () => {
  const store = connect({ ...lease.address, database: 'adtally' });
  const query = 'ALTER TABLE load_chunks UPDATE rows = rows WHERE true';
  for (let n = 0; n < 60; n++) await store.command({ query, clickhouse_settings: { mutations_sync: '2' } });
  await store.close();
  const to = join(folder, 'changed.tar');
  await done('backup', to);
  await done('restore', to, '--replace');
  const loads: { load: string; file: string }[] = JSON.parse(await done('loads', '--json'));
  await done('unload', loads.find((each) => each.file === second)?.load ?? '');
  expect(await events()).toBe(3);
  await done('ingest', 'events', second);
  expect(await events()).toBe(5);
  await done('verify');
});

test('a backup that cannot be read, or is not there, leaves everything as it was', async () => {
  const broken = join(folder, 'broken.tar.zst');
  const empty = join(folder, 'empty.tar');
  const cut = join(folder, 'cut.tar.xz');
  writeFileSync(broken, 'no backup');
  writeFileSync(empty, '');
  writeFileSync(cut, readFileSync(join(folder, 'backup.tar.xz')).subarray(0, -4096));
  for (const [unreadable, reason] of [
    [broken, ' is no backup, or is damaged\n'],
    [empty, ' is no backup, or is damaged\n'],
    [cut, ': '],
  ]) {
    const { code, stderr } = await adtally('restore', `${unreadable}`, '--replace');
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining(`error: ${unreadable}${reason}`),
    });
    expect(stderr).not.toContain('adtally-from');
  }
  const missing = join(folder, 'missing.tar.zst');
  expect(await adtally('restore', missing, '--replace')).toMatchObject({
    code: 2,
    // The restore before may be about to end.
    stderr: expect.stringMatching(/(^|\n)error: \S+missing\.tar\.zst: there is no such backup\n$/),
  });
  expect(await events()).toBe(5);
  await done('check');
  await done('verify');
  await done('ingest', 'events', file('third.ndjson', ['2026-03-01']));
  expect(await events()).toBe(6);
});

test('a backup that does not fit leaves everything as it was', async () => {
  const other = join(folder, 'vienna.tar.zst');
  const vienna = { DATA_DIR: join(folder, 'vienna'), REPORT_TIMEZONE: 'Europe/Vienna' };
  const made = await run(['migrate'], vienna);
  expect(made.code, made.stderr).toBe(0);
  expect((await run(['backup', other], vienna)).code).toBe(0);
  const refused = await run(['restore', other, '--replace'], { ...env, REPORT_TIMEZONE: 'UTC' });
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /nothing was restored: the database has what it had before\n.*the backup was created with Europe\/Vienna, .* or use another backup/s,
    ),
  });
  expect(await events()).toBe(6);
  await done('verify');
});

test('a place that cannot be written, or not so, is refused before any work', async () => {
  const zip = join(folder, 'backup.zip');
  expect(await adtally('backup', zip)).toMatchObject({
    code: 2,
    stderr: `error: ${zip}: the embedded ClickHouse knows no .zip, but .tar.zst\n`,
  });
  const { code, stderr } = await adtally('backup', '/proc/adtally.tar.zst');
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/^error: \/proc\/adtally\.tar\.zst cannot be written: ENOENT/),
  });
  expect(await done('loads', '--json')).not.toContain('/proc/adtally.tar.zst');
});

test('a store that does not fit together is not backed up, because it would not be restored', async () => {
  const withStore = async (query: string) => {
    const store = connect({ ...lease.address, database: 'adtally' });
    await store.command({ query, clickhouse_settings: { mutations_sync: '2' } });
    await store.close();
  };
  await withStore("ALTER TABLE campaigns_date UPDATE spent = spent + 1 WHERE day = '2026-03-01'");
  const to = join(folder, 'unsound.tar.zst');
  const { code, stderr } = await adtally('backup', to);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('adtally verify lists them') });
  expect(existsSync(to)).toBe(false);
  await withStore("BACKUP DATABASE adtally TO File('unsound.tar')");
  const refused = await adtally('restore', join(env.DATA_DIR, 'store/backups/unsound.tar'), '--replace');
  expect(refused.stderr).toMatch(/rollups have 1 difference: restore another backup\n$/);
  await withStore("ALTER TABLE campaigns_date UPDATE spent = spent - 1 WHERE day = '2026-03-01'");
  await done('backup', to);
});

test('prune folds raw events of old months and keeps their reports, unless told otherwise, and a backup after it restores', async () => {
  const dry = await adtally('prune', '--keep', '3y', '--dry-run');
  expect(dry).toMatchObject({ code: 0, stderr: expect.stringContaining('would be folded: 2 events') });
  expect(await events()).toBe(6);
  await done('prune', '--keep', '9999y');
  await done('prune', '--keep', '3y');
  expect(await events()).toBe(4);
  await done('verify');
  await done('rebuild');
  await done('ingest', 'events', file('late.ndjson', ['2020-01-16']));
  await done('verify');
  const pruned = join(folder, 'pruned.tar.zst');
  await done('backup', pruned);
  await done('restore', pruned, '--replace');
  expect(await events()).toBe(5);
  const service = commands.start(['serve'], { ...env, PORT: '0' });
  const [, url = ''] = await service.said(/listening on (http:\/\/[^"; ]+)/);
  const token = (await done('token', 'create', 'advertiser')).trim();
  const rows = async () => {
    const answer = await postJson(
      `${url}/v1/campaigns/breakdowns/date`,
      token,
      '{"start_time":"2019-01-01","end_time":"2030-01-01"}',
    );
    const { result } = (await answer.json()) as { result: { rows: { start_time: string }[] } };
    return result.rows.map(({ start_time }) => start_time.slice(0, 7));
  };
  await expect
    .poll(rows, { timeout: 20_000 })
    .toEqual(['2020-01', '2020-01', '2020-02', '2026-01', '2026-02', '2026-02', '2026-03']);
  await done('prune', '--keep', '3y', '--reports', '--anyway');
  expect(await rows()).toEqual(['2026-01', '2026-02', '2026-02', '2026-03']);
  await done('verify');
  expect((await service.kill('SIGTERM')).code).toBe(0);
});

test('after a restore moments before the backup can be told, and those between the two cannot', async () => {
  const token = (await done('token', 'create', 'advertiser')).trim();
  const asked = async (moments: readonly (string | undefined)[]) => {
    const service = commands.start(['serve'], { ...env, PORT: '0' });
    const [, url = ''] = await service.said(/listening on (http:\/\/[^"; ]+)/);
    const answers: [status: number, rows: unknown][] = [];
    for (const as_of of moments) {
      const answer = await postJson(`${url}/v1/campaigns/breakdowns/date`, token, {
        start_time: '2026-01-01',
        end_time: '2026-12-31',
        as_of,
      });
      const { result } = (await answer.json()) as { result?: { rows: unknown } };
      answers.push([answer.status, result?.rows]);
    }
    expect((await service.kill('SIGTERM')).code).toBe(0);
    return answers;
  };
  const [then] = await asked([undefined]);
  const before = new Date().toISOString();
  const to = join(folder, 'past.tar.zst');
  await done('backup', to);
  await done('ingest', 'events', file('lost.ndjson', ['2026-04-15']));
  const between = new Date().toISOString();
  await done('restore', to, '--replace');
  const after = new Date().toISOString();
  expect(await asked([before, between, after])).toEqual([then, [409, undefined], then]);
});

test('a backup of one database is not disturbed by that of another in the same folder, which waits for it', async () => {
  const ofOther = { ...env, CLICKHOUSE_DATABASE: 'other' };
  await done('migrate');
  const made = await run(['migrate'], ofOther);
  expect(made.code, made.stderr).toBe(0);
  const store = connect({ ...lease.address, database: 'adtally' });
  const held = heldAt(store, /INSERT INTO incoming/);
  const input = new LocalFile(file('held.ndjson', ['2026-05-15']));
  const loading = loadEvents({ store: held.store, input, chunkBytes: 1 << 20, now: () => new Date() });
  try {
    await held.reached;
    const under = commands.start(['backup', join(folder, 'under-way.tar.zst')], env);
    await under.said(/waiting for load/);
    const other = commands.start(['backup', join(folder, 'other.tar.zst')], ofOther);
    await other.said(/waiting for another backup or restore/);
    held.release();
    for (const { ended } of [under, other]) {
      await outputOf(ended);
    }
  } finally {
    held.release();
    await loading;
    await store.close();
  }
});
