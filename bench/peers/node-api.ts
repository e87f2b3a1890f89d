import { createClient } from '@clickhouse/client';
import { Hono } from 'hono';
import { plainStatement } from '../harness/requests.ts';
import { report } from '../harness/scenario.ts';
import { addRoutes, type Peer, paths } from './peer.ts';

/**
 * The obvious implementation: the same SQL on the same rollups, `client.query().json()`, then `c.json()`. Numbers are
 * sent as numbers, and nothing is compressed between the two.
 */
export const nodeApi: Peer = {
  name: 'hand-written Node API',

  async prepare(_bench, { address }) {
    return { settings: { ...address } };
  },

  async serve({ url, user, password, database }) {
    const client = createClient({ url, username: user, password, database, max_open_connections: 64 });
    return addRoutes(new Hono(), async ({ size, account, period }) => {
      const { query, params, settings } = plainStatement({ ...report(paths[size], 1), account, period });
      const list = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
      const found = await client.query({
        query: `${query}\nSETTINGS ${list.join(', ')}`,
        query_params: params,
        format: 'JSONEachRow',
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
