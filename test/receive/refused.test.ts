import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, type ClientRequest, get, request } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ClickHouseError } from '@clickhouse/client';
import pino from 'pino';
import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { createToken, revokeTokens } from '../../src/accounts/tokens.ts';
import { loadConfig } from '../../src/config/config.ts';
import { Room } from '../../src/http/request/body-room.ts';
import { isDamage } from '../../src/http/request/sent-file.ts';
import { tooManyBodies } from '../../src/receive/body.ts';
import { Mappings } from '../../src/receive/mappings.ts';
import { startReceiver } from '../../src/receive/service.ts';
import { event } from '../support/events.ts';
import { useFolder } from '../support/folder.ts';
import { paths } from '../support/oracle.ts';
import { bodyOf, sendTo, useReceiver } from '../support/receiver.ts';
import { metric, statusWith, useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const folder = useFolder();
writeFileSync(join(folder, 'shop.json'), '{"map":{"campaign_id":"campaign"},"set":{"advertiser_id":"shop"}}');
writeFileSync(
  join(folder, 'other.json'),
  '{"map":{"campaign_id":"campaign"},"set":{"advertiser_id":"other"}}',
);
writeFileSync(join(folder, 'broken.json'), '{"maps":{}}');

const db = useStore();
const receiver = useReceiver(db, { RECEIVE_MEGABYTES: '128', MAPPINGS_DIR: folder });
const service = useService(db);

const stored = async (): Promise<{ events: number; loads: number }> => {
  const [row] = await select<{ events: number; loads: number }>(
    db.store,
    'SELECT toFloat64((SELECT count() FROM events)) AS events, toFloat64((SELECT uniqExact(load_id) FROM loads)) AS loads',
  );
  return row ?? { events: 0, loads: 0 };
};

test('without the folder of mappings the service does not start, and while it is away nobody is told that there is no mapping', async () => {
  const away = join(folder, 'away');
  const store = {
    address: db.address,
    reporter: db.address,
    lost: new Promise<void>(() => {}),
    close: async () => {},
  };
  const config = loadConfig({ RECEIVE_PORT: '0', MAPPINGS_DIR: away });
  const starting = startReceiver(config, store, pino({ level: 'silent' }));
  await expect(starting).rejects.toThrow(`MAPPINGS_DIR=${away} is no folder that can be read`);
  mkdirSync(away);
  writeFileSync(join(away, 'shop.json'), '{}');
  const mappings = new Mappings(db.store, away);
  await expect(mappings.named('other')).rejects.toThrow('there is no mapping other');
  rmSync(away, { recursive: true });
  await expect(mappings.named('shop')).rejects.toThrow(/no folder that can be read/);
});

test('a part of a table that cannot be read, or a node that is lost, is no damage of the body, which may come again', () => {
  const failure = (message: string, type = 'CANNOT_DECOMPRESS') =>
    new ClickHouseError({ message, code: '', type });
  const part =
    '(while reading from part /data/store/08b/202610_3_3_0/ in table adtally.load_chunks (08b) located on disk default)';
  expect(isDamage(failure(`Cannot decompress: ${part}`))).toBe(false);
  const lost = 'Cannot read all data: while receiving packet from 127.0.0.1:9000';
  expect(isDamage(failure(lost, 'CANNOT_READ_ALL_DATA'))).toBe(false);
  expect(isDamage(failure('Cannot decompress: While executing ParquetBlockInputFormat'))).toBe(true);
});

test('a token that opens reports sends no events, and one that sends events opens no report', async () => {
  const before = await stored();
  const body = bodyOf([event()]);
  const reading = await createToken(db.store, { account: 'advertiser', label: '' });
  const sending = await receiver.token('advertiser');
  const refused = await receiver.send(body, { authorization: `Bearer ${reading}` });
  expect(refused).toMatchObject({ status: 401, json: { code: 'unauthorized' } });
  for (const path of [...paths, '/mcp']) {
    expect([path, await statusWith(service.url, sending, path)]).toEqual([path, 401]);
  }
  const basic = `Basic ${Buffer.from(`x:${sending}`).toString('base64')}`;
  const address = `${service.url}/v1/export/campaigns.csv?start_time=2026-03-01&end_time=2026-03-31`;
  expect((await fetch(address, { headers: { authorization: basic } })).status).toBe(401);
  expect((await fetch(`${service.url}/v1/events`, { method: 'POST', body })).status).toBe(404);
  expect(await stored()).toEqual(before);
});

test('a token is known by what the store says it is for, whatever its text looks like', async () => {
  const token = await createToken(db.store, { account: 'turned', label: '', purpose: 'ingest' });
  await db.store.command({
    query:
      "INSERT INTO tokens (id, account_id, purpose, family, hash, label, created_at) SELECT id, account_id, 'report', family, hash, label, created_at FROM tokens WHERE account_id = 'turned'",
  });
  expect((await receiver.send(bodyOf([event()]), { authorization: `Bearer ${token}` })).status).toBe(401);
});

test('a revoked token sends nothing', async () => {
  const token = await createToken(db.store, { account: 'gone', label: '', purpose: 'ingest' });
  await revokeTokens(db.store, { account: 'gone' });
  const send = () => receiver.send(bodyOf([event()]), { authorization: `Bearer ${token}` });
  // The service may have read the token right before.
  await expect.poll(async () => (await send()).status, { timeout: 60_000 }).toBe(401);
});

const line = bodyOf([event()]);
test.each([
  ['no media type', '', {}, 415, 'unsupported_media_type'],
  ['another media type', '<a/>', { 'content-type': 'text/xml' }, 415, 'unsupported_media_type'],
  ['another charset', line, { 'content-type': 'text/csv; charset=latin1' }, 415, 'unsupported_media_type'],
  ['an unknown coding', line, { 'content-encoding': 'compress' }, 415, 'unsupported_media_type'],
  ['a coding that objects have', line, { 'content-encoding': 'constructor' }, 415, 'unsupported_media_type'],
  ['two codings', line, { 'content-encoding': 'gzip, gzip' }, 415, 'unsupported_media_type'],
  ['packed bytes without a coding', gzipSync(line), {}, 415, 'unsupported_media_type'],
  ['packed twice', gzipSync(gzipSync(line)), { 'content-encoding': 'gzip' }, 415, 'unsupported_media_type'],
  ['damaged packing', gzipSync(line).subarray(4), { 'content-encoding': 'gzip' }, 400, 'events_unreadable'],
  [
    'packing that ends too early',
    gzipSync(line).subarray(0, 40),
    { 'content-encoding': 'gzip' },
    400,
    'events_unreadable',
  ],
  [
    'a column that events do not have',
    'event_time,campaing\n',
    { 'content-type': 'text/csv' },
    400,
    'events_unreadable',
  ],
  [
    'an array without an end',
    '[{"event_time":"2026-03-01"}',
    { 'content-type': 'application/json' },
    400,
    'events_unreadable',
  ],
  ['no Parquet', line, { 'content-type': 'application/parquet' }, 400, 'events_unreadable'],
  ['a key of other characters', line, { 'idempotency-key': 'schlüssel' }, 400, 'events_unreadable'],
  ['a key that is too long', line, { 'idempotency-key': 'x'.repeat(201) }, 400, 'events_unreadable'],
])('%s is refused, and nothing is written', async (_what, body, headers, status, code) => {
  const type: Record<string, string> = body === '' ? { 'content-type': '' } : {};
  const before = await stored();
  const answer = await receiver.send(body, { ...type, ...(headers as Record<string, string>) });
  expect({ status: answer.status, code: answer.json.code }).toEqual({ status, code });
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  // Nor does a load that would seem to have failed.
  expect(await stored()).toEqual(before);
});

test('a mapping is named, and never a path; read in another way the same bytes are refused', async () => {
  const body = '{"event_time":"2026-03-01","impressions":1,"campaign":"c"}\n';
  expect(await receiver.send(body, {}, '?mapping=shop')).toMatchObject({
    status: 200,
    json: { accepted: 1 },
  });
  expect(await receiver.send(body, {}, '?mapping=other')).toMatchObject({
    status: 422,
    json: {
      code: 'loaded_otherwise',
      detail: expect.stringMatching(/ or let it count twice \(an Idempotency-Key loads it all the same\)$/),
    },
  });
  expect(await receiver.send(body, { 'idempotency-key': 'twice' }, '?mapping=other')).toMatchObject({
    status: 200,
    json: { accepted: 1 },
  });
  for (const name of [
    '',
    'none',
    '..%2Fshop',
    '%2E%2E',
    './shop',
    'shop%00',
    '%2Fetc%2Fhostname',
    'x'.repeat(200),
  ]) {
    expect([name, (await receiver.send(body, {}, `?mapping=${name}`)).json.code]).toEqual([
      name,
      'mapping_unknown',
    ]);
  }
  // That is for the operator, who finds it in the log.
  expect((await receiver.send(body, {}, '?mapping=broken')).status).toBe(500);
});

test.each([
  ['?maping=shop', 'maping is not known; known: mapping'],
  ['?mapping=shop&dedupe=true', 'dedupe is not known; known: mapping'],
  ['?__proto__=shop', '__proto__ is not known; known: mapping'],
  ['?mapping=shop&mapping=other', 'mapping must be given once'],
])('events with %s are refused, and not read in another way', async (query, detail) => {
  const before = await stored();
  const { status, json } = await receiver.send(bodyOf([event()]), {}, query);
  expect({ status, code: json.code, detail: json.detail }).toEqual({
    status: 400,
    code: 'invalid_request',
    detail,
  });
  expect(await stored()).toEqual(before);
});

test('what is said against a body can be followed by its sender, who has no command', async () => {
  const refused = await receiver.send('event_time,campaing\n', { 'content-type': 'text/csv' });
  expect(refused.json.detail).toMatch(
    /column campaing is not a field .* event_id, .* \("ignore_unknown": true in a mapping leaves it out\)$/,
  );
  const parquet = await receiver.send('PAR1\x15\x04', { 'content-type': 'text/csv' });
  expect(parquet.json.detail).toMatch(
    /it is a Parquet file \(content-type application\/vnd\.apache\.parquet reads it\)$/,
  );
  const records = [{ event_time: '45298' }, { spend: '0.1234567' }, { color: 'red' }];
  const { reasons } = (await receiver.send(bodyOf(records.map(event)))).json;
  expect(reasons).toEqual([
    expect.stringMatching(/1970 \("dates": "excel" in a mapping reads serial dates\), not "45298"$/),
    expect.stringMatching(/places \("round_money": true in a mapping rounds it\), not "0\.1234567"$/),
    expect.stringMatching(/color is not a field .* \("ignore_unknown": true in a mapping leaves it out\)$/),
  ]);
});

/** A body that is sent as the test wants. */
async function begin(
  headers: Record<string, string>,
  agent?: Agent,
): Promise<{ sent: ClientRequest; status: Promise<number> }> {
  const token = await receiver.token('web');
  const sent = request(`${receiver.url}/v1/events`, {
    method: 'POST',
    ...(agent && { agent }),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/x-ndjson', ...headers },
  });
  const status = new Promise<number>((resolve, reject) => {
    sent.once('response', (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    // An answer that comes before all is sent can be followed by more than one.
    sent.on('error', reject);
  });
  return { sent, status };
}

test('a body that is too large is refused when that is known: at once, as it arrives, or as it is unpacked', async () => {
  const declared = await begin({ 'content-length': String(65 << 20) });
  declared.sent.flushHeaders();
  expect(await declared.status).toBe(413);
  declared.sent.destroy();

  const endless = await begin({});
  const piece = Buffer.alloc(1 << 20, '{}\n');
  const more = setInterval(() => endless.sent.write(piece), 1);
  expect(await endless.status).toBe(413);
  clearInterval(more);
  endless.sent.destroy();

  // A gigabyte in a megabyte.
  const packed = Buffer.concat(Array(256).fill(gzipSync(Buffer.alloc(4 << 20), { level: 9 })));
  const before = process.memoryUsage.rss();
  const answer = await receiver.send(packed, { 'content-encoding': 'gzip' });
  expect(answer).toMatchObject({ status: 413, json: { code: 'body_too_large' } });
  // What is left of it is read, so that the connection goes on.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const again = await begin({ 'content-encoding': 'gzip' }, agent);
  again.sent.end(packed);
  expect(await again.status).toBe(413);
  expect(
    await new Promise((resolve, reject) => {
      const alive = get(`${receiver.url}/healthz`, { agent }, (response) =>
        resolve(response.resume().statusCode),
      );
      alive.once('error', reject);
    }),
  ).toBe(200);
  agent.destroy();
  expect(process.memoryUsage.rss() - before).toBeLessThan(300 << 20);
});

test('bodies that only arrive take half of the room from a sender, and no room from others; what they took comes back', async () => {
  const { sent, status } = await begin({ 'content-length': String(60 << 20) });
  sent.write(Buffer.alloc(50 << 20, ' '));
  await expect
    .poll(() => metric(receiver.url, 'adtally_bodies_held_bytes'), { timeout: 20_000 })
    .toBeGreaterThanOrEqual(50 << 20);
  const large = `${line.trimEnd()}${' '.repeat(1 << 20)}\n`.repeat(20);
  const full = await receiver.send(large);
  expect(full).toMatchObject({ status: 429, json: { code: 'too_many_bodies' } });
  expect(Number(full.headers.get('retry-after'))).toBeGreaterThan(0);
  const authorization = `Bearer ${await receiver.token('other')}`;
  expect((await receiver.send(large, { authorization })).status).toBe(200);
  sent.destroy();
  await expect(status).rejects.toThrow();
  await expect.poll(() => metric(receiver.url, 'adtally_bodies_held_bytes'), { timeout: 20_000 }).toBe(0);
  expect((await receiver.send(large)).json).toMatchObject({ accepted: 0, duplicates: 20 });
});

test('bodies that only arrive leave half of the places to other senders, however many connections there may be', () => {
  const room = new Room({ maxBytes: 100, maxBodies: 4, full: tooManyBodies });
  const [first] = [room.enter('slow'), room.enter('slow')];
  expect(() => room.enter('slow')).toThrow('bodies');
  const others = [room.enter('other'), room.enter('third')];
  expect(() => room.enter('fourth')).toThrow('bodies');
  for (const place of [first, ...others]) place?.leave();
  room.enter('slow').grow(50);
  expect(() => room.enter('slow')).toThrow('bodies');
  expect([room.bodies, room.bytes]).toEqual([2, 50]);
});

test('a body that ends before its declared length loads nothing', async () => {
  const before = await stored();
  const { sent, status } = await begin({ 'content-length': '1000' });
  sent.write(bodyOf([event()]));
  await expect.poll(() => metric(receiver.url, 'adtally_bodies_held'), { timeout: 20_000 }).toBe(1);
  sent.destroy();
  await expect(status).rejects.toThrow();
  await expect.poll(() => metric(receiver.url, 'adtally_bodies_held'), { timeout: 20_000 }).toBe(0);
  expect(await stored()).toEqual(before);
});

test('who waits for 100 Continue sends no body that is refused', async () => {
  const { sent, status } = await begin({ expect: '100-continue', 'content-type': 'text/xml' });
  let continued = false;
  sent.once('continue', () => {
    continued = true;
  });
  sent.flushHeaders();
  expect(await status).toBe(415);
  expect(continued).toBe(false);
  sent.destroy();
});

test('other methods and paths are told so, without a token', async () => {
  const get = await fetch(`${receiver.url}/v1/events`);
  expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
  expect((await fetch(`${receiver.url}/v1/campaigns`, { method: 'POST' })).status).toBe(404);
  expect((await sendTo(`${receiver.url}/v1/events`, line, {})).status).toBe(401);
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    expect((await fetch(`${receiver.url}${path}`)).status).toBe(200);
  }
  for (const path of ['/healthz', '/readyz', '/docs', '/openapi.json']) {
    const posted = await fetch(`${receiver.url}${path}`, { method: 'POST' });
    expect([path, posted.status, posted.headers.get('allow')]).toEqual([path, 405, 'GET, HEAD']);
  }
});
