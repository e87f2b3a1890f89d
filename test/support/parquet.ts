import { buffer } from 'node:stream/consumers';
import type { Store } from '../../clickhouse/client.ts';

export interface Shape {
  /** Rows of a row group. */
  readonly group?: number;
  /** SQL of the row's `number`. */
  readonly id?: string;
  /** The same. */
  readonly quantity?: string;
  /** The same. */
  readonly confirmed?: string;
  readonly settings?: Record<string, string | number>;
}

/** A file of so many events of an account, typed as other programs write it. */
export async function parquetFile(
  store: Store,
  account: string,
  rows: number,
  shape: Shape = {},
): Promise<Buffer> {
  const { group = 50_000, quantity = '1', confirmed = 'number % 2 = 0', settings } = shape;
  const { id = "concat({account:String}, '-', toString(number))" } = shape;
  const { stream } = await store.exec({
    query: `SELECT ${id} AS event_id,
                   toDateTime64('2026-03-01 00:00:00.000', 3, 'UTC') + number % 172800 AS event_time,
                   'impression' AS event_type, {account:String} AS advertiser_id,
                   concat('campaign-', toString(number % 7)) AS campaign_id, toInt64(${quantity}) AS quantity,
                   toDecimal64(number % 1000, 6) / 100 AS spend, ${confirmed} AS confirmed
            FROM numbers({rows:UInt64}) FORMAT Parquet`,
    query_params: { account, rows },
    clickhouse_settings: {
      output_format_parquet_row_group_size: String(group),
      output_format_parquet_parallel_encoding: 0,
      max_block_size: String(Math.min(group, 50_000)),
      ...settings,
    },
  });
  return buffer(stream);
}
