import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { unload } from '../../ingest/history/unload.ts';
import { event, load, ndjson } from '../support/events.ts';
import { pastRound, type Step } from '../support/past-rounds.ts';
import { replaceBy } from '../support/replace-suite.ts';
import { useService } from '../support/service.ts';
import { shards, useStore } from '../support/store.ts';
import { failingAt, unloadSteps, useUnloads } from '../support/unloads.ts';

const db = useStore();
const service = useService(db);
const unloads = useUnloads(db);
const now = () => new Date();

async function storeTime(): Promise<string> {
  const query = "SELECT replaceOne(toString(now64(6, 'UTC')), ' ', 'T') || 'Z' AS now";
  return (await select<{ now: string }>(db.store, query))[0]?.now ?? '';
}

/** The rows of a report, or why there are none. */
async function asked(account: string, asOf?: string): Promise<unknown> {
  const body = { start_time: '2026-03-01', end_time: '2026-04-30', ...(asOf && { as_of: asOf }) };
  const response = await service.post('/v1/campaigns/breakdowns/creative_date', account, body);
  const answer = (await response.json()) as { result: object; code: string; detail: string };
  if (response.status !== 200) return [response.status, answer.code, answer.detail];
  return { ...answer.result, last_update_time: '' };
}

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
  expect(told).toBe(6 * everyStep.length);
});

test('once a month was pruned a moment before cannot be told, and later ones can', async () => {
  const steps: Step[] = [
    { kind: 'load', seed: 11 },
    { kind: 'prune', until: '2026-04' },
    { kind: 'load', seed: 12 },
  ];
  const { told, untold, wrong } = await pastRound(db, service, steps, 1);
  expect(wrong).toEqual([]);
  expect([told, untold.length]).toEqual([12, 6]);
  for (const { why } of untold) expect(why).toMatch(/^it can be told from 2\S+Z on$/);
});

test.skipIf(shards > 1).each(unloadSteps)(
  'what an unload that was killed at %s took away is never told wrong',
  async (step) => {
    const { account, file } = unloads;
    const id = await unloads.load(await file('e.ndjson', ndjson(unloads.events(40))));
    await load(db.store, [event({ advertiser_id: account, spend: '7' })]);
    const before = [await storeTime(), await asked(account)] as const;
    for (const when of ['before', 'after'] as const) {
      await expect(unload(failingAt(db.store, step, when), id, now)).rejects.toThrow('killed');
      const killed = [await storeTime(), await asked(account)] as const;
      for (const [at, answer] of [before, killed]) {
        const told = await asked(account, at);
        if (!Array.isArray(told)) expect(told).toEqual(answer);
        else expect(told.slice(0, 2)).toEqual([409, 'as_of_too_old']);
      }
    }
    await unload(db.store, id, now);
    const after = [await storeTime(), await asked(account)] as const;
    await load(db.store, [event({ advertiser_id: account, spend: '8' })]);
    expect(await asked(account, after[0])).toEqual(after[1]);
    expect(await asked(account, before[0])).toMatchObject([
      409,
      'as_of_too_old',
      expect.stringContaining('can be told from'),
    ]);
  },
);

test('a moment is told the same, or refused, while loads come and are taken back and replaced', async () => {
  const { account, file } = unloads;
  await unloads.load(await file('first.ndjson', ndjson(unloads.events(60))));
  const at = await storeTime();
  const then = await asked(account);
  let done = false;
  const work = async () => {
    for (const n of [1, 2]) {
      const id = await unloads.load(
        await file(`${n}.ndjson`, ndjson(unloads.events(50, { device: `${n}` }))),
        3_000,
      );
      const path = await file(`new-${n}.ndjson`, ndjson(unloads.events(30, { device: `new ${n}` })));
      if (n === 1) await unload(db.store, id, now);
      else await replaceBy(db.store, { load: id }, path);
    }
  };
  const working = work().finally(() => {
    done = true;
  });
  let told = 0;
  while (!done) {
    const answer = await asked(account, at);
    if (!Array.isArray(answer)) told++;
    if (Array.isArray(answer)) expect(answer.slice(0, 2)).toEqual([409, 'as_of_too_old']);
    else expect(answer).toEqual(then);
  }
  await working;
  expect(await asked(account, at)).toEqual(then);
  expect(told).toBeGreaterThan(0);
});

test('a moment to come is refused, and one at which events were on their way or came past the loader', async () => {
  const { account, file } = unloads;
  expect(await asked(account, '2100-01-01T00:00:00Z')).toEqual([
    400,
    'invalid_request',
    expect.stringContaining('must not be in the future'),
  ]);
  const path = await file('e.ndjson', ndjson(unloads.events(10)));
  const id = await unloads.load(path);
  const [claimed] = await select<{ at: string; loaded: string }>(
    db.store,
    `SELECT replaceOne(toString(min(c.sent_at)), ' ', 'T') || 'Z' AS at, replaceOne(toString(max(c.loaded_at)), ' ', 'T') || 'Z' AS loaded
     FROM load_chunks AS c WHERE load_id = {id:String}`,
    { id },
  );
  expect(await asked(account, claimed?.at)).toEqual([
    409,
    'as_of_too_old',
    `it can be told from ${claimed?.loaded} on`,
  ]);
  expect(await asked(account, claimed?.loaded)).toMatchObject({ rows: { length: 10 } });
  await db.store.command({
    query: `INSERT INTO events (event_time, advertiser_id, campaign_id, impressions) VALUES ('2026-03-01 00:00:00', {account:String}, 'c', 1)`,
    query_params: { account },
  });
  expect(await asked(account, claimed?.loaded)).toMatchObject([
    409,
    'as_of_too_old',
    expect.stringContaining('past the loader'),
  ]);
});
