import { tableFromIPC } from 'apache-arrow';
import { beforeAll, describe, expect, test } from 'vitest';
import { Adtally, IncompleteAnswer, TimeoutError } from '../../clients/typescript/src/index.ts';
import { reportTypes, writtenTypes } from '../../clients/typescript/write-reports.ts';
import { begins, breaksOff, ends, refuses, useBrokenServer } from '../support/broken-server.ts';
import { close } from '../support/closes.ts';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);
const server = useBrokenServer();
const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const row = '{"campaign":"a","spent":1}\n';

beforeAll(() =>
  load(db.store, [
    event({ device: 'mobile', spend: '1.25' }),
    event({ device: 'tv', event_time: '2026-03-02T00:00:00Z', campaign_id: 'größer', spend: '0.000001' }),
  ]),
);

const clientOf = async (account = 'advertiser') =>
  new Adtally({ url: `${service.url}/`, token: await service.token(account) });
const broken = (options: object = {}) => new Adtally({ url: server.url, token: 'adt_x', ...options });

/** The rows that came, and what ended them. */
async function rowsOf(client: Adtally, signal?: AbortSignal) {
  const rows: unknown[] = [];
  try {
    for await (const each of client.rows('campaigns', march, signal ? { signal } : {})) rows.push(each);
    return { rows, error: undefined };
  } catch (error) {
    return { rows, error };
  }
}

test('the types are those of the OpenAPI document', () => {
  const plain = (text: string) => text.replace(/[\s;|&]+/g, ' ');
  expect(plain(writtenTypes()), 'npm run client-types').toBe(plain(reportTypes()));
});

test('rows, report and Arrow table say the same', async () => {
  const client = await clientOf();
  const rows = [];
  for await (const each of client.rows('campaigns/device_date', march)) rows.push(each);
  expect(rows.map(({ campaign, device, spent }) => [campaign, device, spent])).toEqual([
    ['campaign', 'mobile', 1.25],
    ['größer', 'tv', 0.000001],
  ]);
  const report = await client.report('campaigns/device_date', march);
  expect(report.rows).toEqual(rows);
  expect(report.column_metadata).toHaveLength(Object.keys(rows[0] ?? {}).length);
  const table = tableFromIPC(await client.arrow('campaigns/device_date', march));
  expect(table.toArray().map((each) => [each.campaign, each.device])).toEqual(
    rows.map(({ campaign, device }) => [campaign, device]),
  );
  expect((await rowsOf(await clientOf('nobody'))).rows).toEqual([]);
});

test('optional fields are typed and sent', async () => {
  const client = await clientOf();
  const options = { limit: 1, totals: true, order_by: [{ field: 'spent', direction: 'desc' }] } as const;
  const report = await client.report('campaigns/date', { ...march, ...options });
  expect([report.rows.length, report.row_count, report.totals?.spent]).toEqual([1, 2, 1.250001]);
});

test('changed days are told, with the time to hand back', async () => {
  const client = await clientOf();
  const { days, changed_until } = await client.changes('campaigns');
  expect(days.map(({ day }) => day)).toEqual(['2026-03-01', '2026-03-02']);
  expect(Date.parse(changed_until)).toBeGreaterThan(0);
  expect((await client.changes('campaigns', '2100-01-01T00:00:00Z')).days).toEqual([]);
});

test('adjustments are what came after a month was closed', async () => {
  const sides = { advertiser_id: 'closed', event_time: '2026-02-03T00:00:00Z' };
  await load(db.store, [event({ ...sides, spend: '1' })]);
  const february = { start_time: '2026-02-01', end_time: '2026-02-28' };
  const client = await clientOf('closed');
  await expect(client.adjustments('campaigns', february)).rejects.toMatchObject({ code: 'month_not_closed' });
  await close(db.store, '2026-02', 'closed', { anyway: true });
  await load(db.store, [event({ ...sides, spend: '-0.25', reason: 'chargeback' })]);
  const asked = { ...february, totals: true, by_load: true };
  const { rows, totals } = await client.adjustments('campaigns', asked);
  expect(rows).toMatchObject([
    { start_time: '2026-02-03', campaign_id: 'campaign', reason: 'chargeback', spent: -0.25 },
  ]);
  expect(totals).toMatchObject({ spent: -0.25 });
});

test('a file of the other side is compared', async () => {
  const file = Buffer.from('day,campaign_id,impressions,paid\n2026-03-01,campaign,2,1.50\n');
  const parameters = { end_time: '2026-03-01', 'columns.spend': 'paid' };
  const { figures } = await (await clientOf()).reconcile('campaigns', file, { parameters });
  expect(figures).toMatchObject({
    impressions: { ours: '1', theirs: '2' },
    spent: { ours: '1.25', theirs: '1.5' },
  });
});

test('a refusal says why', async () => {
  const refusal = await (await clientOf())
    .report('campaigns', { ...march, end_time: '2026-02-30' })
    .catch(String);
  expect(refusal).toContain('end_time');
  const { error } = await rowsOf(new Adtally({ url: service.url, token: 'adt_none' }));
  expect(error).toMatchObject({ status: 401, code: 'unauthorized', requestId: expect.any(String) });
});

describe('an answer that is not whole', () => {
  test.each([
    ['broken off between rows', breaksOff(row, row)],
    ['broken off in a row', breaksOff(row, row, row.slice(0, 9))],
    ['ended in a row', ends(row, row, row.slice(0, 9))],
  ])('throws behind its last row: %s', async (_, way) => {
    server.answers(way);
    const { rows, error } = await rowsOf(broken());
    expect(rows).toHaveLength(2);
    expect(error).toBeInstanceOf(IncompleteAnswer);
    expect(server.requests).toBe(1);
  });

  test('throws as a report and as a table, too', async () => {
    server.answers(ends('{"result":{"rows":[{"campaign":"a"}'));
    await expect(broken().report('campaigns', march)).rejects.toThrow(IncompleteAnswer);
    await expect(broken().arrow('campaigns', march)).rejects.toThrow(IncompleteAnswer);
  });
});

test('a service that does not answer, or stops, is not waited for', async () => {
  server.answers(() => {});
  expect((await rowsOf(broken({ timeoutMs: 100 }))).error).toBeInstanceOf(TimeoutError);
  server.answers((response) => void response.writeHead(400).write('{'));
  expect((await rowsOf(broken({ timeoutMs: 300 }))).error).toBeInstanceOf(TimeoutError);
  server.answers((response) => void begins(response).write(row));
  const { rows, error } = await rowsOf(broken({ idleTimeoutMs: 300 }));
  expect([rows.length, error]).toEqual([1, expect.any(TimeoutError)]);
});

test('an abort ends a request, a pause between two tries, and a loop that is left', async () => {
  const abort = new AbortController();
  const reason = new Error('enough');
  server.answers(refuses(429, 'rate_limited', { 'retry-after': '60' }));
  const asked = rowsOf(broken(), abort.signal);
  await expect.poll(() => server.requests).toBe(1);
  abort.abort(reason);
  expect((await asked).error).toBe(reason);
  expect((await rowsOf(broken(), abort.signal)).error).toBe(reason);
  let closed = false;
  server.answers((response) => {
    response.once('close', () => {
      closed = true;
    });
    begins(response).write(row);
  });
  for await (const _ of broken().rows('campaigns', march)) break;
  await expect.poll(() => closed).toBe(true);
});
