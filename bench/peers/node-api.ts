import { createClient } from '@clickhouse/client';
import { Hono } from 'hono';
import { report } from '../bench.ts';
import { statementOf } from '../requests.ts';
import { type Peer, paths, routes } from './peer.ts';

/**
 * What one writes first: the same SQL on the same rollups, `client.query().json()`, then `c.json()`. Numbers come
 * as numbers, and nothing is compressed between the two.
 */
export const nodeApi: Peer = {
  name: 'hand-written Node API',

  async prepare(_bench, { address }) {
    return { settings: { ...address } };
  },

  async serve({ url, user, password, database }) {
    const client = createClient({ url, username: user, password, database, max_open_connections: 64 });
    return routes(new Hono(), async ({ size, account, period }) => {
      const { query, params } = statementOf({ ...report(paths[size], 1), account, period }, 'ndjson');
      const found = await client.query({
        query: query.replace(/\nFORMAT \w+$/, ''),
        query_params: params,
        format: 'JSONEachRow',
        clickhouse_settings: {
          optimize_aggregation_in_order: size === 'finest' ? 1 : 0,
          output_format_json_quote_64bit_integers: 0,
          output_format_json_quote_decimals: 0,
        },
      });
      return Response.json({
        result: {
          last_update_time: '2026-01-01 00:00:00 UTC',
          rows: await found.json(),
          column_metadata: [],
          unconfirmed_revenue_dates: [],
        },
      });
    });
  },
};
