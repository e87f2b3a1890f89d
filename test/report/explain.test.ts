import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { unload } from '../../ingest/history/unload.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { prune } from '../../src/cli/store/prune.ts';
import { compileExplanation } from '../../src/report/explain/compile-explanation.ts';
import { explainedRow } from '../../src/report/explain/explain-request.ts';
import { type EventLine, event, load, ndjson } from '../support/events.ts';
import { type Asked, explain, explainRandomRows } from '../support/explanations.ts';
import { outputOf } from '../support/process.ts';
import { testSeed as seed, seededRandom } from '../support/random.ts';
import { randomEvents } from '../support/random-events.ts';
import { useRejectedLoads } from '../support/rejected-loads.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);
const rejected = useRejectedLoads(db);
const now = () => new Date();

const of = (account: string, fields: Partial<EventLine> = {}) =>
  event({ advertiser_id: account, publisher_id: `${account}-p`, ...fields });
const newAccount = () => `account-${randomUUID()}`;
const newestLoad = async () => {
  const query = "SELECT load_id AS id FROM loads FINAL WHERE kind != 'rebuild' ORDER BY turn DESC LIMIT 1";
  return (await select<{ id: string }>(db.store, query))[0]?.id ?? '';
};

it(`random rows of both families are the sums of their loads and chunks (seed ${seed})`, async () => {
  const events = randomEvents(seed, 1500);
  for (const part of [events.slice(0, 700), events.slice(700, 1200), events.slice(1200)]) {
    await load(db.store, part, 40_000);
  }
  await explainRandomRows(service, ['both', 'both-2'], seededRandom(seed), 25);
});

describe('a part', () => {
  it('is what one chunk of one load added to the row', async () => {
    const account = newAccount();
    await load(db.store, [of(account, { quantity: 3, spend: '0.000001' }), of(account, { device: 'tv' })]);
    const first = await newestLoad();
    await load(db.store, [of(account, { event_type: 'referral', spend: '-2.5' })]);
    const second = await newestLoad();
    const { row, parts } = await explain(service, 'campaigns', account, {
      row: { campaign_id: 'campaign', device: 'unknown' },
    });
    expect(String(row.spent)).toBe('-2.499999');
    expect(parts).toMatchObject([
      { kind: 'events', load: first, first_day: '2026-03-01', last_day: '2026-03-01' },
      { kind: 'events', load: second, unconfirmed: true, confirmed_at: null, corrects: null },
    ]);
    expect(parts.map(({ events, impressions, spent }) => [events, impressions, spent].map(String))).toEqual([
      ['1', '3', '0.000001'],
      ['1', '0', '-2.5'],
    ]);
    expect(parts[0]?.chunk).toMatch(/^[0-9a-f]{64}$/);
    expect(parts[0]).not.toHaveProperty('file');
  });

  it('has one reason, also when the month was pruned', async () => {
    const account = newAccount();
    const lines = ['makegood', 'chargeback', undefined, 'makegood'].map((reason, n) =>
      of(account, { quantity: n + 1, event_time: '2020-03-01T12:00:00Z', ...(reason && { reason }) }),
    );
    await load(db.store, lines);
    const march = { start_time: '2020-03-01', end_time: '2020-03-31' };
    const reasons = async () =>
      (await explain(service, 'campaigns', account, march)).parts.map(
        ({ kind, reason, chunks, impressions }) => [kind, reason, chunks && `${chunks}`, `${impressions}`],
      );
    expect(await reasons()).toEqual([
      ['events', null, '1', '3'],
      ['events', 'chargeback', '1', '2'],
      ['events', 'makegood', '1', '5'],
    ]);
    await prune(db.store, { keep: 24, anyway: true }, now());
    expect(await reasons()).toEqual([
      ['pruned', null, null, '3'],
      ['pruned', 'chargeback', null, '2'],
      ['pruned', 'makegood', null, '5'],
    ]);
  });

  it('says when its money was confirmed', async () => {
    const account = newAccount();
    await load(db.store, [of(account, { spend: '1' })]);
    await confirmDays(db.store, account, '2026-03-01', '2026-03-01');
    await load(db.store, [of(account, { spend: '2' })]);
    const { parts } = await explain(service, 'campaigns', account);
    expect(parts).toMatchObject([
      { unconfirmed: false, confirmed_at: expect.stringMatching(/^20.*Z$/) },
      { unconfirmed: true, confirmed_at: null },
    ]);
  });

  it('goes with its load', async () => {
    const account = newAccount();
    await load(db.store, [of(account)]);
    const kept = await newestLoad();
    await load(db.store, [of(account)]);
    await unload(db.store, await newestLoad(), now);
    const { parts } = await explain(service, 'ad_units', `${account}-p`);
    expect(parts).toMatchObject([{ load: kept }]);
  });

  it('of corrected rows names the load that they correct', async () => {
    const { load: wrong } = await rejected.loadWithRejects(20);
    const path = await rejected.corrected(wrong, 'ndjson', () => 5);
    expect((await rejected.run('replay', wrong, path)).code).toBe(0);
    const { parts } = await explain(service, 'campaigns', rejected.own.account);
    expect(parts[0]).toMatchObject({ kind: 'events', load: wrong, corrects: null });
    expect(new Set(parts.slice(1).map(({ kind, corrects }) => `${kind} ${corrects}`))).toEqual(
      new Set([`replay ${wrong}`]),
    );
    expect(parts.slice(1).reduce((sum, { impressions }) => sum + Number(impressions), 0)).toBe(20);
  });

  it('tells what came by no load, and what is older than the events that are kept', async () => {
    const account = newAccount();
    const fields = { campaign_id: 'campaign', event_time: '2020-03-01 12:00:00', impressions: 4 };
    await db.store.insert({
      table: 'events',
      values: [{ advertiser_id: account, ...fields }],
      format: 'JSONEachRow',
    });
    const march = { start_time: '2020-03-01', end_time: '2020-03-31' };
    expect((await explain(service, 'campaigns', account, march)).parts).toMatchObject([
      { kind: 'by_hand', load: null, chunk: null },
    ]);
    await load(db.store, [of(account, { event_time: '2020-03-02T00:00:00Z', quantity: 2 })]);
    await prune(db.store, { keep: 24, anyway: true }, now());
    await load(db.store, [of(account, { event_time: '2020-03-03T00:00:00Z' })]);
    const { parts } = await explain(service, 'campaigns', account, march);
    expect(parts).toMatchObject([
      { kind: 'pruned', load: null, chunk: null, events: null, last_day: '2020-03-02' },
      { kind: 'events', first_day: '2020-03-03' },
    ]);
    expect(parts.map(({ impressions }) => String(impressions))).toEqual(['6', '1']);
  });

  const partsOf = async (account: string, most: string, day = '2026-03-01') => {
    const asked = { start_time: day, end_time: day, row: {} };
    const statement = compileExplanation(explainedRow(catalog, 'campaigns', account, asked));
    const [found] = await select<{ result: { parts: unknown[] } }>(
      db.store,
      statement.query,
      { ...statement.params, most },
      statement.settings,
    );
    return found?.result.parts;
  };

  it('stands for all that came after the first ones, where there are too many', async () => {
    const account = newAccount();
    for (let n = 1; n <= 4; n++) await load(db.store, [of(account, { quantity: n })]);
    expect(await partsOf(account, '2')).toMatchObject([
      { kind: 'events', chunks: 1, impressions: 1 },
      { kind: 'events', chunks: 1, impressions: 2 },
      { kind: 'more', load: null, chunk: null, chunks: 2, events: 2, impressions: 7 },
    ]);
  });

  it('stands for the reasons of pruned months, too, where there are too many', async () => {
    const account = newAccount();
    const pruned = { event_time: '2020-03-01T12:00:00Z' };
    for (let n = 1; n <= 3; n++)
      await load(db.store, [of(account, { ...pruned, quantity: n, reason: `${n}` })]);
    await prune(db.store, { keep: 24, anyway: true }, now());
    await load(db.store, [of(account, pruned)]);
    expect(await partsOf(account, '2', '2020-03-01')).toMatchObject([
      { kind: 'pruned', reason: '1', events: null },
      { kind: 'pruned', reason: '2', events: null },
      { kind: 'more', reason: null, chunks: null, events: null, impressions: 4 },
    ]);
  });
});

describe('adtally explain', () => {
  const range = ['--from', '2026-03-01', '--to', '2026-03-01'];

  it('shows the file, the line and the bytes of each part', async () => {
    const account = newAccount();
    const lines = Array.from({ length: 30 }, (_, n) => of(account, { quantity: n + 1 }));
    await load(db.store, lines, 2_000);
    const stdout = await outputOf(
      rejected.run(...['explain', account, 'campaign_id=campaign', 'device=unknown', ...range, '--json']),
    );
    const { parts } = JSON.parse(stdout).result;
    expect(parts.length).toBeGreaterThan(2);
    const content = ndjson(lines);
    for (const { file, first_line, first_byte, bytes, events, impressions } of parts) {
      expect(file).toMatch(/events\.ndjson$/);
      const records = content.slice(first_byte, first_byte + bytes).split('\n');
      expect(records).toHaveLength(events);
      expect(records[0]).toBe(content.split('\n')[first_line - 1]);
      expect(records.reduce((sum, record) => sum + JSON.parse(record).quantity, 0)).toBe(impressions);
    }
    const table = await rejected.run('explain', `${account}-p`, 'ad_unit_id=ad-unit', ...range);
    expect(table.stdout).toMatch(/events\.ndjson/);
  });

  it.each([
    ['campaign=c'],
    ['device=tv'],
    ['campaign_id=c', 'site_id=s'],
    ['campaign_id=c', 'campaign_id=d'],
  ])('needs ids of one row: %s is wrong usage', async (...ids) => {
    const { code, stderr } = await rejected.run('explain', 'anybody', ...ids, ...range);
    expect(code).toBe(2);
    expect(stderr).toContain('campaign_id, device, creative_id; or ad_unit_id, device, site_id');
  });
});

describe('a row', () => {
  it('of another account is like one that is not there', async () => {
    const account = newAccount();
    await load(db.store, [of(account, { campaign_id: `${account}-c`, spend: '1' })]);
    const asked = { row: { campaign_id: `${account}-c` } };
    const ofAnother = await explain(service, 'campaigns', newAccount(), asked);
    expect(ofAnother).toEqual(
      await explain(service, 'campaigns', account, { row: { campaign_id: 'nobody' } }),
    );
    expect(ofAnother.parts).toEqual([]);
  });

  it('that is not what its events add up to is not explained', async () => {
    const account = newAccount();
    await load(db.store, [of(account)]);
    await db.store.insert({
      table: 'campaigns_date',
      values: [{ account_id: account, day: '2026-03-01', campaign_id: 'campaign', impressions: 1 }],
      format: 'JSONEachRow',
    });
    const body = { start_time: '2026-03-01', end_time: '2026-03-01', row: { campaign_id: 'campaign' } };
    const response = await service.post('/v1/campaigns/explain', account, body);
    expect(response.status).toBe(500);
    expect(response.headers.get('retry-after')).toBe('5');
    expect(await response.json()).toMatchObject({ code: 'explanation_differs' });
  });

  it.each([
    [{ row: { campaign: 'c' } }, 'row.campaign', 'campaign_id, device, creative_id'],
    [{ row: { campaign_id: 5 } }, 'row.campaign_id', 'text'],
    [{ row: undefined }, 'row', 'required'],
    [{ row: 'c' }, 'row', 'campaign_id'],
    [{ limit: 5 }, 'limit', 'filters'],
    [{ end_time: '2025-01-01' }, 'end_time', 'before'],
    [{ filters: { site: ['s'] } }, 'filters.site', 'campaign'],
  ])('of %j is refused, naming the field', async (asked, field, told) => {
    const body = { start_time: '2026-03-01', end_time: '2026-03-01', row: {}, ...(asked as Asked) };
    const response = await service.post('/v1/campaigns/explain', 'anybody', body);
    expect(response.status).toBe(400);
    const problem = (await response.json()) as { detail: string };
    expect(problem).toMatchObject({ code: 'invalid_request', field });
    expect(problem.detail).toContain(told);
  });
});
