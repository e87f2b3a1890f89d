import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { endpoints } from '../../catalog/breakdowns.ts';
import { type Catalog, catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import type { ReadStatement } from '../../clickhouse/reader.ts';
import { rollupDdl, rollups } from '../../clickhouse/rollups.ts';
import { compileReport, compileUnconfirmedDates } from '../../src/report/compile.ts';
import { compileExplanation } from '../../src/report/explain/compile-explanation.ts';
import { explainedRow, rowKeys } from '../../src/report/explain/explain-request.ts';
import { type Plan, planReport } from '../../src/report/plan.ts';
import { event, load } from '../support/events.ts';
import { paths } from '../support/oracle.ts';
import { readable } from '../support/readable.ts';
import { useStore } from '../support/store.ts';

const account = `o'hare "\`\\ {account:String}`;
const range = { start: '2026-03-01', end: '2026-03-31' };
const { aliases } = catalog;
const envelope = {
  lastUpdateTime: '2026-04-01 00:00:00 UTC',
  unconfirmedDates: ['2026-03-30', '2026-03-31'],
};

/** The catalog with one more dimension and one more measure, which a report could have next year. */
const extended: Catalog = {
  ...catalog,
  dimensions: {
    ...catalog.dimensions,
    browser: { key: 'browser', storage: 'LowCardinality(String)', columns: [{ id: 'browser' }] },
  },
  families: {
    ...catalog.families,
    campaigns: extendedFamily('campaigns'),
  },
};

function extendedFamily(name: string): Catalog['families'][string] {
  const family = catalog.families[name];
  if (!family) throw new Error(`the catalog has no family ${name}`);
  return {
    ...family,
    dimensions: [...family.dimensions, 'browser'],
    measures: {
      ...family.measures,
      invoices: { sumOf: 'ad_requests', type: 'Numeric' },
    },
    columns: [...family.columns, 'invoices'],
  };
}

function planOf(path: string, from = catalog): Plan {
  const endpoint = endpoints(from).find((candidate) => candidate.path === path);
  if (!endpoint) throw new Error(`there is no ${path}`);
  return planReport(from, endpoint.breakdown, account, range);
}

const compile = (path: string, from = catalog): ReadStatement => compileReport(planOf(path, from), envelope);

describe('the statements of an endpoint', () => {
  it('exist for every path of the contract and for no other', () => {
    expect(
      endpoints(catalog)
        .map(({ path }) => path)
        .sort(),
    ).toEqual([...paths].sort());
  });

  it.each(paths.filter((path) => !(path in aliases)))('%s are those that were reviewed', async (path) => {
    const statements = [compileUnconfirmedDates(planOf(path)), compile(path)].map(readable).join('\n\n');
    const file = path.replace('/v1/', '').replaceAll('/', '.');
    await expect(`-- POST ${path}\n\n${statements}\n`).toMatchFileSnapshot(`golden/${file}.sql`);
  });

  it.each(Object.entries(aliases))('%s are those of %s', (alias, path) => {
    expect(compileUnconfirmedDates(planOf(alias))).toEqual(compileUnconfirmedDates(planOf(path)));
    expect(compile(alias)).toEqual(compile(path));
  });

  it.each(paths)('%s depend on nothing but the plan', (path) => {
    const frozen = deepFreeze(planOf(path, structuredClone(catalog)));
    const first = compileReport(frozen, deepFreeze(structuredClone(envelope)));
    expect(compileReport(planOf(path), envelope)).toEqual(first);
    expect(compileUnconfirmedDates(planOf(path))).toEqual(compileUnconfirmedDates(frozen));
  });
});

it.each(Object.keys(catalog.families))(
  'the statement that explains a row of %s is the reviewed one',
  async (family) => {
    const [entity = '', device = ''] = rowKeys(catalog, family);
    const asked = {
      ...{ start_time: range.start, end_time: range.end },
      row: { [entity]: "o'hare", [device]: '2026' },
      filters: { device: ["o'hare"] },
    };
    const statement = compileExplanation(explainedRow(catalog, family, account, asked));
    expect(statement.query).not.toMatch(/o'hare|2026/);
    expect(JSON.stringify(statement.settings)).not.toContain("o'hare");
    const file = `golden/${family}.explain.sql`;
    await expect(`-- POST /v1/${family}/explain\n\n${readable(statement)}\n`).toMatchFileSnapshot(file);
  },
);

describe('in a cluster', () => {
  const on = (path: string, asked: 'one' | 'all') =>
    compileReport({ ...planOf(path), routing: { shards: asked, database: 'adtally' } }, envelope);

  it.each(paths)('%s asks one shard and fails rather than ask more', (path) => {
    const alone = compile(path);
    const { query, params, settings } = on(path, 'one');
    expect(query.replaceAll("'adtally.", "'")).toBe(alone.query);
    expect(params).toEqual(alone.params);
    expect(settings).toEqual({
      ...alone.settings,
      skip_unavailable_shards: 0,
      optimize_skip_unused_shards: 1,
      force_optimize_skip_unused_shards: 1,
      allow_nondeterministic_optimize_skip_unused_shards: 1,
    });
  });

  it.each(paths)('%s adds up what several shards have of a key, and misses none', (path) => {
    const { query, settings } = on(path, 'all');
    expect(query).toContain('GROUP BY');
    expect(query).not.toContain('FINAL');
    expect(settings).toMatchObject({ skip_unavailable_shards: 0, optimize_skip_unused_shards: 0 });
  });
});

describe('one more dimension and one more measure in the catalog', () => {
  const test = useStore();
  const path = '/v1/campaigns/breakdowns/device_browser_date';

  it('bring every new combination as an endpoint, and change no other', () => {
    const added = ['browser', 'device_browser', 'creative_browser', 'device_creative_browser'].flatMap(
      (name) => [`/v1/campaigns/breakdowns/${name}`, `/v1/campaigns/breakdowns/${name}_date`],
    );
    expect(
      endpoints(extended)
        .map((endpoint) => endpoint.path)
        .sort(),
    ).toEqual([...paths, ...added].sort());
  });

  it('are read, grouped, ordered and written by the statement', () => {
    const undated = compile('/v1/campaigns/breakdowns/device_browser', extended).query;
    expect(undated).toContain('sum(r.invoices) AS invoices');
    expect(undated).toContain('FROM campaigns_device_browser_date AS r');
    expect(undated).toContain('GROUP BY campaign_id, device, browser)');
    const { query, settings } = compile(path, extended);
    expect(query).toMatch(/^SELECT concat\(.*, toJSONString\(browser\)\) AS text, .*, invoices\n/);
    expect(query).toContain('FROM campaigns_device_browser_date AS r FINAL');
    expect(query).toContain('ORDER BY day, campaign_id, device, browser\n');
    const row = `${settings.format_template_row_format}`;
    expect(row).toMatch(/,"invoices":\$\{invoices:Raw\}\}$/);
    const metadata = metadataOf(settings);
    expect(metadata).toContainEqual({ id: 'browser', type: 'String' });
    expect(metadata.at(-1)).toEqual({ id: 'invoices', type: 'Numeric' });
    expect(metadata.map(({ id }) => id)).toEqual(
      [...`${query}${row}`.matchAll(/"(\w+)":/g)].map(([, id]) => id),
    );
    expect(metadataOf(compile('/v1/campaigns', extended).settings).map(({ id }) => id)).not.toContain(
      'browser',
    );
  });

  it('give each new rollup its columns, its sort key and a finer rollup to be filled from', () => {
    const wanted = rollups(extended).filter(({ table }) => table.startsWith('campaigns_'));
    const parents = wanted.map(({ table, source }) => [table, source]);
    expect(Object.fromEntries(parents)).toEqual({
      campaigns_device_creative_browser_date: 'events',
      campaigns_creative_browser_date: 'campaigns_device_creative_browser_date',
      campaigns_device_browser_date: 'campaigns_device_creative_browser_date',
      campaigns_device_creative_date: 'campaigns_device_creative_browser_date',
      campaigns_browser_date: 'campaigns_device_browser_date',
      campaigns_creative_date: 'campaigns_device_creative_date',
      campaigns_device_date: 'campaigns_device_creative_date',
      campaigns_date: 'campaigns_device_date',
    });
    for (const [n, [, parent]] of parents.entries()) {
      expect(['events', ...parents.slice(0, n).map(([table]) => table)]).toContain(parent);
    }
    const finest = wanted.map(rollupDdl).find((ddl) => ddl.includes('FROM events'));
    expect(finest).toContain('    browser LowCardinality(String),\n');
    expect(finest).toContain('    invoices SimpleAggregateFunction(sum, UInt128),\n');
    expect(finest).toContain('ORDER BY (account_id, day, campaign_id, device, creative_id, browser)\n');
    expect(finest).toContain('sum(e.ad_requests) AS invoices');
  });

  it('leave the rollups of today as the migrations made them', async () => {
    const schema = `SELECT name, create_table_query FROM system.tables
      WHERE database = currentDatabase() AND match(name, '_date(_view)?$') ORDER BY name`;
    const migrated = await select(test.store, schema);
    expect(migrated).toHaveLength(16);
    await recreateRollups(test.store, catalog);
    expect(await select(test.store, schema)).toEqual(migrated);
    expect(await checkSchema(test.store, catalog)).toEqual([]);
  });

  it('need only the column and their rollups in the store to be reported', async () => {
    expect(await checkSchema(test.store, extended)).toContain('events: column browser is missing');
    await test.store.command({ query: "ALTER TABLE events ADD COLUMN browser String DEFAULT 'unknown'" });
    await recreateRollups(test.store, extended);
    const column = 'ALTER TABLE campaigns_closed ADD COLUMN browser LowCardinality(String)';
    const key = 'account_id, day, campaign_id, device, creative_id, revision, browser';
    expect(await checkSchema(test.store, extended)).toEqual([
      'campaigns_closed: column browser is missing, the catalog wants LowCardinality(String)',
      'campaigns_closed: column invoices is missing, the catalog wants UInt128',
    ]);
    await test.store.command({ query: `${column}, ADD COLUMN invoices UInt128, MODIFY ORDER BY (${key})` });
    expect(await checkSchema(test.store, extended)).toEqual([]);
    expect(await checkSchema(test.store, catalog)).toContain(
      'campaigns_date: column invoices is not in the catalog',
    );

    await load(test.store, [event({ advertiser_id: account, event_type: 'ad_request', quantity: 7 })]);
    const { query, params, settings } = compile(path, extended);
    const { stream } = await test.store.exec({ query, query_params: params, clickhouse_settings: settings });
    const { rows } = JSON.parse(await text(stream)).result;
    expect(rows).toMatchObject([
      { start_time: '2026-03-01', device: 'unknown', browser: 'unknown', invoices: 7 },
    ]);
  });
});

async function recreateRollups(store: Store, from: Catalog): Promise<void> {
  for (const { table, view } of rollups(catalog)) {
    await store.command({ query: `DROP TABLE ${view} SYNC` });
    await store.command({ query: `DROP TABLE ${table} SYNC` });
  }
  for (const statement of rollups(from).flatMap((rollup) => rollupDdl(rollup).split(';\n'))) {
    if (statement.trim() !== '') await store.command({ query: statement });
  }
}

function metadataOf(settings: ReadStatement['settings']): { id: string; type: string }[] {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the placeholder of the rows
  const envelope = `${settings.format_template_resultset_format}`.replace('${data}', '');
  return JSON.parse(envelope).result.column_metadata;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}
