import { execFile } from 'node:child_process';
import { chownSync, existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { Hono } from 'hono';
import postgres from 'postgres';
import { connect } from '../../clickhouse/client.ts';
import { opened } from '../opened.ts';
import { type Asked, CannotRun, envelope, type Peer, routes } from './peer.ts';

const run = promisify(execFile);
/** PostgreSQL refuses to run as root. */
const nobody = 65534;

/**
 * PostgreSQL with rollup tables whose primary key leads with account and day, rows stored in that order, and
 * settings for a machine of its own. It writes the JSON itself and streams it by COPY, row by row.
 */
export const postgresql: Peer = {
  name: 'PostgreSQL, its own rollup',

  async prepare({ say }, { address }) {
    say('PostgreSQL: starting');
    const server = await startServer();
    const sql = postgres(server.settings.url ?? '');
    const store = connect(address);
    try {
      for (const [table, columns, key] of tables) {
        say(`PostgreSQL: ${table}`);
        await sql.unsafe(
          `CREATE UNLOGGED TABLE ${table} (${columns.map(([name, type]) => `${name} ${type}`).join(', ')})`,
        );
        const names = columns.map(([name]) => name).join(', ');
        const sums = columns.map(([name, type]) =>
          type === 'bigint' || type === 'numeric' ? `sum(r.${name}) AS ${name}` : name,
        );
        const { stream } = await store.exec({
          query: `SELECT ${sums.join(', ')} FROM ${table} AS r GROUP BY ${sums.filter((sum) => !sum.startsWith('sum')).join(', ')}
                  ORDER BY ${key} FORMAT TabSeparated`,
        });
        await pipeline(stream, await sql.unsafe(`COPY ${table} (${names}) FROM STDIN`).writable());
        await sql.unsafe(`ALTER TABLE ${table} ADD PRIMARY KEY (${key})`);
        await sql.unsafe(`VACUUM (FREEZE, ANALYZE) ${table}`);
      }
      return server;
    } catch (error) {
      await server.release();
      throw error;
    } finally {
      await store.close();
      await sql.end();
    }
  },

  async serve({ url = '' }) {
    const sql = postgres(url, { max: 64 });
    return routes(new Hono(), async (asked) => {
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
      rows.on('end', () => {
        flush();
        body.end(`]${envelope.after}`);
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
    [['account_id', 'text'], ['day', 'date'], ['campaign_id', 'text'], ...sums],
    'account_id, day, campaign_id',
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

/** CSV with a quote and a delimiter that JSON text never contains: lines come out as they are. */
function copy({ size, account, period }: Asked): string {
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
  const owned = `account_id = ${quoted(account)} AND day BETWEEN ${quoted(period.start)} AND ${quoted(period.end)}`;
  const rows = finest
    ? `SELECT * FROM campaigns_device_creative_date WHERE ${owned}`
    : `SELECT account_id, campaign_id, ${sums.map(([name]) => `sum(${name}) AS ${name}`).join(', ')} FROM campaigns_date WHERE ${owned} GROUP BY 1, 2`;
  return `COPY (SELECT ',' || row_to_json(r)::text FROM (SELECT ${columns.join(', ')} FROM (${rows}) AS s
    LEFT JOIN campaigns AS c USING (account_id, campaign_id)
    ${finest ? 'LEFT JOIN creatives AS h USING (account_id, creative_id)' : ''}
    ORDER BY ${finest ? 'day, campaign_id, device, creative_id' : 'campaign_id'}) AS r)
    TO STDOUT (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')`;
}

async function startServer() {
  const programs = await findPrograms();
  const folder = await mkdtemp(join(tmpdir(), 'adtally-bench-postgresql-'));
  const root = process.getuid?.() === 0;
  if (root) chownSync(folder, nobody, nobody);
  const options = {
    cwd: folder,
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    ...(root && { uid: nobody, gid: nobody }),
  };
  const data = join(folder, 'data');
  const port = 20_000 + (process.pid % 10_000);
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    shared_buffers: '2GB',
    work_mem: '512MB',
    effective_cache_size: '8GB',
    random_page_cost: '1.1',
    jit: 'off',
    max_wal_size: '8GB',
    max_connections: '80',
  };
  const pg = (program: string, args: string[]) => run(join(programs, program), args, options);
  await pg('initdb', ['-D', data, '-U', 'bench', '--auth=trust', '--locale=C', '--encoding=UTF8']);
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value === '' ? "''" : value}`);
  await pg('pg_ctl', ['-D', data, '-w', '-l', join(folder, 'log'), '-o', flags.join(' '), 'start']);
  return {
    settings: { url: `postgres://bench@127.0.0.1:${port}/postgres` } as Record<string, string>,
    release: opened(async () => {
      await pg('pg_ctl', ['-D', data, '-w', '-m', 'immediate', 'stop']);
      await rm(folder, { recursive: true, force: true });
    }),
  };
}

/** The folder of initdb and pg_ctl: where Debian has it, on the search path, or newly installed with apt. */
async function findPrograms(): Promise<string> {
  const debian = '/usr/lib/postgresql';
  const find = () =>
    [
      ...(existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : []).map(
        (version) => join(debian, version, 'bin'),
      ),
      ...(process.env.PATH ?? '').split(':'),
    ].find((folder) => existsSync(join(folder, 'initdb')));
  const found = find();
  if (found) return found;
  const install = 'apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql';
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  if (process.getuid?.() === 0) await run('sh', ['-c', install], { env: environment }).catch(() => undefined);
  const installed = find();
  if (!installed) throw new CannotRun('no PostgreSQL server found, nor could one be installed with apt-get');
  return installed;
}
