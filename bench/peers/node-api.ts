import { createClient } from '@clickhouse/client';
import { Hono } from 'hono';
import type { ReadStatement } from '../../clickhouse/reader.ts';
import { plainDatesStatement, plainStatement } from '../harness/requests.ts';
import { report } from '../harness/scenario.ts';
import { addRoutes, type Peer, paths } from './peer.ts';

/**
 * The obvious implementation: the same SQL on the same rollups, `client.query().json()`, then `c.json()`. Numbers are
 * sent as numbers, and nothing is compressed between the two. Rows and unconfirmed days are asked for at once.
 */
export const nodeApi: Peer = {
  name: 'hand-written Node API',

  async prepare(_bench, { address }) {
    return { settings: { ...address } };
  },

  async serve({ url, user, password, database }) {
    const client = createClient({ url, username: user, password, database, max_open_connections: 64 });
    const read = async <Row>({ query, params, settings }: ReadStatement): Promise<Row[]> => {
      const list = Object.entries(settings).map(
        ([name, value]) => `${name} = '${String(value).replace(/[\\']/g, '\\$&')}'`,
      );
      const found = await client.query({
        query: list.length > 0 ? `${query}\nSETTINGS ${list.join(', ')}` : query,
        query_params: params,
        format: 'JSONEachRow',
      });
      return found.json<Row>();
    };
    return addRoutes(new Hono(), async ({ size, account, period }) => {
      const asked = { ...report(paths[size], 1), account, period };
      const [rows, dates] = await Promise.all([
        read(plainStatement(asked)),
        read<{ day: string }>(plainDatesStatement(asked)),
      ]);
      return Response.json({
        result: {
          last_update_time: '2026-01-01 00:00:00 UTC',
          rows,
          column_metadata: [],
          unconfirmed_revenue_dates: dates.map(({ day }) => day),
        },
      });
    });
  },
};
