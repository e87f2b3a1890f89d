import { type LosslessNumber, parse, stringify } from 'lossless-json';
import { beforeAll, describe, expect, it } from 'vitest';
import { endpoints, familyOf } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { periodNames } from '../../src/report/days.ts';
import { filterFields } from '../../src/report/fields.ts';
import { type ReportFormatName, reportFormats } from '../../src/report/formats.ts';
import { type Asked, recountAsked } from './asked-oracle.ts';
import { type OptionName, optionNames } from './combinations.ts';
import { load, loadRows } from './events.ts';
import { lines, Oracle, paths, type Range, type Row } from './oracle.ts';
import type { UseStore } from './oracle-suite.ts';
import { seededRandom } from './random.ts';
import { randomEvents } from './random-events.ts';
import { type RowFormat, readers, tableOf } from './readers.ts';
import { type TestService, useService } from './service.ts';

const formats = (Object.keys(reportFormats) as ReportFormatName[]).filter(
  (name): name is RowFormat => name !== 'json',
);
const ranges: Range[] = [
  { start: '2026-02-01', end: '2026-02-28' },
  { start: '2026-02-11', end: '2026-03-17' },
];

/**
 * Recounts what the service answers about random events when it is asked with optional fields: each combination of one
 * account, of another one from path to path.
 */
export function recountAskedReports(
  useStore: UseStore,
  seed: number,
  combinations: (path: number) => OptionName[][],
  accounts: readonly string[] = ['both'],
): void {
  describe(`optional fields about random events of seed ${seed}`, () => {
    const test = useStore();
    const service = useService(test);
    const oracle = new Oracle();

    beforeAll(async () => {
      const events = randomEvents(seed, 1500);
      await load(test.store, events, 50_000);
      oracle.load(events);
      const names = ['both', 'both-2', 'advertiser', 'publisher'].flatMap((account) => [
        [account, 'c1', 'Same name'] as const,
        [account, 'c2', 'Same name'] as const,
        [account, '😀', `Quotes ' " \\ of ${account}`] as const,
      ]);
      for (const list of ['campaigns', 'creatives', 'ad_units', 'sites'] as const) {
        await loadRows(test.store, list, names);
        oracle.name(list, names);
      }
    });

    it.each(paths)('%s tells the same as a recount', async (path) => {
      const n = paths.indexOf(path);
      const random = seededRandom(seed + n);
      const asked = combinations(n).map((options) => askedFor(path, options, random));
      for (const [m, [range, options]] of asked.entries()) {
        const account = accounts[(n + m) % accounts.length] ?? 'both';
        const about = { service, path, account, range, options };
        const result = await expectRecount(oracle, about);
        const format = formats[(n + m) % formats.length];
        if (format) await expectSameRows(about, format, result);
      }
    });
  });
}

/** A range, and what is asked for beside it: values that some of the random events have, and some that none has. */
function askedFor(path: string, options: readonly OptionName[], random: () => number): [Range, Asked] {
  const endpoint = endpoints(catalog).find((candidate) => candidate.path === path);
  if (!endpoint) throw new Error(`there is no ${path}`);
  const { breakdown } = endpoint;
  const below = (limit: number) => Math.floor(random() * limit);
  const one = <T>(choices: readonly T[]): T => choices[below(choices.length)] as T;
  const some = <T>(choices: readonly T[], most: number): T[] =>
    choices
      .map((choice) => [random(), choice] as const)
      .sort(([a], [b]) => a - b)
      .slice(0, 1 + below(most))
      .map(([, choice]) => choice);
  const range = one(ranges);
  const metrics = familyOf(catalog, breakdown.family).columns;
  const compares = options.includes('compare_to');
  const valuesOf = (field: string) =>
    field === 'device'
      ? ['unknown', 'mobile', 'Mobile', 'none']
      : ['c1', 'c2', 'c10', '', 'é', 'Same name', `Quotes ' " \\ of both`, 'x😀', 'none'];
  const sortable = [
    'start_time',
    ...metrics,
    ...(compares ? metrics.flatMap((metric) => [`${metric}_compared`, `${metric}_change`]) : []),
    breakdown.family === 'campaigns' ? 'campaign' : 'ad_unit',
    ...breakdown.dimensions.flatMap((name) =>
      name === 'creative' ? ['creative_headline', 'creative_id'] : [name],
    ),
  ];
  const days = (Date.parse(range.end) - Date.parse(range.start)) / 86_400_000;
  const other = (start: string) => ({
    start_time: start,
    end_time: new Date(Date.parse(start) + days * 86_400_000).toISOString().slice(0, 10),
  });
  const fields = filterFields(catalog, breakdown.family).map(({ id }) => id);
  const values: Required<Asked> = {
    filters: Object.fromEntries(some(fields, 2).map((field) => [field, some(valuesOf(field), 4)])),
    metrics: some(metrics, metrics.length),
    order_by: some(sortable, 2).map((field) => ({ field, direction: one(['asc', 'desc'] as const) })),
    limit: one([1, 3, 40, 1_000]),
    totals: true,
    ids: true,
    time_grain: one(['week', 'month'] as const),
    compare_to: one([...periodNames, other('2026-01-25'), other('2026-03-01')]),
  };
  const chosen = optionNames.filter(
    (name) => options.includes(name) && (name !== 'time_grain' || breakdown.day),
  );
  return [range, Object.fromEntries(chosen.map((name) => [name, values[name]]))];
}

interface Result {
  rows: Row[];
  totals?: Row;
  row_count?: LosslessNumber;
  compare_to?: object;
  column_metadata: { id: string }[];
  unconfirmed_revenue_dates: string[];
}

/** A report that is asked for. */
interface AskedReport {
  readonly service: TestService;
  readonly path: string;
  readonly account: string;
  readonly range: Range;
  readonly options: Asked;
}

async function ask(
  { service, path, account, range, options }: AskedReport,
  format: ReportFormatName,
): Promise<Response> {
  const body = { start_time: range.start, end_time: range.end, ...options };
  const response = await service.post(path, account, body, { accept: reportFormats[format].mediaType });
  if (response.status === 200) return response;
  throw new Error(`${path} ${JSON.stringify(body)}: ${response.status} ${await response.text()}`);
}

async function expectRecount(oracle: Oracle, report: AskedReport): Promise<Result> {
  const { path, account, range, options } = report;
  const about = `${path} of ${account}: ${JSON.stringify({ ...range, ...options })}`;
  const { result } = parse(await (await ask(report, 'json')).text()) as { result: Result };
  const { rows, totals, row_count, compare_to, column_metadata } = result;
  const expected = recountAsked(oracle, path, account, range, options);
  expect(lines(rows), about).toEqual(lines(expected.rows));
  expect(totals && stringify(totals), about).toEqual(expected.totals && stringify(expected.totals));
  expect(row_count && Number(row_count.value), about).toEqual(expected.row_count);
  expect(compare_to, about).toEqual(expected.compare_to);
  if (rows[0]) expect(Object.keys(rows[0]), about).toEqual(column_metadata.map(({ id }) => id));
  const plain = oracle.report(path, account, range);
  expect(result.unconfirmed_revenue_dates, about).toEqual(plain.unconfirmed_revenue_dates);
  return result;
}

/** Another format has the rows of JSON, and its headers the rest. */
async function expectSameRows(report: AskedReport, format: RowFormat, result: Result): Promise<void> {
  const about = `${report.path} as ${format}: ${JSON.stringify({ ...report.range, ...report.options })}`;
  const response = await ask(report, format);
  const { headers } = response;
  const found = await readers[format](Buffer.from(await response.arrayBuffer()));
  // A sheet has the totals as its last row.
  const last = format === 'xlsx' && result.totals ? found.rows.at(-1) : undefined;
  expect(last ? found.rows.slice(0, -1) : found.rows, about).toEqual(tableOf(result.rows).rows);
  if (last && result.totals) {
    const figures = Object.values(result.totals).map(String);
    const blank = Array.from({ length: last.length - figures.length - 1 }, () => '');
    expect(last, about).toEqual(['Total', ...blank, ...figures]);
  }
  if (result.rows.length > 0 || format !== 'ndjson') {
    expect(found.columns, about).toEqual(result.column_metadata.map(({ id }) => id));
  }
  const totals = Object.entries(result.totals ?? {}).map(([id, value]) => `${id}="${value}"`);
  const days = result.compare_to && `"${Object.values(result.compare_to).join('/')}"`;
  expect(headers.get('adtally-totals'), about).toBe(result.totals ? totals.join(', ') : null);
  expect(headers.get('adtally-row-count'), about).toBe(result.row_count?.value ?? null);
  expect(headers.get('adtally-compare-to'), about).toBe(days ?? null);
}
