import { type Breakdown, familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog, Dimension, DimensionColumnId, Measure } from '../../../catalog/catalog.ts';
import type { Amount } from '../../../catalog/events.ts';
import { type RowColumn, rowColumns } from '../../report/columns.ts';
import { rowKeys } from '../../report/explain/explain-request.ts';
import { changeId } from '../../report/fields.ts';

/** The request that all examples answer. */
export const exampleRequest = { start_time: '2026-10-01', end_time: '2026-10-31' };

/** The ten rows whose last figure grew most on mobile devices since the month before. */
export const exampleOptions = (metrics: readonly string[]) => ({
  ...exampleRequest,
  filters: { device: ['mobile'] },
  metrics: metrics.slice(-2),
  compare_to: 'previous_period',
  order_by: [{ field: changeId(metrics.at(-1) ?? ''), direction: 'desc' }],
  limit: 10,
  totals: true,
});

/** The options as an address writes them. */
export const exampleParameters = (metrics: readonly string[]): Readonly<Record<string, string>> => ({
  ...exampleRequest,
  metrics: metrics.join(','),
  order_by: `-${metrics.at(-1)}`,
  changed_since: '2026-10-02T08:00:00Z',
  as_of: 'closed',
  compare_to: '2026-09-01/2026-09-30',
});

export const exampleChanges = {
  request: { changed_since: '2026-11-20T08:00:00Z' },
  answer: {
    result: {
      changed_until: '2026-11-21T07:59:12.123456Z',
      names_changed_at: '2026-11-03T16:20:41.070312Z',
      days: [
        { day: '2026-10-31', changed_at: '2026-11-20T22:14:03.512809Z', unconfirmed: false },
        { day: '2026-11-20', changed_at: '2026-11-21T03:02:55.904113Z', unconfirmed: true },
      ],
    },
  },
};

export const exampleCloses = {
  result: {
    closes: [
      {
        month: '2026-10',
        revision: '4c2b3f0f6f0f6d0f8a7c7e0c5f7c1f3f2a9f5d1c0b8e4a6d2c1f9e7b5a3d1c0f',
        previous: null,
        closed_at: '2026-11-05T09:00:00.000000Z',
        unconfirmed_revenue_dates: [],
      },
    ],
  },
};

/** Two rows of a closed month: late events, and a correction that takes some back. */
export function exampleAdjustments(catalog: Catalog, breakdown: Breakdown) {
  const { measures } = familyOf(catalog, breakdown.family);
  const columns = rowColumns(catalog, breakdown, { ids: true, metrics: Object.keys(measures) });
  const row = (n: number, day: string) =>
    Object.fromEntries(
      columns.map(({ id, source, type }) => {
        if (source.kind === 'range') return [id, day];
        if (source.kind === 'dimension') return [id, exampleTexts[id]?.[0] ?? `${id}-1`];
        return [id, type === 'Money' ? n / 4 : n];
      }),
    );
  return {
    last_update_time: exampleUpdateTime,
    rows: [row(12, '2026-10-30'), row(-3, '2026-10-31')],
    column_metadata: columns.map(({ id, type }) => ({ id, type })),
    unconfirmed_revenue_dates: exampleUnconfirmedDates,
  };
}

/** A row of two parts. */
export function exampleExplanation(catalog: Catalog, family: string) {
  const { measures } = familyOf(catalog, family);
  const [key = ''] = rowKeys(catalog, family);
  const figures = (n: number) =>
    Object.fromEntries(
      Object.entries(measures).map(([name, { type }]) => [name, type === 'Money' ? n / 4 : n]),
    );
  const part = (load: string, reason: string | null, n: number, confirmed_at: string | null) => ({
    kind: 'events',
    load,
    corrects: null,
    chunk: (reason === null ? 'a' : 'b').repeat(64),
    reason,
    chunks: 1,
    first_day: '2026-10-31',
    last_day: '2026-10-31',
    events: n,
    ...figures(n),
    loaded_at: `${load.slice(0, 4)}-${load.slice(4, 6)}-${load.slice(6, 8)}T02:10:00.000000Z`,
    unconfirmed: confirmed_at === null,
    confirmed_at,
  });
  const day = { start_time: '2026-10-31', end_time: '2026-10-31' };
  return {
    request: { ...day, row: { [key]: 'autumn', device: 'mobile' } },
    answer: {
      result: {
        row: figures(1_250),
        parts: [
          part('20261101021000-3f2a91c07', null, 1_200, '2026-11-02T08:00:00.000000Z'),
          part('20261103021000-8c1d20e44', 'makegood', 50, null),
        ],
      },
    },
  };
}

/** One figure that differs by what one day brought. */
export function exampleComparison(catalog: Catalog, family: string) {
  const [key = ''] = rowKeys(catalog, family);
  const day = { net: '-250', total: '250' };
  const none = { net: '0', total: '0' };
  return {
    result: {
      ...{ account: 'acme', family, from: '2026-10-01', to: '2026-10-31' },
      figures: { impressions: { ours: '8250', theirs: '8000', gap: day, unexplained: none } },
      explained: [
        {
          cause: 'missing_day',
          what: 'their report has nothing of 2026-10-31',
          about: { days: ['2026-10-31'], their_days: [] },
          figures: { impressions: day },
        },
      ],
      untried: [],
      unreadable: { records: 0, first: [] },
      rows: { equal: 30, within: 0, differs: 0, only_ours: 1, only_theirs: 0 },
      more_differences: 0,
      differences: [
        {
          ...{ day: '2026-10-31', [key]: 'autumn', name: 'Autumn', status: 'only_ours' },
          impressions: { ours: '250', theirs: '0', difference: '-250', unexplained: '0' },
        },
      ],
    },
  };
}

export const exampleUpdateTime = '2026-11-02 09:30:00 UTC';
export const exampleUnconfirmedDates = ['2026-10-30', '2026-10-31'];

export type ExampleRow = Readonly<Record<string, string | number>>;

/** Two values of each text field of a row. */
const texts = {
  campaign: ['Autumn sale', 'Winter boots'],
  ad_unit: ['Article top', 'Article sidebar'],
  device: ['desktop', 'mobile'],
  creative_headline: ['Free shipping until Sunday', 'New trails, new shoes'],
  creative_id: ['creative-1041', 'creative-1042'],
  site: ['The Daily Harbor', 'Harbor Weekend'],
} as const satisfies Readonly<Record<DimensionColumnId, readonly [string, string]>>;
export const exampleTexts: Readonly<Record<string, readonly [string, string]>> = texts;

const figures: Readonly<Record<Amount, readonly [number, number]>> = {
  ad_requests: [51_900, 20_412],
  impressions: [48_210, 18_975],
  referrals: [1_203, 391],
  conversions: [87, 24],
  spend: [312.45, 118.2],
  revenue: [164.208315, 61.75],
};

/** Two neighbouring rows of a breakdown; their ratios are those of their sums. */
export function exampleRows(catalog: Catalog, breakdown: Breakdown): ExampleRow[] {
  const family = familyOf(catalog, breakdown.family);
  const columns = rowColumns(catalog, breakdown);
  const lastDimension = columns
    .flatMap(({ source }) => (source.kind === 'dimension' ? source.dimension : []))
    .at(-1);
  return ([0, 1] as const).map((n) => {
    const sums = Object.fromEntries(
      Object.entries(family.measures).map(([id, measure]) => [id, sumOf(measure, n)]),
    );
    return Object.fromEntries(
      columns.map((column) => [column.id, exampleValue(column, breakdown, sums, lastDimension, n)]),
    );
  });
}

function exampleValue(
  { id, source }: RowColumn,
  { day }: Breakdown,
  sums: Readonly<Record<string, number>>,
  lastDimension: Dimension | undefined,
  n: 0 | 1,
): string | number {
  switch (source.kind) {
    case 'range':
      return id === 'start_time' || day ? exampleRequest.start_time : exampleRequest.end_time;
    case 'dimension':
      return exampleTexts[id]?.[source.dimension === lastDimension ? n : 0] ?? `${id} ${n + 1}`;
    case 'measure':
      return sums[id] ?? 0;
    case 'ratio': {
      const [numerator = 0, denominator = 0] = [sums[source.numerator], sums[source.denominator]];
      return denominator === 0 ? 0 : Math.round((source.times * numerator * 1e6) / denominator) / 1e6;
    }
    case 'load':
      return '';
    case 'change':
      return 0;
  }
}

function sumOf({ sumOf }: Measure, n: 0 | 1): number {
  return figures[sumOf][n];
}
