import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { unload } from '../../ingest/history/unload.ts';
import { prune } from '../../src/cli/store/prune.ts';
import { finestPlan } from '../../src/close/canonical-text.ts';
import { closeMonth } from '../../src/close/close-month.ts';
import { closesOf } from '../../src/close/closes.ts';
import { monthNamed } from '../../src/close/month.ts';
import { withReader } from '../../src/close/with-reader.ts';
import { allShardsOf } from '../../src/report/all-shards.ts';
import { close, march, useCloses } from '../support/closes.ts';
import { type EventLine, event, load, loadRows } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { onEveryShard, useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);
const closes = useCloses(db, service);

const of = (account: string, fields: Partial<EventLine> = {}) =>
  event({ advertiser_id: account, publisher_id: `${account}-p`, confirmed: true, ...fields });

const asIs = { unconfirmed: [], openRejects: 0, timezone: 'UTC' };

describe('a close', () => {
  test('is named by its text, which has a line for each row', async () => {
    await load(db.store, [
      of('text', { spend: '1.50', quantity: 3 }),
      of('text', { device: 'tv', creative_id: 'x/y' }),
    ]);
    await close(db.store, '2026-03', 'text');
    const [closed] = await closes.of('text');
    if (!closed) throw new Error('nothing was closed');
    const text = await closes.textOf(closed);
    expect(text.split('\n')).toEqual([
      '{"account_id":"text","month":"2026-03"}',
      '{"family":"campaigns","day":"2026-03-01","campaign":"campaign","campaign_id":"campaign","device":"tv","creative_id":"x/y","impressions":"1"}',
      '{"family":"campaigns","day":"2026-03-01","campaign":"campaign","campaign_id":"campaign","device":"unknown","impressions":"3","spent":"1.5"}',
      '',
    ]);
    expect(createHash('sha256').update(text).digest('hex')).toBe(closed.revision);
  });

  test('that was interrupted counts for nothing, and the next one removes what it has left', async () => {
    const account = 'interrupted';
    await load(db.store, [of(account)]);
    const killed = () => Promise.reject(new Error('killed'));
    const which = { account, month: 202603, routing: await allShardsOf(db.store) };
    await withReader(db.store, (reader) =>
      expect(closeMonth(db.store, reader, catalog, which, { ...asIs, beforeLast: killed })).rejects.toThrow(
        'killed',
      ),
    );
    const left = async () => {
      const query = 'SELECT DISTINCT revision FROM campaigns_closed WHERE account_id = {account:String}';
      return (await select<{ revision: string }>(db.store, query, { account })).map(
        ({ revision }) => revision,
      );
    };
    expect(await left()).toHaveLength(1);
    const asked = await service.post('/v1/campaigns', account, { ...march, as_of: 'closed' });
    expect([asked.status, await asked.json()]).toMatchObject([
      409,
      { code: 'month_not_closed', field: 'as_of', detail: '2026-03 is not closed' },
    ]);
    await load(db.store, [of(account, { device: 'tv' })]);
    await close(db.store, '2026-03', account);
    const [closed] = await closes.of(account);
    expect(await left()).toEqual([closed?.revision]);
    expect(closed?.rows).toBe(2);
  });

  test('that an interrupted one of the same rows has begun has each row once', async () => {
    const account = 'twice';
    await load(db.store, [of(account, { quantity: 7 })]);
    const which = { account, month: 202603, routing: await allShardsOf(db.store) };
    const killed = () => Promise.reject(new Error('killed'));
    await withReader(db.store, async (reader) => {
      const interrupted = closeMonth(db.store, reader, catalog, which, { ...asIs, beforeLast: killed });
      await expect(interrupted).rejects.toThrow('killed');
      expect(await closeMonth(db.store, reader, catalog, which, asIs)).toMatchObject({
        rows: 1,
        before: false,
      });
      expect(await closeMonth(db.store, reader, catalog, which, asIs)).toMatchObject({ before: true });
    });
    expect(await closes.ask('/v1/campaigns', account, { ...march, as_of: 'closed' })).toContain(
      '"impressions":7',
    );
  });

  test('of an account whose rows of the month all went is closed again, without rows', async () => {
    const account = 'emptied';
    await load(db.store, [of(account, { quantity: 7 })]);
    const ofAccount =
      'SELECT load_id AS id FROM load_chunks WHERE chunk IN (SELECT chunk FROM events WHERE advertiser_id = {account:String})';
    const [found] = await select<{ id: string }>(db.store, ofAccount, { account });
    await close(db.store, '2026-03', account);
    const [first] = await closes.of(account);
    await unload(db.store, found?.id ?? '', () => new Date());
    await close(db.store, '2026-03', account);
    const [again] = await closes.of(account);
    expect(again).toMatchObject({ rows: 0, previous: first?.revision });
    const rows = async (as_of?: string) =>
      (await closes.ask('/v1/campaigns', account, { ...march, as_of })).match(/"rows":\[.*?\]/)?.[0];
    expect(await rows('closed')).toBe('"rows":[]');
    expect(await rows(first?.revision)).toContain('"impressions":7');
    expect(await closes.verified()).toEqual([]);
    await expect(close(db.store, '2026-03', 'never')).rejects.toThrow('never has no rows in 2026-03');
  });

  test('of what prune --reports has dropped is refused, and the last one goes on to answer', async () => {
    const account = 'dropped';
    await load(db.store, [of(account, { event_time: '2023-03-01T00:00:00Z', quantity: 7 })]);
    await close(db.store, '2023-03', undefined);
    const ask = () => {
      const body = { start_time: '2023-03-01', end_time: '2023-03-31', as_of: 'closed' };
      return closes.ask('/v1/campaigns', account, body);
    };
    const before = await ask();
    await prune(db.store, { keep: 24, reports: true }, new Date('2026-05-15T00:00:00Z'));
    await expect(close(db.store, '2023-03', account)).rejects.toThrow(`${account} has no rows in 2023-03`);
    await close(db.store, '2023-03', undefined);
    expect(await closes.of(account)).toHaveLength(1);
    expect(await ask()).toBe(before);
  });

  test('of a month that has not ended is refused', async () => {
    await load(db.store, [of('early', { event_time: '2148-03-01T00:00:00Z' })]);
    await expect(close(db.store, '2148-03', 'early')).rejects.toThrow(
      'early 2148-03 is not closed: the month has not ended',
    );
    expect(await closes.of('early')).toEqual([]);
  });

  test('of an account with rejected rows that may be of the month by another clock, or another order of day and month, is refused', async () => {
    const times = ['2026-02-28', '2026-04-01 00:30:00', '1775003400', '03/04/2026'];
    const others = ['2026-02-27T23:59:59Z', '2026-04-02', '1775181600000'];
    await load(db.store, [
      of('edge'),
      ...[...times, ...others].map((event_time) => of('edge', { event_time, quantity: 0 })),
    ]);
    await expect(close(db.store, '2026-03', 'edge')).rejects.toThrow(
      `edge 2026-03 is not closed: ${times.length} rejected rows open`,
    );
  });

  test('of all accounts counts for each the rejected rows that may be its own, and those of nobody', async () => {
    const time = { event_time: '2022-03-01T00:00:00Z' };
    await load(db.store, [
      ...[of('few', time), of('many', time), of('many', { ...time, quantity: 0 })],
      event({ ...time, advertiser_id: '', publisher_id: '' }),
    ]);
    const told = await close(db.store, '2022-03', undefined).catch(({ message }: Error) => message);
    const [one, two] = ['1 rejected row open that may be of it', '2 rejected rows open that may be of it'];
    expect(String(told).split('\n')).toEqual(
      [`few: ${one}`, `few-p: ${one}`, `many: ${two}`, `many-p: ${two}`].map((line) =>
        line.replace(':', ' 2022-03 is not closed:'),
      ),
    );
  });

  test('of all accounts closes those that are ready', async () => {
    await load(db.store, [
      of('ready', { event_time: '2024-05-01T00:00:00Z' }),
      of('open', { event_time: '2024-05-01T00:00:00Z', spend: '1', confirmed: false }),
    ]);
    await expect(close(db.store, '2024-05', undefined)).rejects.toThrow(
      'open 2024-05 is not closed: 1 day unconfirmed',
    );
    const closed = await closesOf(db.store, { from: 202405, to: 202405 });
    expect(closed.map(({ account }) => account).sort()).toEqual(['open-p', 'ready', 'ready-p']);
  });

  test('of all accounts names the one whose names are loaded in its moment, and closes the others', async () => {
    const time = { event_time: '2024-06-01T00:00:00Z', publisher_id: 'renamed-p' };
    await load(
      db.store,
      ['a', 'b', 'c'].map((name) => of(`renamed-${name}`, time)),
    );
    const store: Store = Object.create(db.store);
    store.command = async (params) => {
      if (/INSERT INTO campaigns_closed/.test(params.query) && params.query_params?.account === 'renamed-b')
        await loadRows(db.store, 'campaigns', [['renamed-b', 'campaign', 'A name']]);
      return db.store.command(params);
    };
    await expect(close(store, '2024-06', undefined)).rejects.toThrow(
      'renamed-b 2024-06 is not closed: its names were loaded meanwhile: close it again',
    );
    const closed = async () =>
      (await closesOf(db.store, { from: 202406, to: 202406 })).map(({ account }) => account).sort();
    expect(await closed()).toEqual(['renamed-a', 'renamed-c', 'renamed-p']);
    await close(db.store, '2024-06', 'renamed-b');
    expect(await closed()).toEqual(['renamed-a', 'renamed-b', 'renamed-c', 'renamed-p']);
  });

  test('whose rows were changed afterwards is found', async () => {
    await load(db.store, [of('changed', { spend: '3' })]);
    await close(db.store, '2026-03', 'changed');
    expect(await closes.verified()).toEqual([]);
    await onEveryShard(db, "ALTER TABLE campaigns_closed UPDATE spent = 4 WHERE account_id = 'changed'");
    expect(await closes.verified()).toMatchObject([
      {
        account: 'changed',
        month: '2026-03',
        what: expect.stringMatching(/^its rows have the digest [0-9a-f]{64}$/),
      },
    ]);
    await onEveryShard(db, "ALTER TABLE campaigns_closed UPDATE spent = 3 WHERE account_id = 'changed'");
    expect(await closes.verified()).toEqual([]);
  });
});

describe('as_of', () => {
  test('of a revision answers for its month and its account alone', async () => {
    await load(db.store, [of('own'), of('other')]);
    for (const account of ['own', 'other']) await close(db.store, '2026-03', account);
    const [other] = await closes.of('other');
    const asked = (account: string, body: object) => service.post('/v1/campaigns', account, body);
    expect((await asked('other', { ...march, as_of: other?.revision })).status).toBe(200);
    for (const [account, body] of [
      ['own', { ...march, as_of: other?.revision }],
      ['other', { ...march, end_time: '2026-04-01', as_of: other?.revision }],
      ['other', { ...march, compare_to: 'previous_month', as_of: 'closed' }],
      ['other', { ...march, start_time: '0001-01-01', as_of: 'closed' }],
    ] as const) {
      expect((await asked(account, body)).status).toBe(409);
    }
    for (const [body, detail] of [
      [{ as_of: 'yesterday' }, 'as_of must be closed, or the name of a revision: 64 hex digits'],
      [{ as_of: 'closed', changed_since: '2026-01-01T00:00:00Z' }, 'as_of does not go with changed_since'],
    ] as const) {
      const response = await service.post('/v1/campaigns/breakdowns/date', 'other', { ...march, ...body });
      expect(await response.json()).toMatchObject({ status: 400, detail: expect.stringContaining(detail) });
    }
  });
});

test('rows of a month are read by the report that has all of them', () => {
  const plan = finestPlan(catalog, 'campaigns', { account: 'a', month: monthNamed('2024-02') ?? 0 });
  expect(plan.days).toEqual({ first: '2024-02-01', last: '2024-02-29' });
});
