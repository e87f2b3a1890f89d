import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { EventField } from '../../catalog/events.ts';
import type { Store } from '../../clickhouse/client.ts';
import type { Format } from '../../ingest/formats/format.ts';
import { formats } from '../../ingest/formats/formats.ts';
import { countOf, type Events, selectEvents, singleFields } from './events.ts';

/** As exports write it. */
const timeText = "formatDateTime(event_time, '%Y-%m-%dT%H:%i:%S.%fZ', 'UTC')";

/**
 * Has ClickHouse write generated events to a file. Every `badEvery`-th of them is faulty, in one of five ways that a
 * Parquet file with typed columns can have, too.
 * @param plain Parquet is neither packed nor written with dictionaries
 */
export async function writeEventFile(
  store: Store,
  file: string,
  format: Format,
  { badEvery, plain = false, ...events }: Events & { badEvery?: number; plain?: boolean },
): Promise<void> {
  const [time, badTime] = format.text
    ? [timeText, "'yesterday'"]
    : ['event_time', "toDateTime64(0, 3, 'UTC')"];
  const expressions: Partial<Record<EventField, string>> = {
    event_time: time,
    ...(badEvery && {
      event_time: `if(bad = 0, ${badTime}, ${time})`,
      event_type: "if(bad = 1, 'click', event_type)",
      ad_unit_id: "if(bad = 2, '', ad_unit_id)",
      device: "if(bad = 3, repeat('x', 40), device)",
      quantity: 'if(bad = 4, 0, quantity)',
    }),
  };
  const columns = singleFields.map((name) => `${expressions[name] ?? name} AS ${name}`).join(', ');
  const bad = badEvery
    ? `, rowNumberInAllBlocks() AS n, if(n % ${badEvery} = 0, intDiv(n, ${badEvery}) % 5, 255) AS bad`
    : '';
  const all = `SELECT *${bad} FROM (${selectEvents(events, 0, events.events)})`;
  await write(
    store,
    file,
    `SELECT ${columns} FROM (${all}) FORMAT ${format.clickhouse}`,
    plain
      ? {
          output_format_parquet_compression_method: 'none',
          output_format_parquet_max_dictionary_size: '0',
        }
      : {},
  );
}

/** The publishers' side of events as two CSV files: one event on each line, and the counts of a day on each line. */
export async function writeCountFiles(
  store: Store,
  { singles, counts }: { readonly singles: string; readonly counts: string },
  events: Events,
): Promise<void> {
  const keys = 'publisher_id, ad_unit_id, device';
  const from = `(${selectEvents(events, 0, events.events)}) AS e`;
  const sums = Object.entries(countOf).map(([count, one]) => `sum(${one}) AS ${count}`);
  const single = `SELECT ${timeText} AS event_time, event_type, ${keys}, revenue FROM ${from}`;
  const counted = `SELECT toDate(e.event_time) AS event_time, ${keys}, ${sums.join(', ')}, sum(e.revenue) AS revenue
    FROM ${from} GROUP BY toDate(e.event_time), ${keys} ORDER BY toDate(e.event_time)`;
  await write(store, singles, `${single} FORMAT ${formats.csv.clickhouse}`);
  await write(store, counts, `${counted} FORMAT ${formats.csv.clickhouse}`);
}

/** What a SELECT has, as Parquet. */
export const writeRows = (store: Store, file: string, select: string): Promise<void> =>
  write(store, file, `${select} FORMAT ${formats.parquet.clickhouse}`);

async function write(
  store: Store,
  file: string,
  query: string,
  settings: ClickHouseSettings = {},
): Promise<void> {
  const { stream } = await store.exec({
    query,
    clickhouse_settings: {
      output_format_json_quote_decimals: 0,
      output_format_json_quote_64bit_integers: 0,
      // The order of arrival.
      max_threads: 1,
      ...settings,
    },
  });
  await pipeline(stream, createWriteStream(file));
}
