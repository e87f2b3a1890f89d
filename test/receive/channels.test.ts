import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { onShards } from '../../clickhouse/cluster/on-nodes.ts';
import { unload } from '../../ingest/history/unload.ts';
import { changeChunks } from '../../ingest/ledger/change-chunks.ts';
import { event } from '../support/events.ts';
import { useFolder } from '../support/folder.ts';
import { seededRandom } from '../support/random.ts';
import { bodyOf, type TestReceiver, useReceiver } from '../support/receiver.ts';
import { useStore } from '../support/store.ts';

const folder = useFolder();
writeFileSync(join(folder, 'other.json'), '{"set":{"reason":"other"}}');
const db = useStore();
const receiver = repeating(useReceiver(db, { MAPPINGS_DIR: folder }));
const second = repeating(useReceiver(db));

/** Sends a body again where ClickHouse is too busy, as a sender does. */
function repeating(by: TestReceiver): TestReceiver {
  const send: TestReceiver['send'] = async (...asked) => {
    const answer = await by.send(...asked);
    if (answer.status !== 503) return answer;
    await delay(500);
    return send(...asked);
  };
  return Object.assign(Object.create(by), { send });
}

let made = 0;
/** A channel of its own, with the records of an account of its own. */
function stream(count: number) {
  const account = `account-${++made}`;
  const channel = `orders ${made}`;
  const records = Array.from({ length: count }, (_, n) =>
    event({ advertiser_id: account, creative_id: `c${n}` }),
  );
  const send = (from: number, to: number, by = receiver, offset = from) =>
    by.send(bodyOf(records.slice(from, to)), { channel, offset: `${offset}` });
  return { account, channel, records, send };
}

/** Which records of an account count, in their order. */
async function counted(account: string): Promise<string[]> {
  const rows = await select<{ creative: string }>(
    db.store,
    `SELECT creative_id AS creative FROM events WHERE advertiser_id = {account:String}
     ORDER BY toUInt32(substring(creative_id, 2))`,
    { account },
  );
  return rows.map(({ creative }) => creative);
}

/** As a kill leaves it behind the insert: nothing says that it is loaded, nor how far the channel has come. */
async function interrupt(load: unknown): Promise<void> {
  const chunks = await select<{ chunk: string }>(
    db.store,
    'SELECT DISTINCT chunk FROM load_chunks WHERE load_id = {load:String}',
    { load },
  );
  await changeChunks(db.store, 'load_chunks', 'UPDATE loaded_at = toDateTime64(0, 6)', {
    chunks: chunks.map(({ chunk }) => chunk),
    condition: 'toUInt64(loaded_at) > 0',
  });
  await onShards(db.store, (shard) => shard.store.command({ query: 'TRUNCATE TABLE channels' }));
}

const first = (count: number): string[] => Array.from({ length: count }, (_, n) => `c${n}`);

test('what came before is cut off, a gap is refused, and each answer tells where the channel goes on', async () => {
  const { account, send } = stream(100);
  expect(await send(0, 40)).toMatchObject({ status: 200, json: { accepted: 40, committed: 40 } });
  // The same piece, one that begins within it, one within it, and one that begins before it and ends behind it.
  expect(await send(0, 40)).toMatchObject({ status: 200, json: { load: '', accepted: 0, committed: 40 } });
  expect(await send(30, 50)).toMatchObject({ status: 200, json: { accepted: 10, committed: 50 } });
  expect(await send(10, 20)).toMatchObject({ status: 200, json: { accepted: 0, committed: 50 } });
  expect(await send(0, 60)).toMatchObject({ status: 200, json: { accepted: 10, committed: 60 } });
  expect(await send(61, 100)).toMatchObject({
    status: 409,
    json: {
      code: 'offset_refused',
      committed: 60,
      detail: 'the channel goes on at 60: send the records from there on',
    },
  });
  expect(await send(60, 100, second)).toMatchObject({ status: 200, json: { accepted: 40, committed: 100 } });
  expect(await counted(account)).toEqual(first(100));
});

test('a body without records tells where a channel goes on', async () => {
  const { send } = stream(5);
  expect(await send(0, 0)).toMatchObject({ status: 200, json: { load: '', accepted: 0, committed: 0 } });
  await send(0, 5);
  expect(await send(0, 0)).toMatchObject({ status: 200, json: { accepted: 0, committed: 5 } });
  const loads =
    "SELECT toUInt32(count()) AS n FROM loads FINAL WHERE file LIKE '%channel orders%' AND chunks = 0";
  expect(await select(db.store, loads)).toEqual([{ n: 0 }]);
});

test('rejected records count, blank lines do not, and a piece may begin with any record', async () => {
  const { account, channel, records } = stream(6);
  const send = (text: string, offset: number) => receiver.send(text, { channel, offset: `${offset}` });
  const poison = '{"note":"x","items":[1]}\n';
  const head = bodyOf(records.slice(0, 2));
  expect((await send(`${head}\n\r\n`, 0)).json).toMatchObject({ accepted: 2, rejected: 0, committed: 2 });
  // It would be taken for the answer of an API if it were the first of a file.
  expect(await send(`${head}\n${poison}${bodyOf(records.slice(2, 3))}`, 0)).toMatchObject({
    status: 200,
    json: { accepted: 1, rejected: 1, reasons: [expect.stringMatching(/^line 4: /)], committed: 4 },
  });
  expect((await send(`${poison}\n\n${bodyOf(records.slice(2))}`, 2)).json).toMatchObject({
    accepted: 3,
    committed: 7,
  });
  expect(await counted(account)).toEqual(first(6));
});

test('the lines of a large body are left out one run at a time', async () => {
  const { account, channel, records } = stream(3);
  const long = (n: number) =>
    JSON.stringify({
      ...records[n % 3],
      event_id: '',
      creative_id: `c${n}`,
      campaign_id: 'x'.repeat(100 + (n % 7)),
    });
  const lines = Array.from({ length: 30_000 }, (_, n) => long(n));
  const send = (from: number, to: number) =>
    receiver.send(`${lines.slice(from, to).join('\n')}\n`, { channel, offset: `${from}` });
  for (const [from, to] of [
    [0, 7],
    [0, 12_345],
    [5, 12_346],
    [0, 29_999],
    [0, 30_000],
  ] as const) {
    expect((await send(from, to)).json).toMatchObject({ committed: to });
  }
  expect(await counted(account)).toEqual(first(30_000));
});

test('a channel belongs to its sender, and its bytes are others than the same ones without it', async () => {
  const { account, channel, records, send } = stream(3);
  const authorization = `Bearer ${await receiver.token('app')}`;
  await send(0, 3);
  const own = await receiver.send(bodyOf(records), { channel, offset: '0', authorization });
  expect(own.json).toMatchObject({ accepted: 3, committed: 3 });
  expect((await receiver.send(bodyOf(records))).json).toMatchObject({ accepted: 3 });
  expect(await counted(account)).toHaveLength(9);
});

test('pieces that are cut otherwise each time, sent to two services at once and repeated, count each record once', async () => {
  const { account, send } = stream(300);
  const random = seededRandom(11);
  let committed = 0;
  while (committed < 300) {
    const pieces = Array.from({ length: 4 }, (_, n) => {
      const from = Math.max(0, committed - Math.floor(random() * 50));
      return send(from, from + 1 + Math.floor(random() * 120), n % 2 ? receiver : second);
    });
    for (const { status, json } of await Promise.all(pieces)) {
      expect([200, 409, 503]).toContain(status);
      committed = Math.max(committed, Number(json.committed ?? 0));
    }
  }
  expect(await counted(account)).toEqual(first(300));
  const loaded = `SELECT toUInt32(sum(n)) AS records FROM (
    SELECT max(records) AS n FROM load_chunks WHERE load_id IN (SELECT load_id FROM loads WHERE endsWith(file, ', channel orders ${made}'))
      AND toUInt64(loaded_at) > 0 GROUP BY head, chunk)`;
  expect(await select(db.store, loaded)).toEqual([{ records: 300 }]);
});

test('what was sent and is in doubt comes again whole, or is taken back by its load', async () => {
  const { account, send } = stream(30);
  const { json } = await send(0, 20);
  await interrupt(json.load);
  const fewer = await send(0, 10);
  expect(fewer).toMatchObject({
    status: 409,
    json: { committed: 0, records: 20, detail: expect.stringMatching(/ 20 records have arrived that were/) },
  });
  const more = await send(0, 25);
  expect(more).toMatchObject({ status: 200, json: { committed: 25 } });
  expect(await counted(account)).toEqual(first(25));
  // A piece that is in doubt, and the load of which is taken back, is as if it had never come.
  const last = await send(25, 30);
  await interrupt(last.json.load);
  expect((await send(25, 27)).status).toBe(409);
  await unload(db.store, `${last.json.load}`, () => new Date());
  expect(await send(25, 27)).toMatchObject({ status: 200, json: { accepted: 2, committed: 27 } });
  expect(await send(20, 30)).toMatchObject({ status: 200, json: { accepted: 3, committed: 30 } });
  expect(await counted(account)).toEqual(first(30));
});

test('of what is in doubt nothing behind it is loaded, by whomever it comes', async () => {
  const { account, channel, records, send } = stream(60);
  await interrupt((await send(0, 20)).json.load);
  const viaSecond = second.send(bodyOf(records.slice(0, 50)), { channel, offset: '0' });
  for (const { status } of await Promise.all([send(0, 50), viaSecond])) expect([200, 503]).toContain(status);
  expect(await send(0, 50)).toMatchObject({ status: 200, json: { committed: 50 } });
  // In two chunks of one body, the first of which is in doubt.
  const chunks = await select<{ records: number }>(
    db.store,
    `SELECT toUInt32(max(records)) AS records FROM load_chunks
     WHERE load_id IN (SELECT load_id FROM loads WHERE endsWith(file, {file:String})) AND toUInt64(loaded_at) > 0 GROUP BY head ORDER BY records`,
    { file: `, channel ${channel}` },
  );
  expect(chunks).toEqual([{ records: 20 }, { records: 30 }]);
  await interrupt((await send(50, 60)).json.load);
  const { json } = await send(45, 55);
  expect(json).toMatchObject({ code: 'offset_refused', committed: 50, records: 10 });
  const [, load = ''] = /have load (\S+) taken back/.exec(`${json.detail}`) ?? [];
  await unload(db.store, load, () => new Date());
  expect((await send(45, 55)).json).toMatchObject({ accepted: 5, committed: 55 });
  expect((await send(0, 60)).json).toMatchObject({ accepted: 5, committed: 60 });
  expect(await counted(account)).toEqual(first(60));
});

test('a body of two chunks is loaded one after the other, and its answer has both', async () => {
  const { account, channel } = stream(0);
  const bad = '{"event_time":"never"}\n';
  const long = 'x'.repeat(120);
  const line = (n: number) =>
    `{"event_time":"2026-03-01T12:00:00Z","impressions":1,"advertiser_id":"${account}","campaign_id":"c${n % 9}${long}","creative_id":"${long}","reason":"${long.slice(60)}"}\n`;
  // The second of the bad ones is in the second chunk.
  const lines = Array.from({ length: 140_000 }, (_, n) => (n % 120_000 === 5 ? bad : line(n)));
  const { json } = await receiver.send(lines.join(''), { channel, offset: '0' });
  expect(json).toMatchObject({ accepted: 139_998, rejected: 2, duplicates: 0, committed: 140_000 });
  expect(json.reasons).toHaveLength(2);
  const events = 'SELECT toUInt32(count()) AS n FROM events WHERE advertiser_id = {account:String}';
  expect(await select(db.store, events, { account })).toEqual([{ n: 139_998 }]);
});

test('what is in doubt goes on through the mapping that it was sent through', async () => {
  const { account, channel, records, send } = stream(10);
  await interrupt((await send(0, 10)).json.load);
  const mapped = (query: string) => receiver.send(bodyOf(records), { channel, offset: '0' }, query);
  expect(await mapped('?mapping=other')).toMatchObject({ status: 409, json: { committed: 0, records: 10 } });
  expect(await mapped('')).toMatchObject({ status: 200, json: { committed: 10 } });
  // Loaded, it is cut off, however it is read.
  expect(await mapped('?mapping=other')).toMatchObject({ status: 200, json: { accepted: 0, committed: 10 } });
  expect(await counted(account)).toEqual(first(10));
});

test('what was claimed and never sent keeps no place', async () => {
  const { account, send } = stream(10);
  const { load } = (await send(0, 10)).json;
  await unload(db.store, `${load}`, () => new Date());
  await interrupt(load);
  const query = 'SELECT DISTINCT chunk FROM load_chunks WHERE load_id = {load:String}';
  const chunks = (await select<{ chunk: string }>(db.store, query, { load })).map(({ chunk }) => chunk);
  await changeChunks(db.store, 'load_chunks', 'UPDATE sent_at = toDateTime64(0, 6)', {
    chunks,
    condition: 'toUInt64(sent_at) > 0',
  });
  const again = "ALTER TABLE loads UPDATE state = 'failed' WHERE load_id = {load:String}";
  await onShards(db.store, (shard) =>
    shard.store.command({
      query: again,
      query_params: { load },
      clickhouse_settings: { mutations_sync: '2' },
    }),
  );
  expect(await send(0, 4)).toMatchObject({ status: 200, json: { accepted: 4, committed: 4 } });
  expect(await counted(account)).toEqual(first(4));
});

test('a load that is taken back leaves no gap that is filled twice', async () => {
  const { account, send } = stream(10);
  const { json } = await send(0, 6);
  await unload(db.store, `${json.load}`, () => new Date());
  expect(await send(0, 10)).toMatchObject({ status: 200, json: { accepted: 4, committed: 10 } });
  expect(await counted(account)).toEqual(['c6', 'c7', 'c8', 'c9']);
  // One that was killed before it could note how far it had come, and another behind it.
  const killed = stream(10);
  const first = await killed.send(0, 6);
  await onShards(db.store, (shard) => shard.store.command({ query: 'TRUNCATE TABLE channels' }));
  await killed.send(6, 10);
  await onShards(db.store, (shard) =>
    shard.store.command({
      query: 'ALTER TABLE channels DELETE WHERE position = 10',
      clickhouse_settings: { mutations_sync: '2' },
    }),
  );
  await unload(db.store, `${first.json.load}`, () => new Date());
  expect(await killed.send(0, 10)).toMatchObject({ status: 200, json: { accepted: 0, committed: 10 } });
  expect(await counted(killed.account)).toEqual(['c6', 'c7', 'c8', 'c9']);
});

test('a body whose last line is cut off is refused, and sent whole it counts', async () => {
  const { account, channel, records } = stream(3);
  const body = bodyOf(records);
  const headers = { channel, offset: '0' };
  for (const last of ['{"reason":"a}', '{"campaign":{"id":7}', body.slice(0, 20)]) {
    expect(await receiver.send(`${body}${last}`, headers)).toMatchObject({
      status: 400,
      json: { field: 'Channel', detail: expect.stringMatching(/last line of the body is cut off/) },
    });
  }
  expect(await receiver.send(body.trimEnd(), headers)).toMatchObject({ status: 200, json: { committed: 3 } });
  expect(await counted(account)).toEqual(first(3));
  // What is no object is a record all the same, and rejected.
  expect(await receiver.send('null', { channel, offset: '3' })).toMatchObject({
    json: { rejected: 1, committed: 4 },
  });
});

test.each([
  [{ channel: 'a' }, 'Offset', 'Offset must be the number of the first record in its channel, from 0'],
  [{ channel: 'a', offset: '-1' }, 'Offset', /must be the number/],
  [{ channel: 'a', offset: '1e3' }, 'Offset', /must be the number/],
  [{ offset: '0' }, 'Channel', 'Channel must have 1 to 200 characters of ASCII that can be printed'],
  [{ channel: 'x'.repeat(201), offset: '0' }, 'Channel', /must have 1 to 200/],
  [{ channel: 'a', offset: '0', 'idempotency-key': 'k' }, 'Idempotency-Key', /either a channel or a key/],
] as const)('%j is refused', async (headers, field, detail) => {
  const { status, json } = await receiver.send(bodyOf(stream(1).records), headers as Record<string, string>);
  expect({ status, json }).toMatchObject({
    status: 400,
    json: {
      code: 'invalid_request',
      field,
      detail: typeof detail === 'string' ? detail : expect.stringMatching(detail),
    },
  });
});

test.each([
  ['text/csv', 'event_time\n'],
  ['application/vnd.apache.parquet', 'PAR1'],
  ['application/json', ' [{}]'],
])('%s has no record on each line, and is refused', async (type, body) => {
  const headers = { channel: 'p', offset: '0', 'content-type': type };
  expect(await receiver.send(body, headers)).toMatchObject({ status: 400, json: { field: 'Channel' } });
});
