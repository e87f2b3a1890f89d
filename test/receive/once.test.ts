import { execFileSync } from 'node:child_process';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { defaultMapping } from '../../ingest/event/mapping.ts';
import { plainReading } from '../../ingest/event/reading.ts';
import { ndjson } from '../../ingest/formats/ndjson.ts';
import { heldInput } from '../../ingest/input/held-input.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { Load } from '../../ingest/ledger/load.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { BodyLoader } from '../../src/receive/load-body.ts';
import { event, withFile } from '../support/events.ts';
import { parquetFile } from '../support/parquet.ts';
import { bodyOf, useReceiver } from '../support/receiver.ts';
import { metric } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const receiver = useReceiver(db);
const second = useReceiver(db);

let made = 0;
/** Events of an account of their own. */
function own(count: number) {
  const account = `account-${++made}`;
  return {
    account,
    events: Array.from({ length: count }, (_, n) => event({ advertiser_id: account, creative_id: `c${n}` })),
  };
}

const counted = async (account: string): Promise<number> => {
  const [row] = await select<{ n: number }>(
    db.store,
    `SELECT toFloat64((SELECT count() FROM events WHERE advertiser_id = {account:String})) AS n,
            throwIf(n != (SELECT toFloat64(sum(impressions)) FROM campaigns_date WHERE account_id = {account:String}))`,
    { account },
  );
  return row?.n ?? 0;
};

const loadFile = (name: string, content: string) =>
  withFile(name, content, (path) =>
    loadEvents({ store: db.store, input: new LocalFile(path), now: () => new Date() }),
  );

test('the same bytes count once, packed or not, and the second answer says so', async () => {
  const { account, events } = own(30);
  const body = bodyOf(events);
  const first = await receiver.send(body);
  expect(first).toMatchObject({
    status: 200,
    json: { accepted: 30, rejected: 0, duplicates: 0, reasons: [] },
  });
  const zstd = execFileSync('zstd', ['-c'], { input: body });
  for (const [coding, packed] of [
    ['gzip', gzipSync(body)],
    ['zstd', zstd],
    ['br', brotliCompressSync(body)],
    ['identity', body],
  ] as const) {
    const again = await receiver.send(packed, { 'content-encoding': coding });
    expect([coding, again.json]).toEqual([coding, { ...first.json, accepted: 0, duplicates: 30 }]);
  }
  expect(await counted(account)).toBe(30);
});

test('a body and a file of the same bytes count once, whichever comes first', async () => {
  const [bodyFirst, fileFirst] = [own(7), own(8)];
  const sent = await receiver.send(bodyOf(bodyFirst.events));
  expect(await loadFile('a.ndjson', bodyOf(bodyFirst.events))).toMatchObject({ rows: 0, repeatedRows: 7 });
  const { loadId } = await loadFile('b.ndjson', bodyOf(fileFirst.events));
  const { json } = await receiver.send(bodyOf(fileFirst.events));
  expect(json).toMatchObject({ load: loadId, accepted: 0, duplicates: 8 });
  expect(json.load).not.toBe(sent.json.load);
  expect(await Promise.all([counted(bodyFirst.account), counted(fileFirst.account)])).toEqual([7, 8]);
});

test('a last line without an end is stored with the others, and counts once beside a file of the same bytes', async () => {
  const [bodyFirst, fileFirst] = [own(4), own(5)];
  const [body, file] = [bodyOf(bodyFirst.events).trimEnd(), bodyOf(fileFirst.events).trimEnd()];
  const { json } = await receiver.send(body);
  expect(json).toMatchObject({ accepted: 4 });
  const chunks =
    'SELECT toFloat64(uniqExact(chunk)) AS chunks FROM load_chunks WHERE load_id = {load:String}';
  expect(await select(db.store, chunks, { load: json.load })).toEqual([{ chunks: 1 }]);
  expect(await loadFile('c.ndjson', body)).toMatchObject({ rows: 0, repeatedRows: 4 });
  await loadFile('d.ndjson', file);
  expect((await receiver.send(file)).json).toMatchObject({ accepted: 0, duplicates: 5 });
  expect(await Promise.all([counted(bodyFirst.account), counted(fileFirst.account)])).toEqual([4, 5]);
});

test('a body that begins like another adds what is new, as a file does that has grown', async () => {
  const { account, events } = own(5);
  await receiver.send(bodyOf(events.slice(0, 3)));
  expect((await receiver.send(bodyOf(events))).json).toMatchObject({ accepted: 2, duplicates: 3 });
  expect(await counted(account)).toBe(5);
});

test('under a key the same bytes as another format are refused', async () => {
  const { account } = own(1);
  const body = `event_time,advertiser_id,campaign_id,impressions\n2026-03-01,${account},c,1\n`;
  const send = (type: string) => receiver.send(body, { 'idempotency-key': account, 'content-type': type });
  expect(await send('text/csv')).toMatchObject({ status: 200, json: { accepted: 1 } });
  expect(await send('application/x-ndjson')).toMatchObject({
    status: 422,
    json: { code: 'idempotency_key_reused' },
  });
});

test('under a key the same bytes have the same answer, and other bytes are refused, whenever they come', async () => {
  const { account, events } = own(4);
  const body = `${bodyOf(events)}{"impressions":1}\n`;
  const key = { 'idempotency-key': 'order 4711' };
  const first = await receiver.send(body, key);
  expect(first).toMatchObject({ status: 200, json: { accepted: 4, rejected: 1, duplicates: 0 } });
  const outcomes = () =>
    Promise.all(
      ['accepted', 'rejected', 'duplicates'].map((outcome) =>
        metric(receiver.url, `adtally_events_received_total{outcome="${outcome}"}`),
      ),
    );
  const [accepted = 0, rejected = 0, duplicates = 0] = await outcomes();
  expect((await receiver.send(body, key)).json).toEqual(first.json);
  // The text of /metrics may be 200 ms old.
  await expect.poll(outcomes, { timeout: 5_000 }).toEqual([accepted, rejected, duplicates + 4]);
  expect(first.json.reasons).toEqual([
    expect.stringMatching(/^line 5: event_time .*advertiser_id is required/),
  ]);
  expect(await second.send(body, key)).toMatchObject({ status: 200, json: first.json });
  for (const other of [body.slice(0, -1), `${body}\n`, bodyOf(events.slice(0, 2)), bodyOf(own(1).events)]) {
    expect(await receiver.send(other, key)).toMatchObject({
      status: 422,
      json: { code: 'idempotency_key_reused' },
    });
  }
  expect(await counted(account)).toBe(4);
  // What its sender has to mend is no failure of a load.
  const failed = "SELECT file FROM loads FINAL WHERE state = 'failed' AND file LIKE '%order 4711%'";
  expect(await select(db.store, failed)).toEqual([]);
});

test('a key makes other bytes: the same ones count again without it, under another, and of another sender', async () => {
  const { account, events } = own(2);
  const body = bodyOf(events);
  const authorization = `Bearer ${await receiver.token('app')}`;
  const key = 'k';
  for (const headers of [
    {},
    { 'idempotency-key': key },
    { 'idempotency-key': 'l' },
    { 'idempotency-key': key, authorization },
  ]) {
    expect((await receiver.send(body, headers as Record<string, string>)).json).toMatchObject({
      accepted: 2,
    });
  }
  expect(await counted(account)).toBe(8);
});

test('two services that get a body at once, several times, count it once', async () => {
  const [plain, keyed] = [own(20), own(20)];
  const answers = await Promise.all(
    [receiver, second, receiver, second].flatMap((each) => [
      each.send(bodyOf(plain.events)),
      each.send(bodyOf(keyed.events), { 'idempotency-key': 'at once' }),
    ]),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const accepted = answers.filter((_, n) => n % 2 === 0).map(({ json }) => json.accepted);
  expect(accepted.filter(Number)).toEqual([20]);
  expect(new Set(answers.filter((_, n) => n % 2 === 1).map(({ json }) => JSON.stringify(json))).size).toBe(1);
  expect(await Promise.all([counted(plain.account), counted(keyed.account)])).toEqual([20, 20]);
});

test('two services that get other bytes under one key at once take one of them', async () => {
  const bodies = [own(3), own(3)];
  const answers = await Promise.all(
    [receiver, second].map((each, n) =>
      each.send(bodyOf(bodies[n]?.events ?? []), { 'idempotency-key': 'race' }),
    ),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 422]);
  const all = await Promise.all(bodies.map(({ account }) => counted(account)));
  expect(all.reduce((sum, each) => sum + each, 0)).toBe(3);
});

test('bodies of many senders are stored together, up to 16 MiB each; one that comes alone is stored at once', async () => {
  const alone = await receiver.send(bodyOf(own(3).events));
  const bodies = Array.from({ length: 40 }, () => own(3));
  const spaces = (n: number) => ' '.repeat(n < 32 ? 0 : n < 39 ? 5 << 20 : (16 << 20) + 1);
  // Those that come while the first is under way begin together.
  const answers = await Promise.all(
    bodies.map(({ events }, n) => receiver.send(bodyOf(events).replace('{', `{${spaces(n)}`))),
  );
  expect(answers.map(({ json }) => json.accepted)).toEqual(bodies.map(() => 3));
  const loads = answers.map(({ json }) => json.load);
  expect(new Set(loads).size).toBe(40);
  const rows = await select<{ load: string; batch: string }>(
    db.store,
    'SELECT DISTINCT load_id AS load, batch FROM load_chunks FINAL WHERE load_id IN {loads:Array(String)}',
    { loads: [alone.json.load, ...loads] },
  );
  const batchOf = (load: unknown) => rows.find((row) => row.load === load)?.batch;
  const batches = loads.map(batchOf);
  expect([batchOf(alone.json.load), batches[39]]).toEqual(['', '']);
  expect(new Set(batches).size).toBeLessThan(20);
  expect(batches.slice(32, 39).some((batch) => batch !== '')).toBe(true);
});

test.each([
  ['text/csv; charset=utf-8', 'csv'],
  ['text/tab-separated-values', 'tsv'],
  ['application/json', 'json'],
] as const)('%s is read', async (type, name) => {
  const { account, events } = own(2);
  const columns = ['event_time', 'event_type', 'advertiser_id', 'campaign_id'] as const;
  const separator = name === 'csv' ? ',' : '\t';
  const cells = [columns, ...events.map((each) => columns.map((column) => each[column]))];
  const text =
    name === 'json' ? JSON.stringify(events) : cells.map((row) => `${row.join(separator)}\n`).join('');
  expect(await receiver.send(text, { 'content-type': type })).toMatchObject({
    status: 200,
    json: { accepted: 2 },
  });
  expect(await counted(account)).toBe(2);
});

test('Parquet is read, in several chunks, and its damage is told', async () => {
  const file = await parquetFile(db.store, 'of-parquet', 3_000, { group: 1_000 });
  const type = { 'content-type': 'application/vnd.apache.parquet' };
  expect((await receiver.send(file, { ...type, 'idempotency-key': 'p' })).json).toMatchObject({
    accepted: 3_000,
  });
  expect((await receiver.send(file, { ...type, 'idempotency-key': 'p' })).json).toMatchObject({
    accepted: 3_000,
  });
  expect((await receiver.send(file.subarray(0, -100), type)).json).toMatchObject({
    code: 'events_unreadable',
  });
  // Of a page in the middle, which only ClickHouse looks at.
  const flipped = Buffer.from(file);
  flipped.fill(0xff, 20_000, 20_200);
  expect((await receiver.send(flipped, type)).json).toMatchObject({ code: 'events_unreadable' });
  // A footer of millions of entries would keep all others waiting.
  const long = Buffer.concat([Buffer.alloc(5 << 20), file.subarray(-8)]);
  long.writeUInt32LE(5 << 20, 5 << 20);
  expect((await receiver.send(long, type)).json).toMatchObject({
    code: 'events_unreadable',
    detail: expect.stringContaining('its footer has over 4 MiB'),
  });
});

test('bodies that wait for a load of what begins alike keep no others waiting', async () => {
  const stop = new AbortController();
  const options = { store: db.store, answerTrustMs: 0, signal: stop.signal };
  const loader = new BodyLoader({ ...options, onLoaded: () => {}, onWarning: () => {} });
  const bodyWith = (count: number) => {
    const bytes = Buffer.from(bodyOf(own(count).events));
    const named = { sender: 'web', key: undefined, piece: undefined };
    return { bytes, format: 'ndjson', mapping: defaultMapping, ...named } as const;
  };
  const alike = bodyWith(2);
  const input = heldInput('a.ndjson', ['ndjson'], alike.bytes);
  const { begins } = await ndjson.open(input, { reading: plainReading(input.name), onBytes: () => {} });
  const before = await Load.begin(db.store, { kind: 'events', file: input.name, lock: begins }, new Date());
  const waiting = Promise.allSettled(Array.from({ length: 300 }, () => loader.load(alike)));
  expect(await loader.load(bodyWith(3))).toMatchObject({ accepted: 3 });
  stop.abort();
  await waiting;
  await before.finish();
});
