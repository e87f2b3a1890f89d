import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { damagedParts, requireWholeTable } from '../../clickhouse/consistency/damaged-parts.ts';
import type { EmbeddedLease } from '../../clickhouse/embedded/embedded.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { embedded } from '../support/compiled.ts';
import { engineIn } from '../support/embedded-processes.ts';
import { event, ndjson } from '../support/events.ts';
import { useFolder } from '../support/folder.ts';
import { listening, outputOf, postJson, useCommands } from '../support/process.ts';
import { metric } from '../support/service.ts';
import { createMigrated } from '../support/store.ts';

const commands = useCommands();
const run = useCommandRunners();
const folder = useFolder();
const env = { DATA_DIR: join(folder, 'data'), PORT: '0', RATE_LIMIT_REQUESTS: '100000' };

let lease: EmbeddedLease;
let store: Store;
let url: string;
let token: string;

const months = ['2026-08', '2026-09', '2026-10'];
const fileOf = (month: string) => join(folder, `${month}.ndjson`);

beforeAll(async () => {
  lease = await (await embedded()).acquireEmbedded(env.DATA_DIR);
  const address = { ...lease.address, database: 'adtally' };
  await createMigrated(address);
  store = connect(address);
  token = await createToken(store, { account: 'advertiser', label: '' });
  for (const [n, month] of months.entries()) {
    writeFileSync(fileOf(month), ndjson([event({ event_time: `${month}-03T00:00:00Z`, spend: `${n + 1}` })]));
    await done('ingest', 'events', fileOf(month));
  }
  await done('close', 'advertiser', '2026-08', '--anyway');
  const serve = commands.start(['serve'], env);
  url = await listening(serve);
});
afterAll(async () => {
  await commands.killAll();
  await store.close();
  await lease.release();
});

const adtally = (...args: string[]) => run(args, env);
const done = (...args: string[]) => outputOf(adtally(...args));

async function post(path: string, body: object): Promise<{ status: number; answer: unknown }> {
  const response = await postJson(`${url}${path}`, token, body);
  const { result, code, detail } = JSON.parse(await response.text());
  const { last_update_time: _, ...answer } = result ?? {};
  return { status: response.status, answer: result ? answer : { code, detail } };
}

const daysOf = (month: string) => ({ start_time: `${month}-01`, end_time: `${month}-28` });
const breakdown = '/v1/campaigns/breakdowns/device_creative_date';
const report = (month: string) => post('/v1/campaigns', daysOf(month));
const explained = (month: string) => post('/v1/campaigns/explain', { ...daysOf(month), row: {} });

/** Every kind of answer that is made of the rows of a month. */
async function answersOf(month: string): Promise<unknown[]> {
  const days = daysOf(month);
  return [
    await report(month),
    await post(breakdown, days),
    await post('/v1/campaigns', { ...days, totals: true }),
    await explained(month),
  ];
}

const damaged = (month: string) => ({
  status: 500,
  answer: {
    code: 'figures_damaged',
    detail: `the figures of ${month} are damaged: the operator has to run adtally verify`,
  },
});

async function folderOf(table: string, partition: string): Promise<string> {
  const [part] = await select<{ path: string }>(
    store,
    `SELECT path FROM system.parts WHERE database = currentDatabase() AND active AND table = '${table}' AND partition_id = '${partition}'`,
  );
  if (!part) throw new Error(`${table} has no part of ${partition}`);
  return part.path;
}

/** Flips a bit in the middle of a file. */
function flip(path: string): void {
  const bytes = readFileSync(path);
  const at = bytes.length >> 1;
  bytes[at] = (bytes[at] ?? 0) ^ 4;
  writeFileSync(path, bytes);
}

/** Flips a bit of a part and has ClickHouse start again. */
async function damage(table: string, file: string, partition = '202609'): Promise<void> {
  flip(join(await folderOf(table, partition), file));
  process.kill(engineIn(env.DATA_DIR)?.pid ?? 0, 'SIGKILL');
}

/** Leaves a part where ClickHouse puts what it finds damaged. @returns undoes that */
async function setAside(table: string, partition: string): Promise<() => Promise<void>> {
  const path = await folderOf(table, partition);
  await store.command({ query: `ALTER TABLE ${table} DETACH PARTITION ID '${partition}'` });
  const detached = join(path, '../detached', basename(path));
  const aside = join(path, '../detached', `broken-on-start_${basename(path)}_try1`);
  renameSync(detached, aside);
  return async () => {
    renameSync(aside, detached);
    await store.command({ query: `ALTER TABLE ${table} ATTACH PARTITION ID '${partition}'` });
  };
}

/** Asks until an answer tells of damage. */
async function untilRefused(ask: () => ReturnType<typeof post>, before: unknown): Promise<unknown> {
  for (;;) {
    const { status, answer } = await ask();
    if (status === 200) expect({ status, answer }).toEqual(before);
    else if (JSON.stringify(answer).includes('figures_damaged')) return { status, answer };
    await delay(50);
  }
}

test('a damaged part of a rollup is an error of its month until a rebuild, whatever months that is of', async () => {
  const before = await answersOf('2026-09');
  const others = async () => [
    await answersOf('2026-08'),
    await answersOf('2026-10'),
    await post('/v1/ad_units', daysOf('2026-09')),
    await post('/v1/campaigns/closes', daysOf('2026-09')),
  ];
  const othersBefore = await others();
  await damage('campaigns_date', 'checksums.txt');
  expect(await untilRefused(() => report('2026-09'), before[0])).toEqual(damaged('2026-09'));
  for (const answer of await answersOf('2026-09')) expect(answer).toEqual(damaged('2026-09'));
  expect(await others()).toEqual(othersBefore);
  const changes = { changed_since: '1970-01-01T00:00:00Z' };
  expect(await post('/v1/campaigns/changes', changes)).toEqual(damaged('2026-09'));
  expect(await adtally('verify')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^campaigns_date\t202609\tbroken-on-start_\S+\tdamaged$/m),
    stderr: expect.stringContaining('adtally rebuild'),
  });
  expect(await done('status', '--next')).toContain('of campaigns_date of 2026-09 damaged');
  const close = await adtally('close', 'advertiser', '2026-09', '--anyway');
  expect(close).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be closed') });
  // The rollup is rebuilt with its month, so events of that month must be whole.
  const events = await setAside('events', '202609');
  const refused = await adtally('rebuild', '--from', '2026-08-01', '--to', '2026-08-31');
  expect(refused.stderr).toContain('of events of 2026-09 damaged');
  await events();
  // The table that tells of the damage goes with it, so it is mended, too.
  await done('rebuild', '--from', '2026-08-01', '--to', '2026-08-31');
  expect(await answersOf('2026-09')).toEqual(before);
  expect(await others()).toEqual(othersBefore);
});

test('rows that cannot be read are an error of their month, and the folder is named that ClickHouse can be made to set aside', async () => {
  const before = await answersOf('2026-10');
  const path = await folderOf('campaigns_device_creative_date', '202610');
  flip(join(path, 'data.bin'));
  // Not as before, when the answer was kept.
  const others = { ...daysOf('2026-10'), end_time: '2026-10-27' };
  expect(await post(breakdown, others)).toEqual(damaged('2026-10'));
  for (const command of ['verify', 'rebuild'])
    expect(await adtally(command)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`empty ${path}checksums.txt, start it, and run adtally verify`),
    });
  writeFileSync(join(path, 'checksums.txt'), '');
  process.kill(engineIn(env.DATA_DIR)?.pid ?? 0, 'SIGKILL');
  await expect
    .poll(async () => (await adtally('verify')).stdout, { timeout: 20_000 })
    .toMatch(/^campaigns_device_creative_date\t202610\tbroken-on-start_\S+\tdamaged$/m);
  await done('rebuild', '--from', '2026-10-01', '--to', '2026-10-31');
  expect(await answersOf('2026-10')).toEqual(before);
});

test('damaged events are an error of their month until their file is loaded again', async () => {
  const before = await answersOf('2026-09');
  await damage('events', 'columns.txt');
  expect(await untilRefused(() => explained('2026-09'), before[3])).toEqual(damaged('2026-09'));
  for (const answer of await answersOf('2026-09')) expect(answer).toEqual(damaged('2026-09'));
  const { code, stderr } = await adtally('verify');
  expect(code).toBe(1);
  for (const command of [['rebuild'], ['prune', '--keep', '1mo', '--anyway']])
    expect((await adtally(...command)).stderr, command[0]).toContain('of events of 2026-09 damaged');
  const [, load = ''] = /adtally unload (\S+),/.exec(stderr) ?? [];
  await done('unload', load);
  await done('ingest', 'events', fileOf('2026-09'));
  expect(await report('2026-09')).toEqual(damaged('2026-09'));
  await done('verify');
  expect((await answersOf('2026-09')).slice(0, 3)).toEqual(before.slice(0, 3));
  // What was there before is lost.
  const asOf = new Date(Date.now() - 60_000).toISOString();
  expect(await post('/v1/campaigns', { ...daysOf('2026-09'), as_of: asOf })).toMatchObject({ status: 409 });
});

test('a damaged part of the ledger is an error of what loads tell, and of no report of today', async () => {
  const before = await report('2026-09');
  const loads = await explained('2026-09');
  await store.command({ query: 'OPTIMIZE TABLE load_chunks FINAL' });
  await damage('load_chunks', 'columns_substreams.txt', 'all');
  const refused = await untilRefused(() => explained('2026-09'), loads);
  expect(refused).toMatchObject({ status: 500, answer: { code: 'figures_damaged' } });
  expect(await report('2026-09')).toEqual(before);
  const another = await listening(commands.start(['serve'], env));
  await expect.poll(() => metric(another, 'adtally_damaged_parts'), { timeout: 20_000 }).toBe(1);
  const verified = await adtally('verify');
  expect(verified).toMatchObject({ code: 1, stderr: expect.stringContaining('--drop-damaged') });
  await done('verify', '--drop-damaged');
  expect(await explained('2026-09')).toMatchObject({ status: 200 });
});

test('the service sees damaged names, which reports of their family show', async () => {
  writeFileSync(
    join(folder, 'names.ndjson'),
    '{"account_id":"advertiser","campaign_id":"c1","name":"One"}\n',
  );
  await done('ingest', 'campaigns', join(folder, 'names.ndjson'));
  const undo = await setAside('campaigns', 'all');
  await expect(requireWholeTable(store, 'campaigns', [202609])).rejects.toThrow('of campaigns damaged');
  url = await listening(commands.start(['serve'], env));
  expect(await report('2026-10')).toMatchObject({ status: 500, answer: { code: 'figures_damaged' } });
  await undo();
  await expect.poll(() => report('2026-10')).toMatchObject({ status: 200 });
});

test('a damaged close is an error of what reads closes, and waits for a backup or for one who gives it up', async () => {
  const asOf = { ...daysOf('2026-08'), as_of: 'closed' };
  const before = await report('2026-08');
  const undo = await setAside('closes', 'all');
  url = await listening(commands.start(['serve'], env));
  expect(await post('/v1/campaigns', asOf)).toMatchObject({ answer: { code: 'figures_damaged' } });
  expect(await report('2026-08')).toEqual(before);
  await undo();
  await setAside('campaigns_closed', '202608');
  expect(await adtally('verify')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('restore a backup'),
  });
  expect((await adtally('verify', '--drop-damaged')).stderr).toContain('1 damaged part given up');
});

test('folded events are not given up while rollups have what they lack', async () => {
  await done('prune', '--keep', '1mo', '--anyway');
  const undo = await setAside('events', '202608');
  expect(await adtally('verify', '--drop-damaged')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/mend the events first.*of events of 2026-08 damaged.*restore a backup/s),
  });
  expect(await damagedParts(store)).toHaveLength(1);
  await undo();
});
