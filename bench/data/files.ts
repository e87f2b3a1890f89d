import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Store } from '../../clickhouse/client.ts';
import { eventFields } from '../../ingest/event/event-insert.ts';
import type { Format } from '../../ingest/input/file-format.ts';
import { type Events, selectEvents } from './events.ts';

/** A larger file takes longer and measures the same. Two million events are 0.7 GB of NDJSON. */
export const maxFileEvents = 2_000_000;

/** Has ClickHouse write generated events to a file. Every `badEvery`-th line has a quantity that is not a number. */
export async function writeEventFile(
  store: Store,
  file: string,
  format: Format,
  { badEvery, ...events }: Events & { badEvery?: number },
): Promise<void> {
  const expressions: Partial<Record<string, string>> = {
    // Parquet carries a real time; text formats carry what exports usually do.
    ...(format.name !== 'parquet' && {
      event_time: "formatDateTime(event_time, '%Y-%m-%dT%H:%i:%S.%fZ', 'UTC') AS event_time",
    }),
    ...(badEvery && { quantity: `if(rowNumberInAllBlocks() % ${badEvery} = 0, 'many', '1') AS quantity` }),
  };
  const columns = eventFields.map((name) => expressions[name] ?? name).join(', ');
  const { stream } = await store.exec({
    query: `SELECT ${columns} FROM (${selectEvents(events, 0, events.events)}) FORMAT ${format.clickhouse}`,
    clickhouse_settings: {
      output_format_json_quote_decimals: 0,
      output_format_json_quote_64bit_integers: 0,
      // The order of arrival.
      max_threads: 1,
    },
  });
  await pipeline(stream, createWriteStream(file));
}
