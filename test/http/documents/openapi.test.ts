import {
  registerSchema,
  setShouldValidateFormat,
  unregisterSchema,
  type Validator,
  validate,
} from '@hyperjump/json-schema/openapi-3-1';
import { beforeAll, describe, expect, test } from 'vitest';
import { endpoints, familyOf } from '../../../catalog/breakdowns.ts';
import { type Catalog, catalog } from '../../../catalog/catalog.ts';
import { openApiDocument } from '../../../src/http/openapi/document.ts';
import type { Content, OpenApiDocument, ResponseObject } from '../../../src/http/openapi/model.ts';
import { close } from '../../support/closes.ts';
import { event, load } from '../../support/events.ts';
import { paths } from '../../support/oracle.ts';
import { type Report, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const address = 'https://adtally.test/openapi.json';
const dialect = 'https://spec.openapis.org/oas/3.1/schema-base';

/** What takes long to make. */
const validators: Record<string, Promise<Validator>> = {};

/** The document of a service, registered with an independent validator. */
async function readDocument(url: string): Promise<OpenApiDocument> {
  setShouldValidateFormat(true);
  const text = await (await fetch(`${url}/openapi.json`)).text();
  // Another file of the same process may have registered the document of its service.
  unregisterSchema(address);
  registerSchema(JSON.parse(text), address, dialect);
  return JSON.parse(text);
}

/** What the validator finds wrong with a value, by a schema at some place of the document. */
async function faults(value: unknown, ...place: string[]): Promise<unknown[]> {
  const pointer = place.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/');
  const schema = place.length ? `${address}#/${pointer}` : dialect;
  validators[schema] ??= validate(schema);
  const output = (await validators[schema])(JSON.parse(JSON.stringify(value)), 'BASIC');
  return output.valid ? [] : (output.errors ?? []);
}

const db = useStore();
// Before the service starts, so that it knows the time of the load from the beginning.
beforeAll(async () => {
  await load(db.store, [
    event({ device: 'mobile', creative_id: 'creative', site_id: 'site', spend: '12.345678' }),
    event({ revenue: '-0.5' }),
    event({ event_type: 'conversion', quantity: 3 }),
    event({ event_type: 'referral', event_time: '2026-03-02T00:00:00Z', creative_id: 'cr"e}ative' }),
    event({ event_type: 'ad_request', quantity: 4_294_967_295 }),
  ]);
});
const service = useService(db);
const limited = useService(db, { RATE_LIMIT_REQUESTS: '1' });
// Only the embedded store has a secret of its own.
const withoutLinks = useService(db, { CLICKHOUSE_URL: 'http://127.0.0.1:1' });

const limits = {
  requests: 120,
  windowSeconds: 60,
  maxBodyBytes: 524_288,
  timeoutSeconds: 300,
  reports: { most: 8, mostOfAccount: 4, waitSeconds: 5 },
  leastPace: { bytesPerSecond: 65_536, seconds: 10 },
  sendTimeoutSeconds: 60,
};
const body = { start_time: '2026-03-01', end_time: '2026-03-31' };
const path = '/v1/campaigns';
/** Only where optional fields of the body ask for it. */
const ofOptions = ['Adtally-Row-Count', 'Adtally-Totals', 'Adtally-Compare-To'];
/** Nor a currency before the operator has said which. */
const notAlways = ['Adtally-Currency', ...ofOptions];
const mediaTypes = [
  'application/json',
  'application/x-ndjson',
  'text/csv',
  'application/vnd.apache.arrow.stream',
  'application/vnd.apache.parquet',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
];

let document: OpenApiDocument;
beforeAll(async () => {
  document = await readDocument(service.url);
});

/** The answer 200 of a report. */
function answerOf(name: string): ResponseObject {
  const answer = document.paths[name]?.post?.responses[200];
  if (!answer || '$ref' in answer) throw new Error(`${name} has no answer`);
  return answer;
}

const contentOf = (name: string): Content => answerOf(name).content ?? {};

/** An answer is what the document says, and so is its example; one with another field is not. */
async function expectDescribed(name: string, answer: { readonly result: object }) {
  const place = ['paths', name, 'post', 'responses', '200', 'content', 'application/json', 'schema'];
  expect(await faults(answer, ...place)).toEqual([]);
  expect(await faults({ result: { ...answer.result, more: 1 } }, ...place)).not.toEqual([]);
  expect(await faults(contentOf(name)['application/json']?.example, ...place)).toEqual([]);
}

test('the document is valid OpenAPI 3.1, and a broken one would be noticed', async () => {
  expect(await faults(document)).toEqual([]);
  expect(await faults({ ...document, info: {} })).not.toEqual([]);
  const schemas = { ...document.components.schemas, Broken: { type: 'text' } };
  expect(await faults({ ...document, components: { ...document.components, schemas } })).not.toEqual([]);
});

test('it has every endpoint of the contract, and tells the aliases', () => {
  const reports = Object.entries(document.paths).filter(
    ([, { post }]) =>
      post && !['exports', 'changes', 'explanations', 'comparisons', 'closes'].includes(post.tags[0] ?? ''),
  );
  expect(reports.map(([name]) => name).sort()).toEqual([...paths].sort());
  expect(
    reports.flatMap(([name, { post }]) => (post?.['x-alias-of'] ? [[name, post['x-alias-of']]] : [])),
  ).toEqual([
    ['/v1/ad_units/breakdowns/devices', '/v1/ad_units/breakdowns/device'],
    ['/v1/ad_units/breakdowns/devices_and_site', '/v1/ad_units/breakdowns/device_site'],
  ]);
  const operations = Object.values(document.paths).flatMap(({ get, post }) => [get ?? [], post ?? []].flat());
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
  for (const { post } of reports.map(([, item]) => item)) {
    expect(Object.keys(post?.responses ?? {})).toEqual(
      '200 400 401 405 406 408 409 413 415 426 429 431 500'.split(' '),
    );
  }
});

describe('what the service answers is what the document says', () => {
  const families = [
    ['campaigns', 'advertiser'],
    ['ad_units', 'publisher'],
  ] as const;
  test.each(families)('of changes, an explanation and a comparison of %s', async (family, account) => {
    const { entity } = familyOf(catalog, family);
    const file = `day,${entity}_id,impressions\n${body.start_time},somebody,5\n${body.start_time},else,many\n`;
    const days = `?start_time=${body.start_time}&end_time=${body.end_time}`;
    for (const [question, asked, list, least, type] of [
      ['changes', { changed_since: '2026-01-01T00:00:00Z' }, 'days', 2, 'application/json'],
      ['explain', { ...body, row: {} }, 'parts', 1, 'application/json'],
      ['reconcile', file, 'differences', 2, 'text/csv'],
    ] as const) {
      const name = `/v1/${family}/${question}`;
      const query = question === 'reconcile' ? days : '';
      const response = await service.post(`${name}${query}`, account, asked, { 'content-type': type });
      const answer = (await response.json()) as { result: Record<string, object[]> };
      expect(answer.result[list]?.length, name).toBeGreaterThanOrEqual(least);
      await expectDescribed(name, answer);
    }
  });

  test.each(['campaigns', 'ad_units'])('of the adjustments and the closes of %s', async (family) => {
    const name = `/v1/${family}/adjustments`;
    const account = family === 'ad_units' ? 'late-publisher' : 'late';
    const sides = {
      advertiser_id: 'late',
      publisher_id: 'late-publisher',
      event_time: '2026-02-03T00:00:00Z',
    };
    await load(db.store, [event({ ...sides, quantity: 7 })]);
    await close(db.store, '2026-02', account, { anyway: true });
    await load(db.store, [event({ ...sides, revenue: '-0.25', spend: '-0.5' })]);
    const days = { start_time: '2026-02-01', end_time: '2026-02-28' };
    const response = await service.post(name, account, { ...days, totals: true, limit: 5 });
    const answer = (await response.json()) as { result: { rows: object[] } };
    expect(answer.result.rows).toMatchObject([{ start_time: '2026-02-03', impressions: 1 }]);
    await expectDescribed(name, answer);
    const split = (await (
      await service.post(name, account, { ...days, by_load: true })
    ).json()) as typeof answer;
    expect(split).toMatchObject({ result: { rows: [{ change: 'loaded', reason: '' }] } });
    await expectDescribed(name, split);
    const closes = await (await service.post(`/v1/${family}/closes`, account, days)).json();
    expect(closes).toMatchObject({ result: { closes: [{ month: '2026-02', previous: null }] } });
    await expectDescribed(`/v1/${family}/closes`, closes as { result: object });
  });

  test.each(paths)('%s', async (name) => {
    const place = ['paths', name, 'post', 'responses', '200', 'content', 'application/json'];
    const account = name.includes('ad_units') ? 'publisher' : 'advertiser';
    const result = await service.report(name, account, body.start_time, body.end_time);
    const [row] = result.rows;
    expect(row).toBeDefined();
    expect(await faults({ result }, ...place, 'schema')).toEqual([]);
    const longer = { ...result, rows: [{ ...row, more: 1 }] };
    expect(await faults({ result: longer }, ...place, 'schema')).not.toEqual([]);

    const { example, schema } = contentOf(name)['application/json'] ?? {};
    const { rows, column_metadata } = (example as { result: Report }).result;
    expect(await faults(example, ...place, 'schema')).toEqual([]);
    expect(column_metadata).toEqual(result.column_metadata);
    expect(Object.keys(rows[0] ?? {})).toEqual(Object.keys(row ?? {}));
    const rowSchema =
      schema?.anyOf?.[0]?.$ref
        ?.split('/')
        .at(-1)
        ?.replace(/Report$/, 'Row') ?? '';
    const { properties = {} } = document.components.schemas[rowSchema] ?? {};
    expect(Object.keys(properties)).toEqual(Object.keys(row ?? {}));
  });

  test('in every media type, with the headers it names', async () => {
    const headers = Object.keys(answerOf(path).headers ?? {});
    expect(Object.keys(contentOf(path))).toEqual(mediaTypes);
    for (const accept of mediaTypes) {
      const response = await service.post(path, 'advertiser', body, { accept });
      expect(response.headers.get('content-type')?.split(';')[0]).toBe(accept);
      const json = accept === 'application/json';
      const missing = headers.filter((name) => !response.headers.has(name) && !notAlways.includes(name));
      expect(missing.filter((name) => !json || !/^Adtally-|^Content-Disposition/.test(name))).toEqual([]);
      const { example } = contentOf(path)[accept] ?? {};
      if (accept === 'text/csv') {
        expect((await response.text()).split('\n')[0]).toBe(String(example).split('\n')[0]);
      } else if (accept === 'application/x-ndjson') {
        const keys = (lines: string) => Object.keys(JSON.parse(lines.split('\n')[0] ?? ''));
        expect(keys(await response.text())).toEqual(keys(String(example)));
      } else await response.arrayBuffer();
    }
  });

  const failures: Record<string, () => Promise<Response>> = {
    400: () => service.post(path, 'a', { ...body, end_time: '2026-02-30' }),
    401: () => service.post(path, 'a', body, { authorization: 'Bearer nothing' }),
    405: () => fetch(`${service.url}${path}`),
    406: () => service.post(path, 'a', body, { accept: 'image/png' }),
    413: () => service.post(path, 'a', 'x'.repeat(limits.maxBodyBytes + 1)),
    415: () => service.post(path, 'a', body, { 'content-type': 'text/plain' }),
    431: () => service.post(path, 'a', body, { 'x-note': 'y'.repeat(20_000) }),
    429: () => limited.post(path, 'often', body).then(() => limited.post(path, 'often', body)),
  };
  test.each(Object.keys(failures))('when it refuses with %s', async (status) => {
    const response = await failures[status]?.();
    expect(response?.status).toBe(Number(status));
    const type = 'application/problem+json';
    expect(response?.headers.get('content-type')).toBe(type);
    const reference = document.paths[path]?.post?.responses[status];
    const name = (reference && '$ref' in reference && reference.$ref.split('/').at(-1)) || '';
    const documented = document.components.responses[name];
    const required = Object.keys(documented?.headers ?? {}).filter(
      (header) => document.components.headers[header]?.required,
    );
    expect(required.filter((header) => !response?.headers.has(header))).toEqual([]);
    const problem = JSON.parse((await response?.text()) ?? '');
    expect(Object.keys(documented?.content?.[type]?.examples ?? {})).toContain(problem.code);
    const place = ['components', 'responses', name, 'content', type, 'schema'];
    expect(await faults(problem, ...place)).toEqual([]);
    expect(await faults({ ...problem, code: 'other' }, ...place)).not.toEqual([]);
  });

  test.each(['get', 'head'] as const)(
    'of an export by %s, also of one that has not changed',
    async (method) => {
      const { responses = {} } = document.paths['/v1/export/campaigns.{format}']?.[method] ?? {};
      expect(Object.keys(responses)).toEqual(
        '200 304 400 401 404 405 406 408 409 426 429 431 500'.split(' '),
      );
      const headers = { authorization: `Bearer ${await service.token('advertiser')}` };
      const address = `${service.url}/v1/export/campaigns.csv?${new URLSearchParams(body)}`;
      const first = await fetch(address, { headers });
      await first.text();
      const asked = { ...headers, 'if-none-match': first.headers.get('etag') ?? '' };
      const second = await fetch(address, { method: method.toUpperCase(), headers: asked });
      expect(second.status).toBe(304);
      const documented = responses[304];
      const names = Object.keys((documented && 'headers' in documented && documented.headers) || {});
      expect(names).toContain('Cache-Control');
      expect(names.filter((name) => !second.headers.has(name))).toEqual([]);
    },
  );

  test('of messages to /mcp', async () => {
    const initialize = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'test', version: '0' },
      },
    };
    const accept = 'application/json, text/event-stream';
    const asked: [status: number, message: object, accept: string][] = [
      [200, initialize, accept],
      [202, { jsonrpc: '2.0', method: 'notifications/initialized' }, accept],
      [400, { jsonrpc: '2.0' }, accept],
      [400, [initialize, initialize], accept],
      [406, initialize, 'application/json'],
    ];
    const { responses = {} } = document.paths['/mcp']?.post ?? {};
    for (const [status, message, accept] of asked) {
      const answer = await service.post('/mcp', 'advertiser', message, { accept });
      const text = await answer.text();
      const documented = responses[status];
      if (!documented || '$ref' in documented) throw new Error(`${status} is not told`);
      const { content = {}, headers = {} } = documented;
      const type = text === '' ? undefined : answer.headers.get('content-type')?.split(';')[0];
      expect({ status: answer.status, type }).toEqual({
        status,
        type: Object.keys(content).find((each) => each === type),
      });
      expect(Object.keys(headers).filter((name) => !answer.headers.has(name))).toEqual([]);
    }
  });

  test('of its health', async () => {
    for (const name of ['/healthz', '/readyz']) {
      const health = await (await fetch(`${service.url}${name}`)).json();
      expect(await faults(health, 'components', 'schemas', 'Health')).toEqual([]);
    }
  });

  test('of its health on a store that an update has gone ahead of', async () => {
    await db.store.command({
      query: "INSERT INTO migrations (version, name, checksum) VALUES (9000, '9000_future', '')",
    });
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
    await db.store.command({ query: 'DELETE FROM migrations WHERE version = 9000' });
  });
});

test('a service that makes no links says so as the document does', async () => {
  const link = '/v1/links/campaigns.csv';
  expect((await withoutLinks.post(link, 'advertiser', body)).status).toBe(404);
  expect(document.paths['/v1/links/campaigns.{format}']?.post?.responses).toHaveProperty('404');
});

test('every body that it shows as an example is accepted, as the lines of curl on /docs send it', async () => {
  // The day on which the link of the example expires passes.
  const lasting = Object.entries(document.paths).filter(([name]) => !name.startsWith('/v1/links/'));
  const shown = lasting.flatMap(([address, { post }]) =>
    Object.values(post?.requestBody?.content ?? {}).flatMap(({ example, examples = {} }) =>
      [...(example ? [example] : []), ...Object.values(examples).map(({ value }) => value)].map((value) => ({
        address,
        value: value as object,
        headers: Object.fromEntries(
          (post?.parameters ?? []).flatMap((each) =>
            'in' in each && each.in === 'header'
              ? [[each.name, String([each.schema.examples].flat()[0])]]
              : [],
          ),
        ),
      })),
    ),
  );
  expect(shown.length).toBeGreaterThan(paths.length * 2);
  const october = { event_time: '2026-10-15T00:00:00Z', advertiser_id: 'both', publisher_id: 'both' };
  await load(db.store, [event(october)]);
  await close(db.store, '2026-10', 'both', { anyway: true });
  for (const { address, value, headers } of shown) {
    const response = await service.post(address, 'both', value, headers);
    const problem = response.ok ? '' : await response.text();
    expect({ address, value, problem }).toEqual({ address, value, problem: '' });
    await response.body?.cancel();
  }
});

test('every example of a parameter of an export is accepted', async () => {
  const october = { event_time: '2026-10-15T00:00:00Z', advertiser_id: 'exported', publisher_id: 'exported' };
  await load(db.store, [event(october)]);
  await close(db.store, '2026-10', 'exported', { anyway: true });
  const days = { start_time: '2026-10-01', end_time: '2026-10-31' };
  const shown: string[] = [];
  for (const report of ['campaigns', 'campaigns/{breakdown}', 'ad_units', 'ad_units/{breakdown}']) {
    const { parameters = [] } = document.paths[`/v1/export/${report}.{format}`]?.get ?? {};
    for (const each of parameters) {
      if (!('in' in each) || each.in !== 'query' || !each.schema.examples) continue;
      const asked = new URLSearchParams({ ...days, [each.name]: String(each.schema.examples[0]) });
      const address = `${service.url}/v1/export/${report.replace('{breakdown}', 'date')}.csv?${asked}`;
      const headers = { authorization: `Bearer ${await service.token('exported')}` };
      const answer = await fetch(address, { headers });
      expect([address, answer.status, await answer.text()]).toEqual([address, 200, expect.anything()]);
      shown.push(each.name);
    }
  }
  expect(shown).toEqual(
    expect.arrayContaining(['metrics', 'order_by', 'changed_since', 'as_of', 'compare_to']),
  );
});

test('what examples show fits what was asked', () => {
  const shown = (path: string) => {
    const { requestBody, responses } = document.paths[path]?.post ?? {};
    const answer = responses?.[200];
    const content = answer && 'content' in answer ? answer.content : {};
    const example = (of: Content = {}) => Object(of['application/json']?.example);
    return { asked: example(requestBody?.content), answer: example(content).result };
  };
  const changes = shown('/v1/campaigns/changes');
  const [{ day, changed_at }] = changes.answer.days;
  expect(changes.asked.changed_since < changed_at && day < changed_at).toBe(true);
  expect(changed_at < changes.answer.changed_until).toBe(true);
  const link = shown('/v1/links/campaigns.{format}');
  expect(Object.keys(link.asked)).toEqual(['start_time', 'end_time', 'expires']);
  const { pathname, searchParams } = new URL(link.answer.link, service.url);
  expect([pathname, searchParams.get('start_time')]).toEqual([
    '/v1/export/campaigns.csv',
    link.asked.start_time,
  ]);
  expect(link.answer.expires).toBe(`${link.asked.expires}T00:00:00Z`);
  expect(Number(searchParams.get('link')?.split('.')[1]) * 1000).toBe(Date.parse(link.answer.expires));
  const [part] = shown('/v1/campaigns/explain').answer.parts;
  expect(part.loaded_at < part.confirmed_at).toBe(true);
  expect(shown('/v1/campaigns/adjustments').answer.rows[0].impressions).toBeLessThan(0);
});

test('where accounts have reports of theirs sent by mail, the document has the paths for it', async () => {
  const made = openApiDocument(catalog, limits, { withSchedules: true });
  expect(await faults(made)).toEqual([]);
  const own = Object.keys(made.paths).filter((path) => path.startsWith('/v1/schedule/'));
  expect(own.map((path) => path.split('/').at(-1))).toEqual(['list', 'create', 'pause', 'resume', 'remove']);
});

test('a made-up dimension of the catalog is in the document without further work', async () => {
  const campaigns = familyOf(catalog, 'campaigns');
  const extended: Catalog = {
    ...catalog,
    dimensions: {
      ...catalog.dimensions,
      browser: { key: 'browser', storage: 'String', columns: [{ id: 'browser' }] },
    },
    families: {
      ...catalog.families,
      campaigns: { ...campaigns, dimensions: [...campaigns.dimensions, 'browser'] },
    },
  };
  const made = openApiDocument(extended, limits);
  expect(await faults(made)).toEqual([]);
  expect(Object.keys(made.paths)).toEqual(
    expect.arrayContaining(endpoints(extended).map((endpoint) => endpoint.path)),
  );
  expect(made.paths['/v1/campaigns/breakdowns/device_browser_date']?.post?.summary).toBe(
    'One row per campaign, device, browser and day',
  );
  expect(made.components.schemas.CampaignsBrowserRow?.required).toContain('browser');
});

const asked = {
  ...body,
  limit: 1,
  totals: true,
  compare_to: 'previous_period',
  metrics: ['cpc', 'spent'],
};
test('answers with optional fields are what the document says', async () => {
  const place = ['paths', path, 'post', 'responses', '200', 'content', 'application/json', 'schema'];
  const answer = JSON.parse(await (await service.post(path, 'advertiser', asked)).text());
  expect(Object.keys(answer.result)).toEqual(
    expect.arrayContaining(['totals', 'row_count', 'compare_to', 'rows']),
  );
  expect(await faults(answer, ...place)).toEqual([]);
  for (const wrong of [{ row_count: '1' }, { totals: { spent: '1' } }, { more: 1 }, { rows: [{}] }]) {
    expect(await faults({ result: { ...answer.result, ...wrong } }, ...place)).not.toEqual([]);
  }
  const csv = await service.post(path, 'advertiser', asked, { accept: 'text/csv' });
  expect(ofOptions.filter((name) => !csv.headers.has(name))).toEqual([]);
  const documented = document.paths[path]?.post?.responses[200];
  const headers = documented && 'headers' in documented ? documented.headers : {};
  expect(Object.keys(headers ?? {})).toEqual(expect.arrayContaining(notAlways));
  await csv.text();
});

test('bodies are accepted and refused as the document says', async () => {
  const options = [
    {
      limit: 1,
      totals: false,
      filters: {},
      order_by: [],
      compare_to: 'previous_year',
      time_grain: undefined,
    },
    { filters: { device: ['x'], campaign_id: [''] }, metrics: ['cpc'], order_by: [{ field: 'cpc' }] },
    { compare_to: { start_time: '2025-01-01', end_time: '2025-12-31' } },
    ...[
      { limit: 0 },
      { limit: '1' },
      { limit: 1.5 },
      { totals: 1 },
      { filters: { site: ['x'] } },
      { metrics: [] },
    ],
    ...[
      { filters: { device: [] } },
      { filters: { device: 'x' } },
      { order_by: ['cpc'] },
      { metrics: ['cost'] },
    ],
    ...[{ compare_to: 'yesterday' }, { compare_to: { start_time: '2025-01-01' } }, { filters: 1 }],
    ...[{ order_by: [{ field: 'cpc', dir: 'desc' }] }, {}, { more: 1 }, { start_time: '2026-02-29' }],
  ].map((more) => ({ ...body, ...more }));
  for (const request of [...options, {}, []]) {
    const accepted = (await service.post(path, 'a', request)).status === 200;
    const fits = await faults(request, 'components', 'schemas', 'CampaignsRequest');
    expect({ request, fits: fits.length === 0 }).toEqual({ request, fits: accepted });
  }
});
