import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Store } from '../../clickhouse/client.ts';
import { insertSingles, singleFields } from './events.ts';
import { network } from './network.ts';

/** Accounts whose sizes, and how often they ask, follow Zipf's law: the n-th has and asks for a share of 1/n. */
export const crowd = { accounts: 1_000, campaigns: 5 } as const;

/** The n-th account, from 1. */
export const accountName = (n: number) => `crowd-${n}`;

/** One of the crowd by Zipf's law. @param uniform from 0 to 1 */
export function drawAccount(uniform: number): string {
  return accountName(Math.min(crowd.accounts, Math.floor(crowd.accounts ** uniform)));
}

export interface CrowdEvents {
  /** The number of the first event: others have other ids. */
  readonly from: number;
  readonly events: number;
  /** Of the year, the last ones. */
  readonly days: number;
}

/** A year of events of the crowd, inserted as one would by hand. */
export async function insertCrowd(store: Store, events: CrowdEvents): Promise<void> {
  await store.command({ query: insertSingles(`(${select(events)})`) });
}

/** A file that the loader loads, NDJSON. */
export async function writeCrowdFile(store: Store, file: string, events: CrowdEvents): Promise<void> {
  const time = "formatDateTime(event_time, '%Y-%m-%dT%H:%i:%SZ', 'UTC')";
  const { stream } = await store.exec({
    query: `SELECT * REPLACE (${time} AS event_time) FROM (${select(events)}) FORMAT JSONEachRow`,
    clickhouse_settings: { output_format_json_quote_decimals: 0 },
  });
  await pipeline(stream, createWriteStream(file));
}

function select({ from, events, days }: CrowdEvents): string {
  const uniform = (salt: number) => `(cityHash64(number, ${salt}) % 1000003 / 1000003)`;
  return `SELECT ${singleFields.join(', ')} FROM (SELECT concat('crowd-event-', toString(number)) AS event_id,
      toDateTime64(toDate('${network.lastDay}') - toUInt32(${uniform(1)} * ${days}), 3, 'UTC') + toIntervalSecond(number % 86400) AS event_time,
      ['impression', 'impression', 'impression', 'referral', 'conversion'][1 + cityHash64(number, 2) % 5] AS event_type,
      toUInt32(least(${crowd.accounts}, floor(pow(${crowd.accounts}, ${uniform(3)})))) AS account,
      concat('crowd-', toString(account)) AS advertiser_id,
      concat('campaign-', toString(account), '-', toString(cityHash64(number, 4) % ${crowd.campaigns})) AS campaign_id,
      concat('creative-', toString(cityHash64(number, 5) % 4)) AS creative_id,
      advertiser_id AS publisher_id, campaign_id AS ad_unit_id, creative_id AS site_id,
      ['${network.devices.join("', '")}'][1 + cityHash64(number, 6) % 3] AS device, toUInt32(1) AS quantity,
      toDecimal64(cityHash64(number, 7) % 9000 / 1000000, 6) AS spend, spend AS revenue, ${uniform(8)} < 0.9 AS confirmed
    FROM numbers(${from}, ${events}))`;
}
