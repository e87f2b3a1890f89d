import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select, storeTime } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { rewriting } from '../../clickhouse/consistency/rewrites.ts';
import { inTurn } from '../../ingest/history/in-turn.ts';
import { interruptedRewrites } from '../../ingest/history/interrupted.ts';
import { unload } from '../../ingest/history/unload.ts';
import type { Input } from '../../ingest/input/input.ts';
import { readerOf } from '../../ingest/input/pieces.ts';
import { loadLookupList, lookupLists } from '../../ingest/lists/lookup-lists.ts';
import { event, load, loadRows, ndjson } from '../support/events.ts';
import { usePast } from '../support/past.ts';
import { pastRound, type Step } from '../support/past-rounds.ts';
import { replaceBy } from '../support/replace-suite.ts';
import { metric, useService } from '../support/service.ts';
import { type Passing, reachedBy, useStatementsBetween } from '../support/statements-between.ts';
import { onEveryShard, shards, useStore } from '../support/store.ts';
import { failingAt, useUnloads } from '../support/unloads.ts';

const db = useStore();
const service = useService(db);
const unloads = useUnloads(db);
const past = usePast(db, service);
let hold = async (_: Passing): Promise<void> => undefined;
const held = useService(
  reachedBy(
    useStatementsBetween(
      () => db.address.url,
      (passing) => hold(passing),
    ),
    db,
  ),
);
const now = () => new Date();

const everyStep: readonly Step[] = [
  { kind: 'load', seed: 1 },
  { kind: 'rename', account: 'both', name: 1 },
  { kind: 'load', seed: 2 },
  { kind: 'unload', of: 0 },
  { kind: 'confirm', account: 'both', from: '2026-02-01', to: '2026-03-10' },
  { kind: 'replace', of: 1, seed: 3 },
  { kind: 'replay', of: 2 },
  { kind: 'rename', account: 'both', name: 2 },
  { kind: 'replace days', account: 'both', from: '2026-02-02', to: '2026-02-20', seed: 4 },
  { kind: 'again', of: 0 },
  { kind: 'rebuild' },
];

test('a report as of a moment is what a report said then, whatever was loaded, taken back, replaced, renamed and confirmed since', async () => {
  const { told, untold, wrong } = await pastRound(db, service, everyStep, 0);
  expect({ wrong, untold }).toEqual({ wrong: [], untold: [] });
  expect(told).toBe(2 * everyStep.length);
});

test('once a month was pruned a moment before cannot be told, and later ones can', async () => {
  const steps: Step[] = [
    { kind: 'load', seed: 11 },
    { kind: 'prune', until: '2026-04' },
    { kind: 'load', seed: 12 },
  ];
  const { told, untold, wrong } = await pastRound(db, service, steps, 1);
  expect(wrong).toEqual([]);
  expect([told, untold.length]).toEqual([4, 2]);
  for (const { why } of untold) expect(why).toMatch(/^what reports said can be told from 2\S+Z on$/);
});

test('a moment is told the same, or refused, while loads come and are taken back and replaced', async () => {
  const { account, file } = unloads;
  await unloads.load(await file('first.ndjson', ndjson(unloads.events(60))));
  const at = await past.now();
  const then = await past.asked(account);
  let done = false;
  const work = async (n: number) => {
    const lines = ndjson(unloads.events(50, { device: `${n}` }));
    const id = await unloads.load(await file(`${n}.ndjson`, lines), 3_000);
    const path = await file(`new-${n}.ndjson`, ndjson(unloads.events(30, { device: `new ${n}` })));
    if (n === 1) await unload(db.store, id, now);
    else await replaceBy(db.store, { load: id }, path);
  };
  const working = Promise.all([work(1), work(2)]).finally(() => {
    done = true;
  });
  let told = 0;
  while (!done) {
    const answer = await past.asked(account, at);
    if (!Array.isArray(answer)) told++;
    if (Array.isArray(answer)) expect(answer.slice(0, 2)).toEqual([409, 'as_of_too_old']);
    else expect(answer).toEqual(then);
    await delay(50);
  }
  await working;
  expect(await past.asked(account, at)).toEqual(then);
  expect(told).toBeGreaterThan(0);
});

test('a moment to come is refused, and one at which events were on their way or came past the loader', async () => {
  const { account, file } = unloads;
  expect(await past.asked(account, '2100-01-01T00:00:00Z')).toEqual([
    400,
    'invalid_request',
    expect.stringContaining('must not be in the future'),
  ]);
  const path = await file('e.ndjson', ndjson(unloads.events(10)));
  const id = await unloads.load(path);
  const [claimed] = await select<{ at: string; loaded: string }>(
    db.store,
    `SELECT replaceOne(toString(minIf(c.sent_at, toUInt64(c.sent_at) > 0)), ' ', 'T') || 'Z' AS at, replaceOne(toString(max(c.loaded_at)), ' ', 'T') || 'Z' AS loaded
     FROM load_chunks AS c WHERE load_id = {id:String}`,
    { id },
  );
  expect(await past.asked(account, claimed?.at)).toEqual([
    409,
    'as_of_too_old',
    `what reports said can be told from ${claimed?.loaded} on`,
  ]);
  expect(await past.asked(account, claimed?.loaded)).toMatchObject({ rows: { length: 5 } });
  await onEveryShard(db, `ALTER TABLE load_chunks UPDATE loaded_at = 0 WHERE load_id = '${id}'`);
  expect(await past.asked(account, claimed?.loaded)).toMatchObject([
    409,
    'as_of_too_old',
    expect.stringContaining('a load that is still running or was interrupted has events on these days'),
  ]);
  await db.store.command({
    query: `INSERT INTO events (event_time, advertiser_id, campaign_id, impressions) VALUES ('2026-03-01 00:00:00', {account:String}, 'c', 1)`,
    query_params: { account },
  });
  expect(await past.asked(account, claimed?.loaded)).toMatchObject([
    409,
    'as_of_too_old',
    expect.stringContaining('past the loader'),
  ]);
  await onEveryShard(db, `ALTER TABLE load_chunks UPDATE loaded_at = sent_at WHERE load_id = '${id}'`);
});

test('of a month in which work was interrupted no moment is told, and it is listed, until the month is rebuilt', async () => {
  const { account } = unloads;
  await load(db.store, [event({ advertiser_id: account, event_time: '2026-04-01T00:00:00Z' })]);
  const before = await past.now();
  const working = inTurn(db.store, 'work', new Date(), {}, () =>
    rewriting(db.store, [202604], async () => {
      expect(await interruptedRewrites(db.store)).toEqual([]);
      throw new Error('killed');
    }),
  );
  await expect(working).rejects.toThrow('killed');
  expect(await interruptedRewrites(db.store)).toEqual([202604]);
  expect(await past.asked(account, before)).toMatchObject([409, 'as_of_too_old', {}]);
  await rebuildRollups(db.store, catalog, { from: '2026-04-01', to: '2026-04-30' });
  expect(await interruptedRewrites(db.store)).toEqual([]);
  expect(await past.asked(account, before)).toMatchObject([409, 'as_of_too_old', {}]);
  expect(await past.asked(account, await past.now())).toMatchObject({ rows: { length: 1 } });
});

test('what tells whether a moment can be told has the place of a report, and ends when the caller leaves', async () => {
  const { account } = unloads;
  const asOf = await past.now();
  await load(db.store, [event({ advertiser_id: account })]);
  const body = { start_time: '2026-03-01', end_time: '2026-04-30', as_of: asOf };
  const address = `/v1/export/campaigns.csv?${new URLSearchParams(body)}`;
  const headers = { authorization: `Bearer ${await held.token(account)}` };
  for (const ask of [
    (signal: AbortSignal) =>
      fetch(`${held.url}/v1/campaigns`, {
        ...{ method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, signal },
        body: JSON.stringify(body),
      }),
    (signal: AbortSignal) => fetch(`${held.url}${address}`, { headers, signal }),
  ]) {
    const caller = new AbortController();
    const reached = new Promise<Passing>((resolve) => {
      hold = async (passing) => {
        if (!passing.query.includes('doubtful')) return;
        resolve(passing);
        await once(passing.left, 'abort');
      };
    });
    const answer = ask(caller.signal).catch((error: Error) => error.name);
    const { settings, left } = await reached;
    expect(Object.fromEntries(settings)).toMatchObject({
      max_execution_time: '300',
      priority: '2',
      low_priority_query_wait_time_ms: '50',
    });
    await expect.poll(() => metric(held.url, 'adtally_reports_running')).toBe(1);
    caller.abort();
    expect(await answer).toBe('AbortError');
    await expect.poll(() => left.aborted).toBe(true);
    await expect.poll(() => metric(held.url, 'adtally_reports_running')).toBe(0);
  }
});

// Shards are asked by connections of their own.
test.skipIf(shards > 1)(
  'names that a killed load left are told two minutes later, and moments of other accounts at once',
  async () => {
    const { account } = unloads;
    const other = `${account}-other`;
    for (const advertiser_id of [account, other]) await load(db.store, [event({ advertiser_id })]);
    const names = (store: Store, name: string) => loadRows(store, 'campaigns', [[account, 'campaign', name]]);
    await names(db.store, 'old');
    const before = [await past.now(), await past.asked(account)] as const;
    await expect(names(failingAt(db.store, /^SYSTEM RELOAD/, 'before'), 'new')).rejects.toThrow('killed');
    const at = await past.now();
    const [then, ofOther] = [await past.asked(account), await past.asked(other)];
    const shownBy = "replaceOne(toString(max(n.changed_at) + INTERVAL 2 MINUTE), ' ', 'T') || 'Z'";
    const [told] = await select<{ from: string }>(
      db.store,
      `SELECT ${shownBy} AS from FROM past_names AS n WHERE account_id = {account:String}`,
      { account },
    );
    const refused = [409, 'as_of_too_old', expect.stringContaining(`from ${told?.from} on`)];
    expect(await past.asked(account, at)).toEqual(refused);
    expect(await past.asked(account, before[0])).toEqual(before[1]);
    expect(await past.asked(other, at)).toEqual(ofOther);
    // The same once more completes it, and the killed one is still not told.
    await names(db.store, 'new');
    expect(await past.asked(account, at)).toMatchObject([409, 'as_of_too_old', {}]);
    await names(db.store, 'old');
    expect(await past.asked(account, await past.now())).toEqual(then);
  },
);

test.each(['campaigns', 'confirmations'] as const)(
  'a list of %s that is long in coming changes no moment before it came',
  async (list) => {
    const { account } = unloads;
    await load(db.store, [event({ advertiser_id: account, spend: '1' })]);
    const [id, text] = list === 'campaigns' ? ['campaign', 'new'] : ['2026-03-01', undefined];
    const line = (account: string) => `${[account, id, text].filter((value) => value).join()}\n`;
    let then: [at: string, answer: unknown] = ['', undefined];
    const bytes = (async function* () {
      // More than is looked at before anything is sent.
      yield Buffer.from(`${lookupLists[list].columns.join()}\n${line('other').repeat(20_000)}`);
      const query = `SELECT 1 FROM system.processes WHERE query_kind = 'Insert' AND query LIKE '%${list}%' AND current_database = currentDatabase()`;
      await expect.poll(() => select(db.store, query)).not.toHaveLength(0);
      then = [await past.now(), await past.asked(account)];
      yield Buffer.from(line(account));
    })();
    await loadLookupList(db.store, lookupLists[list], inputOf(bytes));
    const after = [await past.now(), await past.asked(account)] as const;
    expect(after[1]).not.toEqual(then[1]);
    expect(await past.asked(account, after[0])).toEqual(after[1]);
    expect(await past.asked(account, then[0])).toEqual(then[1]);
  },
);

/** A file that comes bit by bit. */
const inputOf = (pieces: AsyncIterable<Buffer>): Input => ({
  name: 'list.csv',
  endings: ['csv'],
  size: () => undefined,
  readRange: () => Promise.reject(new Error('it is read once')),
  readFrom: async () => readerOf(pieces, async () => undefined),
});

test('what docs/scaling.md says to do after a restore refuses the moments that are lost', async () => {
  const page = readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8');
  const [told = ''] = /^INSERT INTO adtally.rewrites .*$/m.exec(page) ?? [];
  const began = await storeTime(db.store);
  const between = await past.now();
  const query = told.replace('adtally.', `${db.address.database}.`).replace(/'\d{4}-[^']*'/, `'${began}'`);
  await db.store.command({ query });
  expect(await past.asked(unloads.account, between)).toMatchObject([409, 'as_of_too_old', {}]);
  expect(await past.asked(unloads.account, await past.now())).toMatchObject({ rows: expect.any(Array) });
});
