/**
 * The synthetic ad network of the benchmark. Its number of keys does not depend on the number of events, so that the
 * same report at ten times the events has the same rows.
 */
export const network = {
  firstDay: '2025-01-01',
  lastDay: '2025-12-31',
  days: 365,
  devices: ['mobile', 'desktop', 'tablet'],
  /** Campaigns of the very large advertiser, and ad units of the very large publisher. */
  largeEntities: 30,
  /** Creatives of each of these campaigns, and sites of each of these ad units. */
  largeParts: 10,
  smallAccounts: 100,
  /** Creatives of a small advertiser's only campaign, and sites of a small publisher's only ad unit. */
  smallParts: 2,
} as const;

const large = network.largeEntities * network.largeParts;

/** Combinations of campaign and creative, and as many of ad unit and site: the large account's, then the others'. */
export const pairs = { large, all: large + network.smallAccounts * network.smallParts };

/** Rows of the most granular report of a large account over the whole year, once every key has an event. */
export const largestReportRows = pairs.large * network.devices.length * network.days;

/** With at least this many events, every key of the network has one. */
export const eventsForEveryKey = 1_000_000;

export interface Period {
  /** `yyyy-mm-dd` */
  readonly start: string;
  readonly end: string;
}

/** The last days of the year. */
export function lastDays(days: number): Period {
  const start = new Date(Date.parse(network.lastDay) - (days - 1) * 86_400_000);
  return { start: start.toISOString().slice(0, 10), end: network.lastDay };
}

const accounts = {
  advertiser: { large: 'advertiser-0', small: `advertiser-${network.smallAccounts}` },
  publisher: { large: 'publisher-0', small: `publisher-${network.smallAccounts}` },
} as const;

/** The large or the small account that a report family belongs to. */
export function accountOf(family: string, size: 'large' | 'small'): string {
  return accounts[family === 'ad_units' ? 'publisher' : 'advertiser'][size];
}
