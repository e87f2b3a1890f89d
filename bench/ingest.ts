import assert from 'node:assert/strict';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished, pipeline } from 'node:stream/promises';
import { type Address, connect, type Store, select } from '../clickhouse/client.ts';
import { migrate } from '../clickhouse/migrate.ts';
import { rollups } from '../clickhouse/rollups.ts';
import { loadEvents } from '../ingest/events.ts';
import { formats } from '../ingest/formats.ts';
import { eventFields } from '../ingest/statement.ts';
import { catalog } from '../src/catalog.ts';
import { type Comparison, compare } from './measure.ts';

/** The loader on a file of events, against one plain INSERT of the same file into the same tables and views. */
export async function ingest(address: Address, events: number, runs: number): Promise<Comparison[]> {
  const ours = { ...address, database: `${address.database}_ours` };
  const theirs = { ...address, database: `${address.database}_theirs` };
  const stores = {
    ours: connect(ours),
    theirs: connect(theirs),
    server: connect({ ...address, database: 'default' }),
  };
  const folder = await mkdtemp(join(tmpdir(), 'adtally-bench-'));
  const fresh = (target: Address) => async () => {
    await stores.server.command({ query: `DROP DATABASE IF EXISTS ${target.database} SYNC` });
    await migrate(target);
  };
  try {
    const comparisons: Comparison[] = [];
    for (const format of [formats.ndjson, formats.csv, formats.parquet]) {
      const file = join(folder, `events.${format.name}`);
      await writeEvents(stores.server, file, format.clickhouse, events);
      const load = async () => {
        await loadEvents({ store: stores.ours, file, chunkBytes: 192 << 20, now: () => new Date() });
      };
      const insert = async () => {
        const { stream } = await stores.theirs.exec({
          query: `INSERT INTO events (${eventFields.join(', ')}) FORMAT ${format.clickhouse}`,
          values: createReadStream(file, { highWaterMark: 1 << 20 }),
          clickhouse_settings: { date_time_input_format: 'best_effort' },
        });
        await finished(stream.resume());
      };
      comparisons.push(
        await compare(
          `${events} events, ${format.name}`,
          { name: 'adtally ingest', prepare: fresh(ours), run: load },
          { name: 'one plain INSERT', prepare: fresh(theirs), run: insert },
          runs,
        ),
      );
      assert.deepEqual(await totals(stores.ours), await totals(stores.theirs));
      await rm(file);
    }
    return comparisons;
  } finally {
    for (const target of [ours, theirs]) {
      await stores.server.command({ query: `DROP DATABASE IF EXISTS ${target.database} SYNC` });
    }
    await Promise.all(Object.values(stores).map((store) => store.close()));
    await rm(folder, { recursive: true, force: true });
  }
}

/** What every table came to: a load that is fast and loses a row must not be timed. */
async function totals(store: Store): Promise<unknown[]> {
  const tables = rollups(catalog).map(({ table }) => table);
  const sums = await Promise.all(
    tables.map((table) =>
      select(
        store,
        `SELECT sum(impressions) AS impressions, sum(referrals) AS referrals, '${table}' AS name FROM ${table}`,
      ),
    ),
  );
  return [...(await select(store, 'SELECT count() AS events, sum(spend) AS spend FROM events')), ...sums];
}

async function writeEvents(store: Store, file: string, format: string, events: number): Promise<void> {
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
      FROM numbers(${events}) FORMAT ${format}`,
    clickhouse_settings: { output_format_json_quote_decimals: 0, output_format_json_quote_64bit_integers: 0 },
  });
  await pipeline(stream, createWriteStream(file));
}
