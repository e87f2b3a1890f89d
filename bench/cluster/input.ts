import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Store } from '../../clickhouse/client.ts';

export const account = 'bench-advertiser';
export const range = { start: '2026-01-01', end: '2026-03-31' };
/** 90 days × 60 campaigns × 3 devices × 20 creatives, each in two parts that merge while they are read. */
export const reportRows = 324_000;

/** Fills the rollup of the most granular breakdown for one account. */
export async function fillRollup(store: Store): Promise<void> {
  for (let part = 0; part < 2; part++) {
    await store.command({
      query: `INSERT INTO campaigns_device_creative_date
        (account_id, day, campaign_id, device, creative_id, impressions, conversions, referrals, spent)
        SELECT '${account}', toDate('${range.start}') + number % 90, concat('campaign-', toString(intDiv(number, 90) % 60)),
               ['desktop', 'mobile', 'tablet'][1 + intDiv(number, 5400) % 3], concat('creative-', toString(intDiv(number, 16200))),
               cityHash64(number, ${part}) % 100000, cityHash64(number, 1) % 50, cityHash64(number, 2) % 1000,
               toDecimal64(cityHash64(number, 3) % 1000000 / 1000, 6)
        FROM numbers(${reportRows})`,
    });
  }
}

/** A file of events of one day, from a number on: 20 advertisers, 240 campaigns, 20 publishers. */
export async function writeEvents(
  store: Store,
  file: string,
  format: string,
  events: number,
  first = 0,
): Promise<void> {
  // Parquet carries a real time; text formats carry what exports usually do.
  const time = format === 'Parquet' ? 'time' : "concat(formatDateTime(time, '%Y-%m-%dT%H:%i:%S'), '.000Z')";
  const { stream } = await store.exec({
    query: `
      WITH cityHash64(number, 1) AS a, cityHash64(number, 2) AS b,
        toDateTime('2026-03-01 00:00:00', 'UTC') + b % 86400 AS time,
        ['ad_request', 'impression', 'impression', 'impression', 'referral', 'conversion'][1 + a % 6] AS type
      SELECT concat('event-', toString(number)) AS event_id, ${time} AS event_time, type AS event_type,
        concat('advertiser-', toString(toUInt32(sqrt(a % 400)))) AS advertiser_id,
        concat(advertiser_id, '-c', toString(b % 12)) AS campaign_id,
        concat(campaign_id, '-', toString(a % 8)) AS creative_id,
        concat('publisher-', toString(toUInt32(sqrt(b % 400)))) AS publisher_id,
        concat(publisher_id, '-u', toString(a % 10)) AS ad_unit_id,
        concat('site-', toString(b % 30)) AS site_id,
        ['desktop', 'mobile', 'tablet'][1 + b % 3] AS device, toUInt32(1) AS quantity,
        toDecimal64(if(type = 'impression', a % 9000 / 1000000, 0), 6) AS spend,
        toDecimal64(if(type = 'impression', b % 7000 / 1000000, 0), 6) AS revenue, false AS confirmed
      FROM numbers(${first}, ${events}) FORMAT ${format}`,
    clickhouse_settings: { output_format_json_quote_decimals: 0, output_format_json_quote_64bit_integers: 0 },
  });
  await pipeline(stream, createWriteStream(file));
}
