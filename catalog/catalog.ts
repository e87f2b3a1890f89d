/**
 * The one list: report families, dimensions, measures and ratios. Data only.
 * Routes, schemas, SQL, column metadata and rollups derive from it or are checked against it.
 */

import type { Amount, Money } from './events.ts';

/** How a column is formatted, as `column_metadata` says it. */
export type ColumnType = 'String' | 'Date' | 'Money' | 'Numeric';

/** Where the text for an id comes from: a dictionary keyed by (account, id). */
export interface NameSource {
  readonly dictionary: string;
  readonly attribute: string;
  /** What an id without a loaded name shows. */
  readonly otherwise: 'id' | 'empty';
}

export interface DimensionColumn {
  readonly id: string;
  /** Absent: the column is the id itself. */
  readonly name?: NameSource;
}

/** A grouping field. `key` is its column in `events` and in the rollups. */
export interface Dimension {
  readonly key: string;
  readonly storage: 'String' | 'LowCardinality(String)';
  readonly columns: readonly DimensionColumn[];
}

/** A column of sums of what the events carry. */
export interface Measure {
  readonly sumOf: Amount;
  readonly type: ColumnType;
}

/** `times` · numerator / denominator, computed from the sums, last. */
export interface Ratio {
  readonly numerator: string;
  readonly denominator: string;
  readonly times: number;
  readonly type: ColumnType;
}

export interface Family {
  /** The events column that holds the owner of a row. */
  readonly owner: 'advertiser_id' | 'publisher_id';
  readonly entity: string;
  /** Breakdown dimensions, the one with fewest values first: a coarser rollup is built from the one that adds the first missing. */
  readonly dimensions: readonly string[];
  /** The events column whose unconfirmed amounts make a day unconfirmed. */
  readonly money: Money;
  readonly measures: Readonly<Record<string, Measure>>;
  readonly ratios: Readonly<Record<string, Ratio>>;
  /** Row fields after the dimensions, in the order of the contract's tables. */
  readonly columns: readonly string[];
}

export interface Catalog {
  readonly dimensions: Readonly<Record<string, Dimension>>;
  readonly families: Readonly<Record<string, Family>>;
  /** Path → path it is the same as. */
  readonly aliases: Readonly<Record<string, string>>;
}

const count = (sumOf: Amount): Measure => ({ sumOf, type: 'Numeric' });

const listed = {
  dimensions: {
    campaign: {
      key: 'campaign_id',
      storage: 'String',
      columns: [
        { id: 'campaign', name: { dictionary: 'campaign_names', attribute: 'name', otherwise: 'id' } },
      ],
    },
    ad_unit: {
      key: 'ad_unit_id',
      storage: 'String',
      columns: [{ id: 'ad_unit', name: { dictionary: 'ad_unit_names', attribute: 'name', otherwise: 'id' } }],
    },
    device: {
      key: 'device',
      storage: 'LowCardinality(String)',
      columns: [{ id: 'device' }],
    },
    creative: {
      key: 'creative_id',
      storage: 'String',
      columns: [
        {
          id: 'creative_headline',
          name: { dictionary: 'creative_headlines', attribute: 'headline', otherwise: 'empty' },
        },
        { id: 'creative_id' },
      ],
    },
    site: {
      key: 'site_id',
      storage: 'String',
      columns: [{ id: 'site', name: { dictionary: 'site_names', attribute: 'name', otherwise: 'id' } }],
    },
  },

  families: {
    campaigns: {
      owner: 'advertiser_id',
      entity: 'campaign',
      dimensions: ['device', 'creative'],
      money: 'spend',
      measures: {
        impressions: count('impressions'),
        conversions: count('conversions'),
        referrals: count('referrals'),
        spent: { sumOf: 'spend', type: 'Money' },
      },
      ratios: {
        cpa: { numerator: 'spent', denominator: 'conversions', times: 1, type: 'Money' },
        cpc: { numerator: 'spent', denominator: 'referrals', times: 1, type: 'Money' },
        cpm: { numerator: 'spent', denominator: 'impressions', times: 1000, type: 'Money' },
      },
      columns: ['cpa', 'cpc', 'cpm', 'impressions', 'conversions', 'referrals', 'spent'],
    },
    ad_units: {
      owner: 'publisher_id',
      entity: 'ad_unit',
      dimensions: ['device', 'site'],
      money: 'revenue',
      measures: {
        estimated_revenue: { sumOf: 'revenue', type: 'Money' },
        ad_requests: count('ad_requests'),
        impressions: count('impressions'),
        referrals: count('referrals'),
      },
      ratios: {
        cpm: { numerator: 'estimated_revenue', denominator: 'impressions', times: 1000, type: 'Money' },
        fill_rate: { numerator: 'impressions', denominator: 'ad_requests', times: 1, type: 'Numeric' },
        rtr: { numerator: 'referrals', denominator: 'impressions', times: 1, type: 'Numeric' },
      },
      columns: ['estimated_revenue', 'ad_requests', 'impressions', 'referrals', 'cpm', 'fill_rate', 'rtr'],
    },
  },

  aliases: {
    '/v1/ad_units/breakdowns/devices': '/v1/ad_units/breakdowns/device',
    '/v1/ad_units/breakdowns/devices_and_site': '/v1/ad_units/breakdowns/device_site',
  },
} as const satisfies Catalog;

export const catalog: Catalog = listed;

type Listed = typeof listed;
export type FamilyId = keyof Listed['families'];
export type DimensionId = keyof Listed['dimensions'];
type Of<Name extends 'measures' | 'ratios'> = {
  [F in FamilyId]: keyof Listed['families'][F][Name];
}[FamilyId];
export type RatioId = Of<'ratios'>;
/** A figure of a row. */
export type MetricId = Of<'measures'> | RatioId;
/** A column that a dimension adds to a row. */
export type DimensionColumnId = Listed['dimensions'][DimensionId]['columns'][number]['id'];
/** A dimension that rows may be broken down by. */
export type BreakdownId = Listed['families'][FamilyId]['dimensions'][number];
