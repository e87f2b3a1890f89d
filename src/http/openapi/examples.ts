import { type Breakdown, familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog, Dimension, DimensionColumnId, Measure } from '../../../catalog/catalog.ts';
import type { Amount } from '../../../catalog/events.ts';
import { type RowColumn, rowColumns } from '../../report/columns.ts';

/** The request that all examples answer. */
export const exampleRequest = { start_time: '2026-10-01', end_time: '2026-10-31' };

/** The ten creatives on which most more was spent on mobile devices than in the month before. */
export const exampleOptions = {
  ...exampleRequest,
  filters: { device: ['mobile'], campaign: ['Autumn sale', 'Winter boots'] },
  metrics: ['spent', 'cpc'],
  compare_to: 'previous_period',
  order_by: [{ field: 'spent_change', direction: 'desc' }],
  limit: 10,
  totals: true,
};

export const exampleUpdateTime = '2026-11-02 09:30:00 UTC';
export const exampleUnconfirmedDates = ['2026-10-30', '2026-10-31'];

export type ExampleRow = Readonly<Record<string, string | number>>;

/** By row field. */
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
    case 'change':
      return 0;
  }
}

function sumOf({ sumOf }: Measure, n: 0 | 1): number {
  return figures[sumOf][n];
}
