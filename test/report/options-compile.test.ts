import { describe, expect, it } from 'vitest';
import { endpoints } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import type { ReadStatement } from '../../clickhouse/reader.ts';
import { adjustmentsBody, adjustmentsRequest, closedBreakdown } from '../../src/report/adjustments.ts';
import { closedPlan } from '../../src/report/closed-months.ts';
import { compileReport, compileSummary, compileUnconfirmedDates } from '../../src/report/compile.ts';
import type { ReportFormatName } from '../../src/report/formats.ts';
import { type Plan, planReport, type ShardRouting } from '../../src/report/plan.ts';
import { RequestReader } from '../../src/report/request.ts';
import type { Asked } from '../support/asked-oracle.ts';
import { everyCombination } from '../support/combinations.ts';
import { paths } from '../support/oracle.ts';
import { readable } from '../support/readable.ts';

const account = `o'hare "\`\\ {account:String}`;
const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const envelope = { lastUpdateTime: '2026-04-01 00:00:00 UTC', unconfirmedDates: [] };
const hostile = `'], 'x') OR 1 = 1 --`;

/** Which days changed is in the store alone, so that no recount has it. */
type AskedOfStore = Asked & {
  changed_since?: string;
  as_of?: string;
  start_time?: string;
  end_time?: string;
};

const readers = new Map(
  endpoints(catalog).map(({ path, breakdown }) => [
    path,
    { breakdown, reader: new RequestReader(catalog, breakdown) },
  ]),
);

/** @param changed days after the moment that is asked for */
function planOf(path: string, asked: AskedOfStore, routing?: ShardRouting, changed = ['2026-03-02']): Plan {
  const endpoint = readers.get(path);
  if (!endpoint) throw new Error(`there is no ${path}`);
  const { breakdown, reader } = endpoint;
  const { range, ...others } = reader.parse(JSON.stringify({ ...march, ...asked }));
  const plan = planReport(catalog, breakdown, account, range, routing, others);
  if (plan.options.moment !== undefined) {
    return { ...plan, past: { changed, rewrites: '', lastChange: '' } };
  }
  return asked.as_of === undefined ? plan : closedPlan(plan, ['a'.repeat(64), 'b'.repeat(64)]);
}

const undated = '/v1/campaigns/breakdowns/creative';
const dated = '/v1/ad_units/breakdowns/site_date';
const cases: Record<string, readonly [path: string, asked: AskedOfStore]> = {
  filters: [dated, { filters: { site: ['A', 'B'], ad_unit_id: ['u'] } }],
  'filters-finer': [dated, { filters: { device: ['mobile'] } }],
  metrics: [undated, { metrics: ['cpc', 'impressions'] }],
  order_by: [dated, { order_by: [{ field: 'fill_rate', direction: 'desc' }, { field: 'site' }] }],
  'order_by-undated': [undated, { order_by: [{ field: 'start_time' }, { field: 'cpc', direction: 'desc' }] }],
  limit: [dated, { limit: 10 }],
  totals: [dated, { totals: true }],
  'totals-undated': [undated, { totals: true, limit: 10 }],
  time_grain: [dated, { time_grain: 'week' }],
  changed_since: [dated, { changed_since: '2026-03-02T08:00:00.5+01:00' }],
  as_of: [dated, { as_of: 'closed', filters: { site: ['A'] }, totals: true }],
  'as_of-finest': ['/v1/ad_units/breakdowns/device_site_date', { as_of: 'closed' }],
  'as_of-coarsest': ['/v1/campaigns', { as_of: 'closed', metrics: ['spent'] }],
  'as_of-compare_to': [
    undated,
    { as_of: 'closed', compare_to: 'previous_month', metrics: ['spent'], totals: true },
  ],
  'as_of-moment': [dated, { as_of: '2026-04-03T09:00:00Z', filters: { site: ['A'] }, totals: true }],
  'as_of-moment-compare_to': [
    undated,
    { as_of: '2026-04-03T11:00:00.5+02:00', compare_to: 'previous_month', metrics: ['spent'] },
  ],
  'compare_to-undated': [
    undated,
    {
      ...{ compare_to: 'previous_year', metrics: ['spent'] },
      order_by: [{ field: 'cpc_change', direction: 'desc' }],
    },
  ],
  compare_to: [dated, { compare_to: 'previous_period', time_grain: 'month', totals: true }],
  'time_grain-late': [dated, { time_grain: 'month', start_time: '2149-06-01', end_time: '2300-01-01' }],
};

describe('the statements of optional fields', () => {
  it.each(Object.keys(cases))('%s are those that were reviewed', async (name) => {
    const [path = '', asked = {}] = cases[name] ?? [];
    const plan = planOf(path, asked);
    const statements = [compileReport(plan, envelope), compileSummary(plan)];
    if (asked.as_of !== undefined) statements.push(compileUnconfirmedDates(plan));
    const text = `-- POST ${path}\n-- ${JSON.stringify(asked)}\n\n${statements.map(readable).join('\n\n')}\n`;
    await expect(text).toMatchFileSnapshot(`golden/options/${name}.sql`);
  });

  it('of a moment after which nothing changed read the rollup alone, in its order', () => {
    const moment = '2026-04-03T09:00:00Z';
    const { query, settings } = compileReport(planOf(dated, { as_of: moment }, undefined, []), envelope);
    expect(query).toContain('FROM ad_units_site_date AS r FINAL PREWHERE');
    expect(query).not.toMatch(/ GROUP BY day| FROM events|UNION/);
    expect(settings).toMatchObject({ query_plan_execute_functions_after_sorting: 0 });
  });

  it.each<[string, ReportFormatName, string, AskedOfStore]>([
    ['sheet', 'xlsx', dated, { time_grain: 'week', totals: true }],
    ['sheet-undated', 'xlsx', undated, { ids: true, metrics: ['impressions', 'spent', 'cpc'] }],
    [
      'sheet-early',
      'xlsx',
      undated,
      { start_time: '1900-02-28', end_time: '1900-03-01', metrics: ['spent'] },
    ],
    ['sheet-compare_to', 'xlsx', dated, { compare_to: 'previous_month', metrics: ['rtr', 'impressions'] }],
    ['parquet', 'parquet', dated, { compare_to: 'previous_month', metrics: ['rtr', 'impressions'] }],
    ['parquet-undated', 'parquet', undated, { metrics: ['impressions', 'spent'], totals: true }],
    ['csv', 'csv', undated, { limit: 3 }],
    ['ndjson', 'ndjson', dated, { limit: 3 }],
    ['arrow', 'arrow', dated, { time_grain: 'month' }],
  ])('%s is what was reviewed', async (name, format, path, asked) => {
    const statement = compileReport(planOf(path, asked), envelope, format);
    const text = `-- POST ${path}\n-- ${JSON.stringify(asked)}\n\n${readable(statement)}\n`;
    await expect(text).toMatchFileSnapshot(`golden/options/${name}.sql`);
  });

  it.each(['campaigns', 'ad_units'])(
    'what changed in %s since a close is what was reviewed',
    async (family) => {
      const fields = { ...march, filters: { device: ['mobile'] }, limit: 5, totals: true };
      const { range, ...asked } = adjustmentsRequest(
        catalog,
        family,
        adjustmentsBody(catalog, family).parse(fields),
      );
      const plan = planReport(catalog, closedBreakdown(catalog, family), account, range, undefined, asked);
      const adjusted = { ...plan, adjusted: ['a'.repeat(64)] };
      const byLoad = {
        ...{ ...adjusted, options: { ...adjusted.options, by_load: true as const } },
        closedAt: '{202603:1}',
      };
      const statements = [
        ...[compileReport(adjusted, undefined), compileSummary(adjusted)],
        compileReport(byLoad, undefined),
      ];
      const text = `-- POST /v1/${family}/adjustments\n-- ${JSON.stringify(fields)}\n\n${statements.map(readable).join('\n\n')}\n`;
      await expect(text).toMatchFileSnapshot(`golden/options/${family}-adjustments.sql`);
    },
  );

  it.each(paths)('%s read only what the account owns, in every combination', (path) => {
    for (const { query, settings } of statementsOf(path)) {
      const conditions = ['first', 'compared_first'].map(
        (first) =>
          `WHERE account_id = {account:String} AND day BETWEEN {${first}:Date} AND {${first.replace('first', 'last')}:Date}`,
      );
      const tables = query.match(/FROM \w+/g) ?? [];
      const read = conditions.reduce((count, condition) => count + query.split(condition).length - 1, 0);
      expect(tables.length, query).toBeGreaterThan(0);
      expect(read, query).toBe(tables.length);
      expect(query).not.toMatch(/\bOR\b/);
      for (const table of tables) {
        expect(settings.additional_table_filters).toContain(`'${table.replace('FROM ', '')}':'account_id = `);
      }
    }
  });

  it.each([{ closed: ['a'] }, { adjusted: ['a'] }, { options: { as_of: 'closed' } }])(
    'a plan of a close reads only what the account owns of closes: %o',
    (ofClose) => {
      const { settings } = compileSummary({ ...planOf(dated, {}), ...ofClose });
      for (const table of ['ad_units_closed', 'closes']) {
        expect(settings.additional_table_filters).toContain(`'${table}':'account_id = `);
      }
    },
  );

  it.each(paths)('%s hold values in their parameters only', (path) => {
    for (const { query, settings } of statementsOf(path)) {
      expect(query).not.toMatch(/o'hare|2026|1 = 1|LIMIT \d/);
      expect(JSON.stringify(settings)).not.toMatch(/o'hare|1 = 1/);
    }
  });

  it('a filter reads the coarsest rollup that has what it compares', () => {
    const tableOf = (path: string, filters: Asked['filters'] = {}) =>
      compileReport(planOf(path, { filters }), envelope).query.match(/FROM (\w+_date)/)?.[1];
    expect(tableOf('/v1/campaigns', { campaign: ['x'] })).toBe('campaigns_date');
    expect(tableOf('/v1/campaigns', { device: ['x'] })).toBe('campaigns_device_date');
    expect(tableOf('/v1/campaigns', { creative_headline: ['x'] })).toBe('campaigns_creative_date');
    expect(tableOf('/v1/campaigns/breakdowns/device', { creative_id: ['x'] })).toBe(
      'campaigns_device_creative_date',
    );
    expect(tableOf('/v1/ad_units/breakdowns/site_date', { device: ['x'], site_id: ['y'] })).toBe(
      'ad_units_device_site_date',
    );
  });

  it('requests that mean the same are one plan, and others are not', () => {
    const plan = (asked: Asked) => JSON.stringify(planOf(dated, asked));
    expect(plan({ filters: {}, order_by: [], totals: false, time_grain: 'day' })).toBe(plan({}));
    expect(plan({ filters: { device: ['b', 'a', 'b'] } })).toBe(plan({ filters: { device: ['a', 'b'] } }));
    expect(plan({ order_by: [{ field: 'rtr' }] })).toBe(
      plan({ order_by: [{ field: 'rtr', direction: 'asc' }] }),
    );
    const others: Asked[] = [
      ...[{}, { limit: 1 }, { limit: 2 }, { totals: true }, { metrics: ['rtr', 'cpm'] }],
      ...[{ metrics: ['cpm', 'rtr'] }, { filters: { site: ['a'] } }, { filters: { site_id: ['a'] } }],
      { compare_to: 'previous_period' },
    ];
    expect(new Set(others.map(plan)).size).toBe(others.length);
  });
});

/** The statements of a path without optional fields, and with every combination of them. */
function statementsOf(path: string): ReadStatement[] {
  const entity = path.startsWith('/v1/campaigns') ? 'campaign' : 'ad_unit';
  const values: Required<Asked> = {
    filters: { device: [hostile], [entity]: [hostile] },
    metrics: ['cpm'],
    order_by: [{ field: entity, direction: 'desc' }, { field: 'impressions' }],
    limit: 7,
    totals: true,
    ids: true,
    time_grain: 'month',
    compare_to: 'previous_year',
  };
  const routings = [undefined, { shards: 'one', database: 'd' }, { shards: 'all', database: 'd' }] as const;
  return [[], ...everyCombination()].flatMap((names) => {
    const chosen = names.filter((name) => name !== 'time_grain' || path.endsWith('date'));
    const asked: Asked = Object.fromEntries(chosen.map((name) => [name, values[name]]));
    return routings.flatMap((routing) => {
      const plan = planOf(path, asked, routing);
      return [compileReport(plan, envelope), compileSummary(plan), compileUnconfirmedDates(plan)];
    });
  });
}
