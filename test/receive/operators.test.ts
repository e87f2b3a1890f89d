import { createHash } from 'node:crypto';
import { userInfo } from 'node:os';
import { ClickHouseError } from '@clickhouse/client';
import { validate } from '@hyperjump/json-schema/openapi-3-1';
import pino from 'pino';
import { expect, test, vi } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { Load } from '../../ingest/ledger/load.ts';
import { listSignOuts } from '../../src/accounts/sign-outs.ts';
import { createToken, issueToken, listTokens } from '../../src/accounts/tokens.ts';
import { limits } from '../../src/operations/access.ts';
import { operations } from '../../src/operations/operations.ts';
import { receiveDocument } from '../../src/receive/openapi.ts';
import { methodOf, pathOf } from '../../src/receive/operations.ts';
import { receivedSchema } from '../../src/receive/received.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { event, withFile } from '../support/events.ts';
import { paths } from '../support/oracle.ts';
import { environmentOf } from '../support/process.ts';
import { bodyOf, useReceiver } from '../support/receiver.ts';
import { replaceBy } from '../support/replace-suite.ts';
import { statusWith, useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const logged: string[] = [];
const secret = { LINK_SECRET: 'a secret of more than 32 characters' };
const receiver = useReceiver(db, secret, pino({}, { write: (text) => void logged.push(text) }));
const service = useService(db, secret);
const run = useCommandRunners();
const within5s = { timeout: 5_000, interval: 100 };

let operator: Promise<string> | undefined;
const operatorToken = () =>
  (operator ??= createToken(db.store, { account: 'panel', label: '', purpose: 'operator' }));

interface Asked {
  readonly body?: unknown;
  readonly type?: string;
  readonly token?: string;
  readonly signal?: AbortSignal;
}

/** Asks for an operation; JSON unless a media type is named. */
async function ask(path: string, { body, type, token, signal }: Asked = {}) {
  const answer = await fetch(`${receiver.url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${token ?? (await operatorToken())}`,
      ...(body !== undefined && { 'content-type': type ?? 'application/json' }),
    },
    ...(body !== undefined && {
      body: body instanceof Blob ? body : type ? String(body) : JSON.stringify(body),
    }),
    ...(signal && { signal }),
  });
  const text = await answer.text();
  const isJson = /[/+]json$/.test(answer.headers.get('content-type') ?? '');
  const json = isJson ? JSON.parse(text) : undefined;
  const operation = operations.find((each) => pathOf(each) === path.split('?')[0]);
  if (answer.status === 200) operation?.answer?.parse(json);
  return { status: answer.status, text, json };
}

async function typeOf(path: string) {
  const headers = { authorization: `Bearer ${await operatorToken()}` };
  const answer = await fetch(`${receiver.url}${path}`, { headers });
  await answer.text();
  return answer.headers.get('content-type')?.split(';')[0];
}

interface Entry {
  readonly who: string;
  readonly token: string;
  readonly operation: string;
  readonly state: string;
  readonly input: Record<string, unknown>;
  readonly outcome: Record<string, unknown>;
  readonly error: string;
}

const audit = async (): Promise<Entry[]> => (await ask('/v1/audit')).json;

const reportStatus = (token: string) => statusWith(service.url, token);

test('tokens of reports and of events reach no operation, and an operator reads no report and sends no event', async () => {
  const reading = await createToken(db.store, { account: 'panel', label: '' });
  const sending = await createToken(db.store, { account: 'panel', label: '', purpose: 'ingest' });
  for (const operation of operations) {
    for (const token of [reading, sending, 'ado_mistyped']) {
      const asked = methodOf(operation) === 'GET' ? { token } : { token, body: {} };
      expect(await ask(pathOf(operation), asked)).toMatchObject({
        status: 401,
        json: { code: 'unauthorized' },
      });
    }
  }
  const token = await createToken(db.store, { account: 'advertiser', label: '', purpose: 'operator' });
  for (const path of [...paths, '/mcp']) {
    expect([path, await statusWith(service.url, token, path)]).toEqual([path, 401]);
  }
  const sent = await receiver.send(bodyOf([event()]), { authorization: `Bearer ${token}` });
  expect(sent.status).toBe(401);
  expect((await ask('/v1/token/list', { token })).status).toBe(200);
  expect(await audit()).toEqual([]);
});

test('a token is created, opens reports, and is revoked; logs and audit have who and when, and never the token', async () => {
  const made = await ask('/v1/token/create', {
    body: { account: 'advertiser', expires: '2099-01-01T00:00:00Z', label: 'one visit' },
  });
  expect(made).toMatchObject({ status: 200, json: { expires: '2099-01-01T00:00:00.000Z' } });
  const { id, token } = made.json;
  expect(await reportStatus(token)).toBe(200);
  const listed = (await ask('/v1/token/list?account=advertiser')).json;
  expect(listed).toContainEqual(expect.objectContaining({ id, label: 'one visit', purpose: 'report' }));

  const address = '/v1/export/campaigns.csv?start_time=2026-03-01&end_time=2026-03-31';
  const { json: linked } = await ask('/v1/token/link', { body: { token: id, address } });
  expect(await ask('/v1/token/link', { body: { token: id, address: linked.link } })).toMatchObject({
    status: 400,
    json: { field: 'address' },
  });
  expect((await fetch(`${service.url}${linked.link}`)).status).toBe(200);

  expect((await ask('/v1/token/revoke', { body: { token } })).json).toEqual({ revoked: [id] });
  await expect.poll(() => reportStatus(token), within5s).toBe(401);

  const [operatorToken] = (await listTokens(db.store, { account: 'panel' })).filter(
    ({ purpose }) => purpose === 'operator',
  );
  const by = { who: 'panel', token: operatorToken?.id, state: 'done' };
  expect(await audit()).toMatchObject([
    { ...by, operation: 'token revoke', input: {}, outcome: { revoked: [id] } },
    { ...by, operation: 'token link', state: 'failed' },
    { ...by, operation: 'token link', input: { token: id, report: '/v1/export/campaigns.csv' }, outcome: {} },
    {
      ...by,
      operation: 'token create',
      input: { account: 'advertiser', label: 'one visit' },
      outcome: { id },
    },
  ]);
  const stored = await select(db.store, 'SELECT * FROM audit');
  const proof = new URL(linked.link, service.url).searchParams.get('link') ?? '';
  for (const text of [JSON.stringify(stored), logged.join('')]) {
    for (const each of [token, await operator, proof]) expect(text).not.toContain(each);
  }
  expect(logged.join('')).toContain('/v1/token/create');
  expect((await ask('/v1/token/revoke', { body: { person: 'anna' } })).json).toEqual({ revoked: [] });
  expect(await listSignOuts(db.store)).toMatchObject([{ person: 'anna' }]);
});

test('a token that has expired makes no link, and one that ends soon a link until then', async () => {
  const address = '/v1/export/campaigns.csv?start_time=2026-03-01&end_time=2026-03-31';
  const idOf = async (account: string, expires: Date) =>
    (await issueToken(db.store, { account, label: '', expires })).id;
  const token = await idOf('expired', new Date(Date.now() - 1_000));
  expect(await ask('/v1/token/link', { body: { token, address } })).toMatchObject({
    status: 400,
    json: { field: 'token' },
  });
  const soon = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 60_000);
  const { json } = await ask('/v1/token/link', { body: { token: await idOf('soon', soon), address } });
  expect(json.expires).toBe(soon.toISOString());
});

test('a revoked operator token stops, and operators make no operators', async () => {
  const token = await createToken(db.store, { account: 'leaked', label: '', purpose: 'operator' });
  const body = { account: 'leaked-2', for: 'operator' };
  expect(await ask('/v1/token/create', { body, token })).toMatchObject({
    status: 400,
    json: { field: 'for' },
  });
  expect((await audit())[0]).toMatchObject({ who: 'leaked', state: 'failed' });
  expect((await ask('/v1/token/revoke', { body: { token } })).status).toBe(200);
  await expect.poll(async () => (await ask('/v1/loads', { token })).status, within5s).toBe(401);
});

const long = 'x'.repeat(129);
test.each<[path: string, body: unknown, field: string | undefined]>([
  ['/v1/token/create', {}, 'account'],
  ['/v1/token/create', { account: long }, 'account'],
  ['/v1/token/create', { account: 7 }, 'account'],
  ['/v1/token/create', { account: '\ud83d' }, 'account'],
  ['/v1/token/create', { account: 'a', for: 'admin' }, 'for'],
  ['/v1/token/create', { account: 'a', for: 'ingest', family: 'campaigns' }, 'family'],
  ['/v1/token/create', { account: 'a', expires: '2026-02-30' }, 'expires'],
  ['/v1/token/create', { account: 'a', expires: '2020-01-01' }, 'expires'],
  ['/v1/token/create', { account: 'a', lable: 'mistyped' }, 'lable'],
  ['/v1/token/create', [], undefined],
  ['/v1/token/revoke', {}, 'token'],
  ['/v1/token/revoke', { token: 'nobody' }, 'token'],
  ['/v1/token/revoke', { token: 'adt_mistyped' }, 'token'],
  ['/v1/token/revoke', { account: 'a', token: 'nobody' }, 'token'],
  ['/v1/token/link', { token: 'nobody', address: '/v1/export/campaigns.csv' }, 'token'],
  ['/v1/token/link', { token: 7, address: '/v1/export/campaigns.csv' }, 'token'],
  ['/v1/schedule/create', { account: 'a', report: 'campaigns', every: 'day', to: 'a@example.com' }, 'to'],
  ['/v1/schedule/pause', { schedule: 7 }, 'schedule'],
  ['/v1/limit/set', { account: 'a' }, 'requests'],
  ['/v1/limit/set', { account: 'a', requests: 0 }, 'requests'],
  ['/v1/limit/set', { account: 'a', requests: 2 ** 32 }, 'requests'],
  ['/v1/confirm', { account: 'a', from: '2026-03-01', to: '2026-02-01' }, 'to'],
  ['/v1/confirm', { account: 'a', from: '2026-02-30', to: '2026-03-01' }, 'from'],
  ['/v1/rejects/dismiss', { load: [] }, 'load'],
  ['/v1/rejects/dismiss', { load: ['nowhere'] }, 'load'],
  ['/v1/unload', { load: 'nowhere' }, 'load'],
  ['/v1/unload', { load: { $ne: '' } }, 'load'],
  ['/v1/unload/preview?load=nowhere', undefined, 'load'],
  ['/v1/loads?limit=0', undefined, 'limit'],
  ['/v1/loads?limit=1&limit=2', undefined, 'limit'],
  ['/v1/loads?format=xml', undefined, 'format'],
  ['/v1/loads?newest=1', undefined, 'newest'],
  ['/v1/token/list?constructor=1', undefined, 'constructor'],
  ['/v1/token/list?__proto__=1', undefined, '__proto__'],
  ['/v1/token/create?expires=2099-01-01', { account: 'a' }, 'expires'],
  ['/v1/loads/show', undefined, 'load'],
  ['/v1/rejects?load=nowhere', undefined, 'load'],
  ['/v1/audit?since=yesterday', undefined, 'since'],
  ['/v1/close', { account: 'a', month: '2026-13' }, 'month'],
  ['/v1/close', { month: '2026-03' }, 'account'],
  ['/v1/close', { account: 'nobody', month: '2026-03' }, 'account'],
  [`/v1/closes/manifest?revision=${'0'.repeat(64)}`, undefined, 'revision'],
])('%s with %j is 400 and names what is wrong', async (path, body, field) => {
  const { status, json } = await ask(path, { body });
  expect({ status, code: json.code, field: json.field }).toEqual({
    status: 400,
    code: 'invalid_request',
    field,
  });
  // Words of zod, which are about a type of JavaScript.
  expect(json.detail).not.toMatch(/Invalid|expected/);
});

test('a body that is not UTF-8 makes no token for an account of another name', async () => {
  const body = new Blob([Buffer.from('{"account":"Müller"}', 'latin1')]);
  expect(await ask('/v1/token/create', { body, type: 'application/json' })).toMatchObject({
    status: 400,
    json: { code: 'invalid_request', detail: 'the body is not UTF-8' },
  });
});

test('a parameter of a path that takes none is refused in a whole sentence', async () => {
  const { json } = await ask('/v1/ingest/campaigns?x=1', { type: 'text/csv', body: '' });
  expect(json).toMatchObject({ field: 'x', detail: 'x is not known; this path takes no parameters' });
});

test('a fault of the program is 500 and in the log; what ClickHouse lacks for a moment is 503', async () => {
  const run = vi.spyOn(limits, 'run');
  run.mockRejectedValueOnce(new TypeError('no function'));
  expect(await ask('/v1/limit/list')).toMatchObject({ status: 500, json: { code: 'internal_error' } });
  expect(logged.join('')).toContain('no function');
  run.mockRejectedValueOnce(
    new ClickHouseError({ message: 'memory', code: '241', type: 'MEMORY_LIMIT_EXCEEDED' }),
  );
  const detail = 'the store cannot do this now; send the same again in 5 s';
  expect(await ask('/v1/limit/list')).toMatchObject({ status: 503, json: { code: 'store_busy', detail } });
  run.mockRestore();
});

test('a month is closed, listed and printed, and who closed it is in the audit log', async () => {
  const lines = [event({ advertiser_id: 'closing', spend: '1.5' })];
  await receiver.send(bodyOf(lines));
  const unready = await ask('/v1/close', { body: { account: 'closing', month: '2026-03' } });
  const reasons = ['1 day unconfirmed'];
  expect(unready.json).toEqual({ closed: [], unready: [{ account: 'closing', month: '2026-03', reasons }] });
  const { json } = await ask('/v1/close', { body: { account: 'closing', month: '2026-03', anyway: true } });
  const [{ revision }] = json.closed;
  expect(json).toMatchObject({ closed: [{ rows: 1, before: false }], unready: [] });
  expect((await audit())[0]).toMatchObject({
    ...{ who: 'panel', operation: 'close', state: 'done' },
    outcome: { closed: [{ account: 'closing', revision }] },
  });
  const again = await ask('/v1/close', { body: { account: 'closing', month: '2026-03', anyway: true } });
  expect(again.json).toMatchObject({ closed: [{ revision, before: true }] });
  expect((await audit())[0]).toMatchObject({ operation: 'close', outcome: { closed: [], unready: [] } });
  expect((await ask('/v1/closes?account=closing')).json).toMatchObject([{ month: '2026-03', revision }]);
  const rows = await ask(`/v1/closes/rows?revision=${revision}`);
  expect(createHash('sha256').update(rows.text).digest('hex')).toBe(revision);
  const { text } = await ask(`/v1/closes/manifest?revision=${revision}`);
  expect(JSON.parse(text)).toMatchObject({ revision, rows: 1, signed_by: null });
});

interface Described {
  readonly parameters?: readonly { readonly name: string }[];
  readonly responses?: object;
  readonly requestBody?: { readonly content: Record<string, { readonly schema?: { properties: object } }> };
}

test('the OpenAPI document is valid, and has every operation with its input', async () => {
  const text = await (await fetch(`${receiver.url}/openapi.json`)).text();
  const judged = await validate('https://spec.openapis.org/oas/3.1/schema-base', JSON.parse(text), 'BASIC');
  expect(judged).toMatchObject({ valid: true });
  const { paths }: { paths: Record<string, Record<string, Described>> } = JSON.parse(text);
  for (const operation of operations) {
    const described = paths[pathOf(operation)]?.[methodOf(operation).toLowerCase()];
    const { schema } = described?.requestBody?.content['application/json'] ?? {};
    const parameters = (described?.parameters ?? []).map(({ name }) => name);
    const fields = Object.keys(schema?.properties ?? {}).concat(parameters);
    expect(fields).toEqual(Object.keys(operation.input.shape));
    expect(Object.keys(described?.responses ?? {})).toContain('405');
  }
  const { responses } = receiveDocument().paths['/v1/events']?.post ?? {};
  const told = Object.entries(responses ?? {}).map(([status, answer]) => [
    status,
    Object.keys(('headers' in answer && answer.headers) || {}).join(),
  ]);
  expect(Object.fromEntries(told)).toMatchObject({
    ...{ 401: 'WWW-Authenticate', 405: 'Allow', 429: 'Retry-After', 503: 'Retry-After' },
  });
  expect(text).not.toContain('"headers":{}');
});

test('answers have the media types that the OpenAPI document names', async () => {
  const { paths } = receiveDocument();
  for (const path of ['/v1/loads', '/v1/rejects', '/v1/audit']) {
    const { responses = {}, parameters = [] } = paths[path]?.get ?? {};
    const documented = responses[200];
    const types = Object.keys((documented && 'content' in documented && documented.content) || {});
    const format = parameters.find((each) => 'name' in each && each.name === 'format');
    const names = [format && 'schema' in format ? format.schema.enum : []].flat();
    const answered = await Promise.all(names.map((name) => typeOf(`${path}?format=${name}`)));
    expect(answered).toEqual(types);
    expect(types.length).toBeGreaterThan(1);
  }
  expect(Object.keys(paths['/v1/token/link']?.post?.responses ?? {})).toContain('404');
});

test('the codes of the OpenAPI document are those of all answers, also of messages that are none', async () => {
  const tooLarge = await fetch(`${receiver.url}/healthz`, { headers: { large: 'x'.repeat(20_000) } });
  const { code } = Object(await tooLarge.json());
  const codes = Object(receiveDocument().components.schemas.Problem?.properties?.code).enum;
  expect(codes).toEqual(expect.arrayContaining([code, 'malformed_message', 'not_ready']));
});

test('/docs shows all of the document, and an event that counts', async () => {
  const response = await fetch(`${receiver.url}/docs`);
  expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none'/);
  const text = (await response.text()).replaceAll('&quot;', '"').replaceAll('&#39;', "'");
  const { paths, components } = receiveDocument();
  const codes: string[] = Object(components.schemas.Problem?.properties?.code).enum;
  const shown = [...Object.keys(paths), ...codes, ...Object.keys(receivedSchema.shape), 'Idempotency-Key'];
  expect(shown.filter((name) => !text.includes(name))).toEqual([]);
  expect(text.match(/undefined|\[object|"\/app"/g)).toBeNull();
  const [, type = '', body = ''] = text.match(/-H 'content-type: (.*)' \\\n {2}-d '(.*)'/) ?? [];
  expect(await receiver.send(body, { 'content-type': type })).toMatchObject({ json: { accepted: 1 } });
});

test('what is no JSON, another method and another media type are refused', async () => {
  expect(await ask('/v1/confirm', { body: '{', type: 'application/json' })).toMatchObject({ status: 400 });
  expect(await ask('/v1/confirm', { body: 'a', type: 'text/plain' })).toMatchObject({ status: 415 });
  expect(await ask('/v1/confirm')).toMatchObject({ status: 405 });
  expect(await ask('/v1/ingest/sites', { body: '[]', type: 'application/avro' })).toMatchObject({
    status: 400,
    json: { code: 'events_unreadable' },
  });
});

test('HEAD is told the type of a list, and ClickHouse writes none', async () => {
  const rows =
    "SELECT toString(number), 'somebody', 'loads', repeat('x', 200), 'failed' FROM numbers(100000)";
  await db.store.command({ query: `INSERT INTO audit (id, who, operation, error, state) ${rows}` });
  const path = `${receiver.url}/v1/audit?limit=1000000`;
  const headers = { authorization: `Bearer ${await operatorToken()}` };
  const told = await fetch(path, { method: 'HEAD', headers });
  expect([told.status, told.headers.get('content-type')]).toEqual([200, 'application/json']);
  const running = `SELECT toUInt32(count()) AS n FROM system.processes
    WHERE current_database = '${db.address.database}' AND query ILIKE '%FROM audit%' AND query NOT LIKE '%processes%'`;
  await expect.poll(() => select(db.store, running), within5s).toEqual([{ n: 0 }]);
  await db.store.command({ query: "DELETE FROM audit WHERE who = 'somebody'" });
  const other = await fetch(path, { method: 'POST', headers });
  expect([other.status, other.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});

test('names, confirmations and limits come as files do, and count as the commands do', async () => {
  const sent = await receiver.send(bodyOf([event({ advertiser_id: 'named', spend: '1.5' })]));
  expect(sent.status).toBe(200);
  const csv = { type: 'text/csv', body: 'account_id,campaign_id,name\nnamed,campaign,Spring ☃\n' };
  expect((await ask('/v1/ingest/campaigns', csv)).json).toEqual({ lines: 1 });
  const bad = { type: 'text/csv', body: 'account_id,campaign_id,name\nnamed,campaign,\n' };
  expect(await ask('/v1/ingest/campaigns', bad)).toMatchObject({
    status: 400,
    json: { code: 'events_unreadable' },
  });
  const parquet = { type: 'text/csv', body: 'PAR1\x15\x04' };
  expect((await ask('/v1/ingest/campaigns', parquet)).json.detail).toMatch(/: it is a Parquet file$/);
  const before = await service.report('/v1/campaigns', 'named', '2026-03-01', '2026-03-31');
  expect(before).toMatchObject({
    rows: [{ campaign: 'Spring ☃' }],
    unconfirmed_revenue_dates: ['2026-03-01'],
  });
  const day = { type: 'application/x-ndjson', body: '{"account_id":"named","day":"2026-03-01"}\n' };
  expect((await ask('/v1/ingest/confirmations', day)).json).toEqual({ days: 1, changed: 1 });
  const again = { body: { account: 'named', from: '2026-03-01', to: '2026-03-02' } };
  expect((await ask('/v1/confirm', again)).json).toEqual({ days: 2, changed: 0, known: true });
  const after = await service.report('/v1/campaigns', 'named', '2026-03-01', '2026-03-31');
  expect(after.unconfirmed_revenue_dates).toEqual([]);

  expect((await ask('/v1/limit/set', { body: { account: 'named', requests: 5 } })).status).toBe(200);
  expect((await ask('/v1/limit/list')).json).toEqual([{ account: 'named', requests: 5 }]);
  expect((await ask('/v1/limit/set', { body: { account: 'named', requests: null } })).status).toBe(200);
  expect((await ask('/v1/limit/list?account=named')).json).toEqual([]);
});

test('rejected rows are listed, corrected and replayed, and a load is taken back', async () => {
  const events = [event({ advertiser_id: 'wrong' }), event({ advertiser_id: 'wrong', quantity: 0 })];
  const { load } = (await receiver.send(bodyOf(events))).json;
  expect((await ask('/v1/loads?limit=1')).json).toMatchObject([{ load, rejected_rows: 1 }]);
  expect((await ask(`/v1/loads/show?load=${load}`)).json).toMatchObject([{ load, rejected_open: 1 }]);
  expect((await ask(`/v1/rejects?load=${load}&format=table`)).text).toContain('quantity');
  const rejected = (await ask(`/v1/rejects?load=${load}`)).text;
  const corrected = {
    type: 'application/x-ndjson',
    body: rejected.replace('"quantity":"0"', '"quantity":"3"'),
  };
  const still = { ...corrected, body: rejected };
  expect((await ask(`/v1/replay?load=${load}`, still)).json).toMatchObject({ replayed: 0, faulty: 1 });
  expect((await ask(`/v1/replay?load=${load}`, corrected)).json).toMatchObject({ replayed: 1, faulty: 0 });
  expect((await ask(`/v1/replay?load=${load}`, corrected)).json).toMatchObject({ replayed: 0, skipped: 1 });
  expect((await ask(`/v1/rejects?load=${load}`)).text).toBe('');

  const impressions = async () => {
    const { rows } = await service.report('/v1/campaigns', 'wrong', '2026-03-01', '2026-03-31');
    return rows.map((row) => row.impressions);
  };
  expect(await impressions()).toEqual([4]);
  const refused = await ask('/v1/unload', { body: { load } });
  expect(refused.json.detail).toContain('1 rejected row was replayed by load ');
  const [, replay = ''] = /adtally unload (\S+)\)/.exec(refused.json.detail) ?? [];
  const taken = { before: false, events: 1, months: ['2026-03'] };
  for (const [id, rows] of [
    [replay, { rejected_rows: 0, reopened_rows: 1 }],
    [load, { rejected_rows: 1, reopened_rows: 0 }],
  ] as const) {
    expect((await ask(`/v1/unload/preview?load=${id}`)).json).toMatchObject({ ...taken, ...rows });
    expect((await ask('/v1/unload', { body: { load: id } })).json).toMatchObject({ ...taken, ...rows });
    expect((await ask('/v1/unload', { body: { load: id } })).json).toMatchObject({ before: true });
  }
  expect(await impressions()).toEqual([]);
});

test('bodies whose events were replaced say by which load, and a load with replaced days is not taken back', async () => {
  const at = (day: string, creative_id: string) =>
    event({ advertiser_id: 'moved', event_time: `${day}T12:00:00Z`, creative_id });
  const bodies = ['a', 'b'].map((creative) => bodyOf([at('2026-03-02', creative)]));
  const underKey = bodyOf([at('2026-03-02', 'c')]);
  const key = { 'idempotency-key': 'moved' };
  const partOf = bodyOf([at('2026-03-01', 'd'), at('2026-03-02', 'd')]);
  const whole = await Promise.all(bodies.map((body) => receiver.send(body)));
  await receiver.send(underKey, key);
  const some = await receiver.send(partOf);

  const target = { account: 'moved', days: { from: '2026-03-02', to: '2026-03-02' } };
  const { loadId: by = '' } = await withFile('new.ndjson', bodyOf([at('2026-03-02', 'new')]), (path) =>
    replaceBy(db.store, target, path),
  );

  // Together with a body that is new.
  const [first, second, keyed, other, partly] = await Promise.all([
    ...bodies.map((body) => receiver.send(body)),
    receiver.send(underKey, key),
    receiver.send(bodyOf([at('2026-03-03', 'e')])),
    receiver.send(partOf),
  ]);
  const none = { accepted: 0, rejected: 0, duplicates: 0, replaced_by: by };
  for (const each of [first, second, keyed]) {
    expect(each).toMatchObject({ status: 200, json: none });
    expect(() => receivedSchema.parse(each?.json)).not.toThrow();
  }
  expect([other?.json.accepted, other?.json.replaced_by]).toEqual([1, undefined]);
  expect([partly?.json.duplicates, partly?.json.replaced_by]).toEqual([1, undefined]);

  for (const load of [whole[0]?.json.load, some.json.load]) {
    for (const refused of [
      await ask('/v1/unload', { body: { load } }),
      await ask(`/v1/unload/preview?load=${load}`),
    ]) {
      expect(refused).toMatchObject({ status: 400, json: { field: 'load' } });
      expect(refused.json.detail).toContain(`Take that load back first (adtally unload ${by})`);
    }
  }
});

test('an operation whose caller leaves goes on to its end', async () => {
  const { load } = (await receiver.send(bodyOf([event({ advertiser_id: 'left' })]))).json;
  const other = await Load.begin(db.store, { kind: 'events', file: 'under way' }, new Date());
  const leaving = new AbortController();
  const asked = ask('/v1/unload', { body: { load }, signal: leaving.signal });
  await expect
    .poll(audit, within5s)
    .toContainEqual(expect.objectContaining({ operation: 'unload', state: 'begun', input: { load } }));
  leaving.abort();
  await expect(asked).rejects.toThrow();
  await other.finish();
  await expect
    .poll(audit, { timeout: 20_000 })
    .toContainEqual(expect.objectContaining({ operation: 'unload', state: 'done', input: { load } }));
  expect((await ask(`/v1/loads/show?load=${load}`)).json).toMatchObject([{ state: 'unloaded' }]);
});

test('what the command line changes is in the audit log, too, and the command lists it', async () => {
  const env = environmentOf(db.address);
  const since = new Date().toISOString();
  const made = await run(['token', 'create', 'shell', '--expires', '2099-01-01'], env);
  expect(made.code, made.stderr).toBe(0);
  expect((await run(['limit', 'set', 'shell', '9'], env)).code).toBe(0);
  expect((await run(['confirm', 'shell', '--from', '2026-03-01', '--to', '2026-03-01'], env)).code).toBe(0);
  const { stdout } = await run(['audit', '--json', '--since', since], env);
  const who = expect.stringMatching(new RegExp(`^${userInfo().username}@.`));
  expect(JSON.parse(stdout)).toMatchObject([
    { who, token: '', operation: 'confirm', state: 'done', outcome: { days: 1 } },
    { who, operation: 'limit set', input: { account: 'shell', requests: 9 } },
    { who, operation: 'token create', input: { account: 'shell' } },
  ]);
  expect(stdout).not.toContain(made.stdout.trim());
  expect((await run(['audit', '--limit', '1'], env)).stdout).toContain('confirm');
});

test('a list of very many tokens is told as fast as it is read: meanwhile the service does nothing else', async () => {
  await db.store.command({
    query: `INSERT INTO tokens (id, account_id, hash, label, created_at)
            SELECT toString(number), 'visited', hex(SHA256(toString(number))), 'visit', now64(3) FROM numbers(40000)`,
  });
  // Of this process, in which the service runs, whatever else the machine does.
  const cpuSeconds = () => Object.values(process.cpuUsage()).reduce((sum, spent) => sum + spent, 0) / 1e6;
  const authorization = `Bearer ${await operatorToken()}`;
  const begins = cpuSeconds();
  await listTokens(db.store, { account: 'visited' });
  const read = cpuSeconds();
  const answer = await fetch(`${receiver.url}/v1/token/list?account=visited`, { headers: { authorization } });
  const told = await answer.text();
  const took = cpuSeconds() - read;
  expect(JSON.parse(told)).toHaveLength(40_000);
  expect(took).toBeLessThan(3 * (read - begins) + 1);
  const [one] = await listTokens(db.store, { id: '7' });
  expect(one?.label).toBe('visit');
});
