import type { TestService } from './service.ts';

/** A row of a report by day: the day, the campaign or ad unit, its counts, and its money. */
type DayRow = readonly [day: string, name: string, ...figures: number[]];

export interface Example {
  /** Beside the mapping, in examples/. */
  readonly data: string;
  /** Whose reports: those of advertisers are by campaign, those of publishers by ad unit. */
  readonly side: 'advertiser_id' | 'publisher_id';
  /** The account, where a column says it. */
  readonly account?: string;
  /** Records that the condition leaves out. */
  readonly leftOut: number;
  /** Impressions, referrals, conversions and spend of a campaign; ad requests, impressions, referrals and revenue of an ad unit. */
  readonly rows: readonly DayRow[];
}

const advertiser = 'advertiser_id';
const publisher = 'publisher_id';

/** What each example comes to, added up by hand. */
export const examples: Readonly<Record<string, Example>> = {
  'google-ads': {
    ...{ data: 'google-ads.csv', side: advertiser, leftOut: 2 },
    rows: [
      ['2026-09-01', '21570001234', 19734, 1297, 39, 353.55],
      ['2026-09-01', '21570005678', 406, 12, 0, 6.96],
      ['2026-09-02', '21570001234', 1180, 79, 5, 26.07],
      ['2026-09-02', '21570005678', 61972, 2051, 64, 1128.05],
    ],
  },
  'meta-ads': {
    ...{ data: 'meta-ads.csv', side: advertiser, leftOut: 1 },
    rows: [
      ['2026-09-01', '120210000000010101', 5860, 63, 3, 67.21],
      ['2026-09-02', '120210000000010101', 7796, 146, 10, 98.95],
    ],
  },
  'microsoft-ads': {
    ...{ data: 'microsoft-ads.csv', side: advertiser, leftOut: 1 },
    rows: [
      ['2026-09-01', '404100001', 2057, 105, 8, 32.34],
      ['2026-09-02', '404100001', 1180, 79, 5, 26.07],
      ['2026-09-02', '404100002', 406, 12, 0, 6.96],
    ],
  },
  'tiktok-ads': {
    ...{ data: 'tiktok-ads.csv', side: advertiser, leftOut: 1 },
    rows: [
      ['2026-09-01', '1780000000000001', 10000, 132, 4, 41.2],
      ['2026-09-02', '1780000000000001', 9489, 131, 3, 38.05],
      ['2026-09-02', '1780000000000002', 1100, 11, 0, 5.5],
    ],
  },
  'amazon-ads': {
    ...{ data: 'amazon-ads.csv', side: advertiser, leftOut: 0 },
    rows: [
      ['2026-09-01', 'SP Boots Auto', 13336, 51, 9, 31.5],
      ['2026-09-02', 'SP Boots Exact', 1915, 22, 3, 1201.42],
    ],
  },
  'linkedin-ads': {
    ...{ data: 'linkedin-ads.csv', side: advertiser, leftOut: 0 },
    rows: [
      ['2026-09-01', '310000001', 30211, 190, 12, 1204.5],
      ['2026-09-02', '310000001', 8140, 51, 2, 310.25],
      ['2026-09-02', '310000002', 1655, 9, 0, 88],
    ],
  },
  'pinterest-ads': {
    ...{ data: 'pinterest-ads.data.json', side: advertiser, leftOut: 0 },
    rows: [
      ['2026-09-01', '626700000001', 4120, 62, 3, 12.5],
      ['2026-09-02', '626700000001', 3377, 41, 1, 9.870001],
      ['2026-09-02', '626700000002', 150, 2, 0, 0.4305],
    ],
  },
  'reddit-ads': {
    ...{ data: 'reddit-ads.data.json', side: advertiser, leftOut: 0 },
    rows: [
      ['2026-09-01', '2200000000000000001', 20511, 133, 0, 41.25],
      ['2026-09-02', '2200000000000000001', 18002, 120, 0, 38.1205],
      ['2026-09-02', '2200000000000000002', 990, 4, 0, 1.99],
    ],
  },
  'x-ads': {
    ...{ data: 'x-ads.csv', side: advertiser, leftOut: 0 },
    rows: [
      ['2026-09-01', 'abc12', 8311, 44, 0, 21.75],
      ['2026-09-02', 'abc12', 7720, 39, 0, 19.9],
      ['2026-09-02', 'abc34', 420, 5, 0, 3.1],
    ],
  },
  'apple-search-ads': {
    ...{ data: 'apple-search-ads.csv', side: advertiser, leftOut: 1 },
    rows: [
      ['2026-09-01', '1400000001', 331, 30, 3, 20.65],
      ['2026-09-02', '1400000001', 290, 28, 2, 18.1],
      ['2026-09-02', '1400000002', 144, 11, 3, 46.25],
    ],
  },
  'snapchat-ads': {
    ...{ data: 'snapchat-ads.csv', side: advertiser, leftOut: 0 },
    rows: [
      ['2026-09-01', '7d2f0000-0000-4000-8000-000000000001', 9120, 77, 2, 25.4],
      ['2026-09-02', '7d2f0000-0000-4000-8000-000000000001', 8870, 71, 0, 24.95],
      ['2026-09-02', '7d2f0000-0000-4000-8000-000000000002', 1540, 30, 1, 8],
    ],
  },
  taboola: {
    ...{ data: 'taboola.data.json', side: advertiser, leftOut: 0 },
    rows: [
      ['2026-09-01', '5100001', 90120, 210, 6, 63.15],
      ['2026-09-02', '5100001', 81055, 184, 4, 55.2],
      ['2026-09-02', '5100002', 5400, 9, 0, 2.7],
    ],
  },
  criteo: {
    ...{ data: 'criteo.data.json', side: advertiser, account: '13001', leftOut: 0 },
    rows: [
      ['2026-09-01', '555001', 20170, 301, 9, 110.25],
      ['2026-09-02', '555001', 17030, 209, 5, 78.4],
      ['2026-09-02', '555002', 1534, 12, 0, 2.7],
    ],
  },
  dv360: {
    ...{ data: 'dv360.csv', side: advertiser, account: '4200001', leftOut: 4 },
    rows: [
      ['2026-09-01', '1900001', 51401, 64, 2, 143.922801],
      ['2026-09-02', '1900002', 9044, 12, 1, 90.44],
    ],
  },
  'ad-manager': {
    ...{ data: 'ad-manager.csv', side: publisher, leftOut: 0 },
    rows: [
      ['2026-09-01', '21700000001', 142411, 118332, 197, 257.279],
      ['2026-09-02', '21700000001', 49873, 40111, 49, 100.2775],
      ['2026-09-02', '21700000002', 310, 290, 0, 1.45025],
    ],
  },
  adsense: {
    ...{ data: 'adsense.csv', side: publisher, leftOut: 2 },
    rows: [
      ['2026-09-01', 'article-inline', 9120, 8841, 61, 20.63],
      ['2026-09-01', 'sidebar', 3300, 3104, 9, 1.84],
      ['2026-09-02', 'article-inline', 8730, 8402, 55, 18.66],
    ],
  },
  appsflyer: {
    ...{ data: 'appsflyer.csv', side: advertiser, leftOut: 1 },
    rows: [
      ['2026-09-01', '990001', 0, 0, 1, 1.5],
      ['2026-09-02', '990001', 0, 0, 1, 1.5],
      ['2026-09-02', '990002', 0, 0, 1, 0.8],
    ],
  },
  'web-log': {
    ...{ data: 'web-log.csv', side: advertiser, leftOut: 2 },
    rows: [
      // Half past midnight in the log's zone is the day before in UTC.
      ['2026-09-01', 'spring', 0, 3, 0, 0],
      ['2026-09-02', 'autumn', 0, 1, 0, 0],
    ],
  },
  placements: {
    ...{ data: 'placements.csv', side: advertiser, leftOut: 2 },
    rows: [
      ['2026-09-01', 'always-on', 4, 0, 0, 0],
      ['2026-09-01', 'spring-sale', 30041, 199, 23, 41.4717],
      ['2026-09-02', 'always-on', 8020, 12, 1, -1.25],
      ['2026-09-02', 'spring-sale', 14701, 158, 78, 28.9771],
    ],
  },
};

/** The rows of the report of an example's account. */
export async function reportByDay(service: TestService, { side }: Example, account: string) {
  const family = side === advertiser ? 'campaigns' : 'ad_units';
  const { rows } = await service.report(`/v1/${family}/breakdowns/date`, account, '2026-09-01', '2026-09-30');
  const columns =
    side === advertiser
      ? ['start_time', 'campaign', 'impressions', 'referrals', 'conversions', 'spent']
      : ['start_time', 'ad_unit', 'ad_requests', 'impressions', 'referrals', 'estimated_revenue'];
  return rows.map((row) => columns.map((column) => row[column]));
}
