import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Store } from '../../../clickhouse/client.ts';
import { addDays } from '../../report/days.ts';
import { allSynced } from '../command/synced.ts';

/** A made-up network: two advertisers, two publishers, and what they own. Ids derive from names. */
const advertisers = [
  {
    account: 'northwind-outdoor',
    campaigns: [
      'Winter Boots',
      'Family Camping',
      'Trail Running',
      'Cart Reminder',
      'Gift Cards',
      'Brand 2026',
    ],
    headlines: [
      'Warm feet, any weather',
      'Sleep under the stars',
      'Run further',
      'Still thinking about it?',
      '−20 % this week',
    ],
  },
  {
    account: 'luma-cosmetics',
    campaigns: ['Hydra Serum Launch', 'Sun Care', 'Holiday Sets', 'Lip Colours'],
    headlines: ['Glow in seven days', 'SPF 50, no white cast', 'Wrapped and ready', 'Café crème or rosé?'],
  },
];
const publishers = [
  {
    account: 'daily-harbor',
    adUnits: ['Home Billboard', 'Article Inline', 'Sidebar Rectangle', 'Newsletter Slot'],
    sites: ['Harbor News', 'Harbor Sport', 'Harbor Money', 'Harbor Travel', 'Harbor Weather'],
  },
  {
    account: 'pixelplay-games',
    adUnits: ['Level End Interstitial', 'Rewarded Video', 'Lobby Banner'],
    sites: ['Block Blast', 'Tower Farm', 'Word Garden', 'Night Racer'],
  },
];

/** Accounts of the sample, an advertiser and a publisher first. */
export const sampleAccounts = ['northwind-outdoor', 'daily-harbor', 'luma-cosmetics', 'pixelplay-games'];

/** How many of the latest days stay unconfirmed. */
const unconfirmedDays = 9;

const days = 90;
const events = 500_000;

/**
 * Writes a sample as files that the loader reads: `events.csv.gz`, one list of names for each table
 * and `confirmations.csv`. The folder appears complete or not at all; equal days give equal files.
 * @param lastDay `yyyy-mm-dd` of the last day with events
 */
export async function writeSample(store: Store, folder: string, lastDay: string): Promise<void> {
  const draft = `${folder}.${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  await Promise.all([
    writeEvents(store, join(draft, 'events.csv.gz'), lastDay),
    ...Object.entries(lists(lastDay)).map(([name, rows]) =>
      writeFile(join(draft, `${name}.csv`), rows.map((row) => `${row.map(csvField).join(',')}\n`).join('')),
    ),
  ]);
  await allSynced(draft);
  await rename(draft, folder);
}

async function writeEvents(store: Store, file: string, lastDay: string): Promise<void> {
  const { stream } = await store.exec({
    query: `${sampleQuery(lastDay)} FORMAT CSVWithNames`,
    clickhouse_settings: { enable_http_compression: 1, max_threads: 1 },
    http_headers: { 'Accept-Encoding': 'gzip' },
    decompress_response_stream: false,
  });
  await pipeline(stream, createWriteStream(file));
}

function lists(lastDay: string): Record<string, string[][]> {
  const confirmed = Array.from({ length: days - unconfirmedDays }, (_, n) => addDays(lastDay, n + 1 - days));
  return {
    campaigns: [
      ['account_id', 'campaign_id', 'name'],
      ...advertisers.flatMap(({ account, campaigns }) =>
        campaigns.map((name) => [account, slug(name), name]),
      ),
    ],
    creatives: [
      ['account_id', 'creative_id', 'headline'],
      ...advertisers.flatMap(({ account, campaigns, headlines }) =>
        campaigns.flatMap((name) => headlines.map((text, n) => [account, `${slug(name)}-${n + 1}`, text])),
      ),
    ],
    ad_units: [
      ['account_id', 'ad_unit_id', 'name'],
      ...publishers.flatMap(({ account, adUnits }) => adUnits.map((name) => [account, slug(name), name])),
    ],
    sites: [
      ['account_id', 'site_id', 'name'],
      ...publishers.flatMap(({ account, sites }) => sites.map((name) => [account, slug(name), name])),
    ],
    confirmations: [
      ['account_id', 'day'],
      ...sampleAccounts.flatMap((account) => confirmed.map((day) => [account, day])),
    ],
  };
}

/** Line n depends on n and the last day alone. Squares of uniform numbers make the first names the big ones. */
function sampleQuery(lastDay: string): string {
  const uniform = (salt: number) => `(cityHash64(number, 1, ${salt}) % 1000003 / 1000003)`;
  const skewed = (salt: number, values: string) =>
    `${values}[1 + toUInt32(pow(${uniform(salt)}, 2) * length(${values}))]`;
  const texts = (values: readonly string[]) => `[${values.map((value) => `'${value}'`).join(', ')}]`;
  const groups = (values: readonly (readonly string[])[]) =>
    `[${values.map((group) => texts(group.map(slug))).join(', ')}]`;
  const creatives = `[${advertisers.map(({ headlines }) => headlines.length).join(', ')}]`;
  return `
WITH
  toDate('${lastDay}') - toUInt32(${uniform(1)} * ${days}) AS day,
  toUInt32(${uniform(2)} * 86400) AS second,
  if(${uniform(3)} < 0.7, 1, 2) AS advertiser,
  if(${uniform(4)} < 0.6, 1, 2) AS publisher,
  ${uniform(5)} AS kind,
  multiIf(kind < 0.34, 'ad_request', kind < 0.86, 'impression', kind < 0.975, 'referral', kind < 0.998, 'conversion', 'revenue') AS type,
  type != 'ad_request' AS sold,
  [1.0, 1.05, 1.05, 1.1, 1.2, 0.8, 0.7][toDayOfWeek(day)] * (0.4 + sin(pi() * second / 86400)) AS demand,
  ${groups(advertisers.map(({ campaigns }) => campaigns))}[advertiser] AS campaigns,
  ${skewed(6, 'campaigns')} AS campaign,
  ${groups(publishers.map(({ adUnits }) => adUnits))}[publisher] AS ad_units,
  ${groups(publishers.map(({ sites }) => sites))}[publisher] AS sites,
  toUInt32(greatest(1, multiIf(type = 'ad_request', 60, type = 'impression', 24, 1) * demand * ${uniform(7)} * 2)) AS many,
  multiIf(type = 'impression', many * (1.5 + 6 * ${uniform(8)}) / 1000, type = 'revenue', -${uniform(9)}, 0) AS price
SELECT
  concat('sample-', toString(number)) AS event_id,
  formatDateTime(toDateTime(day, 'UTC') + second, '%Y-%m-%dT%H:%i:%SZ', 'UTC') AS event_time,
  type AS event_type,
  if(sold, ${texts(advertisers.map(({ account }) => account))}[advertiser], '') AS advertiser_id,
  if(sold, campaign, '') AS campaign_id,
  if(sold, concat(campaign, '-', toString(1 + toUInt32(pow(${uniform(10)}, 2) * ${creatives}[advertiser]))), '') AS creative_id,
  ${texts(publishers.map(({ account }) => account))}[publisher] AS publisher_id,
  ${skewed(11, 'ad_units')} AS ad_unit_id,
  ${skewed(12, 'sites')} AS site_id,
  multiIf(${uniform(13)} < 0.58, 'mobile', ${uniform(13)} < 0.91, 'desktop', 'tablet') AS device,
  many AS quantity,
  toDecimal64(price, 6) AS spend,
  toDecimal64(price * 0.68, 6) AS revenue
FROM numbers(${events})`;
}

function slug(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}

function csvField(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
