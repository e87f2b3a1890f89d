import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Hono } from 'hono';
import postgres from 'postgres';
import { connect } from '../../clickhouse/client.ts';
import { addRoutes, envelope, type Peer, type PeerRequest } from './peer.ts';
import { startPostgresql } from './postgresql-server.ts';

/**
 * PostgreSQL with rollup tables whose primary key leads with account and day, rows stored in that order, and
 * settings for a dedicated machine. It writes the JSON itself and streams it by COPY, row by row.
 */
export const postgresql: Peer = {
  name: 'PostgreSQL, its own rollup',

  async prepare({ progress }, { address }) {
    progress('PostgreSQL: starting');
    const server = await startPostgresql();
    const sql = postgres(server.url);
    const store = connect(address);
    try {
      for (const [table, columns, key] of tables) {
        progress(`PostgreSQL: ${table}`);
        await sql.unsafe(
          `CREATE UNLOGGED TABLE ${table} (${columns.map(([name, type]) => `${name} ${type}`).join(', ')})`,
        );
        const names = columns.map(([name]) => name).join(', ');
        const sums = columns.map(([name, type]) =>
          type === 'bigint' || type === 'numeric'
            ? `sum(r.${name}) AS ${name}`
            : type === 'timestamptz'
              ? `max(r.${name}) AS ${name}`
              : name,
        );
        const { stream } = await store.exec({
          query: `SELECT ${sums.join(', ')} FROM ${table} AS r GROUP BY ${sums.filter((sum) => !/^(sum|max)/.test(sum)).join(', ')}
                  ORDER BY ${key} FORMAT TabSeparated`,
        });
        await pipeline(stream, await sql.unsafe(`COPY ${table} (${names}) FROM STDIN`).writable());
        await sql.unsafe(`ALTER TABLE ${table} ADD PRIMARY KEY (${key})`);
        await sql.unsafe(`VACUUM (FREEZE, ANALYZE) ${table}`);
      }
      return { settings: { url: server.url }, release: server.stop };
    } catch (error) {
      await server.stop();
      throw error;
    } finally {
      await store.close();
      await sql.end();
    }
  },

  async serve({ url = '' }) {
    const sql = postgres(url, { max: 64 });
    return addRoutes(new Hono(), async (asked) => {
      const dates = sql.unsafe(datesOf(asked)).values();
      // It is looked at when the rows have ended.
      dates.catch(() => undefined);
      const rows = await sql.unsafe(copy(asked)).readable();
      const body = new PassThrough();
      body.write(`${envelope.before}[`);
      let parts: Buffer[] = [];
      let size = 0;
      let first = true;
      const flush = () => {
        body.write(Buffer.concat(parts));
        parts = [];
        size = 0;
      };
      // Never paused: this client of PostgreSQL hangs for good when its COPY stream is.
      rows.on('data', (row: Buffer) => {
        // Each row begins with a comma; the first one has none before it.
        parts.push(first ? row.subarray(1) : row);
        first = false;
        size += row.length;
        if (size >= 1 << 16) flush();
      });
      rows.on('error', (error) => body.destroy(error));
      rows.on('end', async () => {
        flush();
        try {
          body.end(`]${envelope.after((await dates).map(([day]) => String(day)))}`);
        } catch (error) {
          body.destroy(error instanceof Error ? error : new Error(String(error)));
        }
      });
      const web = Readable.toWeb(body) as ReadableStream<Uint8Array>;
      return new Response(web, { headers: { 'content-type': 'application/json' } });
    });
  },
};

const sums = [
  ['impressions', 'bigint'],
  ['conversions', 'bigint'],
  ['referrals', 'bigint'],
  ['spent', 'numeric'],
] as const;
const tables = [
  [
    'campaigns',
    [
      ['account_id', 'text'],
      ['campaign_id', 'text'],
      ['name', 'text'],
    ],
    'account_id, campaign_id',
  ],
  [
    'creatives',
    [
      ['account_id', 'text'],
      ['creative_id', 'text'],
      ['headline', 'text'],
    ],
    'account_id, creative_id',
  ],
  [
    'campaigns_date',
    [
      ['account_id', 'text'],
      ['day', 'date'],
      ['campaign_id', 'text'],
      ...sums,
      ['unconfirmed_at', 'timestamptz'],
    ],
    'account_id, day, campaign_id',
  ],
  [
    'confirmations',
    [
      ['account_id', 'text'],
      ['day', 'date'],
      ['confirmed_at', 'timestamptz'],
    ],
    'account_id, day',
  ],
  [
    'campaigns_device_creative_date',
    [
      ['account_id', 'text'],
      ['day', 'date'],
      ['campaign_id', 'text'],
      ['device', 'text'],
      ['creative_id', 'text'],
      ...sums,
    ],
    'account_id, day, campaign_id, device, creative_id',
  ],
] as const;

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;

const owned = ({ account, period }: PeerRequest) =>
  `account_id = ${quoted(account)} AND day BETWEEN ${quoted(period.start)} AND ${quoted(period.end)}`;

function datesOf(asked: PeerRequest): string {
  return `SELECT to_char(day, 'YYYY-MM-DD') FROM (
      SELECT day, max(unconfirmed_at) AS unconfirmed_at FROM campaigns_date WHERE ${owned(asked)} GROUP BY day) AS u
    LEFT JOIN (SELECT day, confirmed_at FROM confirmations WHERE ${owned(asked)}) AS c USING (day)
    WHERE unconfirmed_at > coalesce(confirmed_at, 'epoch') ORDER BY day`;
}

/** CSV with a quote and a delimiter that JSON text never contains: lines come out as they are. */
function copy(asked: PeerRequest): string {
  const { size, period } = asked;
  const finest = size === 'finest';
  const per = (count: string, times = 1) =>
    `CASE WHEN ${count} = 0 THEN 0 ELSE trim_scale(round(${times} * spent / ${count}, 6)) END`;
  const start = finest ? 'day' : quoted(period.start);
  const end = finest ? 'day' : quoted(period.end);
  const columns = [
    `${start} AS start_time`,
    `${end} AS end_time`,
    'coalesce(c.name, campaign_id) AS campaign',
    ...(finest ? ['device', "coalesce(h.headline, '') AS creative_headline", 'creative_id'] : []),
    `${per('conversions')} AS cpa`,
    `${per('referrals')} AS cpc`,
    `${per('impressions', 1000)} AS cpm`,
    'impressions',
    'conversions',
    'referrals',
    'spent',
  ];
  const rows = finest
    ? `SELECT * FROM campaigns_device_creative_date WHERE ${owned(asked)}`
    : `SELECT account_id, campaign_id, ${sums.map(([name]) => `sum(${name}) AS ${name}`).join(', ')} FROM campaigns_date WHERE ${owned(asked)} GROUP BY 1, 2`;
  return `COPY (SELECT ',' || row_to_json(r)::text FROM (SELECT ${columns.join(', ')} FROM (${rows}) AS s
    LEFT JOIN campaigns AS c USING (account_id, campaign_id)
    ${finest ? 'LEFT JOIN creatives AS h USING (account_id, creative_id)' : ''}
    ORDER BY ${finest ? 'day, campaign_id, device, creative_id' : 'campaign_id'}) AS r)
    TO STDOUT (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')`;
}
