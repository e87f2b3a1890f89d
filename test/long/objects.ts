import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { DuckDBInstance } from '@duckdb/node-api';
import { AwsClient } from 'aws4fetch';
import { Command } from 'commander';
import { checkout, startProcess } from '../support/process.ts';

/**
 * The same files from s3rver and from disk, each into a new store: `node --import tsx test/long/objects.ts --small 10000`. CPU is
 * that of command and engine without s3rver, and depends less on a busy machine than time does.
 */
const { small, rounds, only } = new Command('objects')
  .option('--small <n>', 'small objects, of 20 events each', Number, 1_000)
  .option('--rounds <n>', 'how often each is loaded', Number, 3)
  .option('--only <set>', 'parquet, plain, gzip or small')
  .parse()
  .opts<{ small: number; rounds: number; only?: string }>();

const root = mkdtempSync(join(tmpdir(), 'adtally-long-'));
const bin = fileURLToPath(import.meta.resolve('s3rver/bin/s3rver.js'));
const options = ['-d', join(root, 's3'), '-a', '127.0.0.1', '-p', '0', '--silent', '--no-vhost-buckets'];
const legacy = '--openssl-legacy-provider';
const server = startProcess(process.execPath, [legacy, bin, ...options, '--configure-bucket', 'bench']);
const [, port] = await server.said(/listening on 127\.0\.0\.1:(\d+)/);
const endpoint = `http://127.0.0.1:${port}`;
const keys = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };
const client = new AwsClient({ ...keys, service: 's3', region: 'us-east-1' });

let made = 0;
const line = () => {
  const n = ++made;
  return JSON.stringify({
    event_id: `e${n}`,
    event_time: new Date(1_772_323_200_000 + (n % 172_800) * 1_000).toISOString(),
    event_type: 'impression',
    advertiser_id: `adv-${n % 20}`,
    campaign_id: `campaign-${n % 300}`,
    creative_id: `creative-${n % 900}`,
    publisher_id: `pub-${n % 15}`,
    ad_unit_id: `unit-${n % 200}`,
    spend: ((n * 7_919) % 1_000) / 1_000,
    revenue: ((n * 6_007) % 800) / 1_000,
  });
};
const lines = (count: number) => Buffer.from(`${Array.from({ length: count }, line).join('\n')}\n`);
const files = (count: number, ending: string, make: () => Buffer) =>
  Array.from({ length: count }, (_, n) => ({ name: `${n}.${ending}`, content: make() }));

async function parquet(from: number, rows: number): Promise<Buffer> {
  const path = join(root, 'made.parquet');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  await connection.run(`COPY (SELECT 'p' || n AS event_id, TIMESTAMPTZ '2026-03-01 00:00:00+00' + to_seconds(n % 172800) AS event_time,
      'impression' AS event_type, 'adv-' || (n % 20) AS advertiser_id, 'campaign-' || (n % 300) AS campaign_id,
      'creative-' || (n % 900) AS creative_id, 'pub-' || (n % 15) AS publisher_id, 'unit-' || (n % 200) AS ad_unit_id,
      ((n * 7919) % 1000)::DECIMAL(18, 6) / 1000 AS spend, ((n * 6007) % 800)::DECIMAL(18, 6) / 1000 AS revenue
    FROM range(${from}, ${from + rows}) AS t(n)) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 122880)`);
  connection.closeSync();
  return readFileSync(path);
}
const sets = {
  parquet: async () => [
    { name: '0.parquet', content: await parquet(0, 1_500_000) },
    { name: '1.parquet', content: await parquet(1_500_000, 1_500_000) },
  ],
  plain: () => files(2, 'ndjson', () => lines(500_000)),
  gzip: () => files(4, 'ndjson.gz', () => gzipSync(lines(200_000), { level: 1 })),
  small: () => files(small, 'ndjson', () => lines(20)),
};

/** Seconds of CPU of the processes that were started with a folder, by their ids. */
function cpuOf(folder: string, known: Map<string, number>): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const given = ['environ', 'cmdline'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'utf8'));
      if (!given.join().includes(folder)) continue;
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
      known.set(pid, (Number(fields[11]) + Number(fields[12])) / 100);
    } catch {
      // It has ended.
    }
  }
}

async function load(...args: string[]): Promise<{ seconds: number; cpu: number }> {
  const data = mkdtempSync(join(root, 'data-'));
  const env = { DATA_DIR: data, AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };
  const command = ['--import', 'tsx', join(checkout, 'src/cli.ts'), 'ingest', 'events', '--json', ...args];
  const cpu = new Map<string, number>();
  const looks = setInterval(() => cpuOf(data, cpu), 100);
  const { code, stdout, stderr } = await startProcess(process.execPath, command, env).ended;
  clearInterval(looks);
  if (code !== 0) throw new Error(stderr);
  rmSync(data, { recursive: true });
  const { seconds } = JSON.parse(stdout) as { seconds: number };
  return { seconds, cpu: [...cpu.values()].reduce((sum, each) => sum + each, 0) };
}

for (const [name, make] of Object.entries(sets)) {
  if (only !== undefined && only !== name) continue;
  const all = await make();
  const folder = join(root, name);
  mkdirSync(folder);
  for (const { name: file, content } of all) {
    writeFileSync(join(folder, file), content);
    await client.fetch(`${endpoint}/bench/${name}/${file}`, { method: 'PUT', body: content });
  }
  for (let round = 0; round < rounds; round++) {
    const disk = await load(folder);
    const s3 = await load(`s3://bench/${name}/`, '--endpoint', endpoint);
    const each = ((s3.seconds / all.length) * 1_000).toFixed(1);
    const ratio = (what: 'seconds' | 'cpu') => (disk[what] / s3[what]).toFixed(2);
    process.stdout.write(
      `${name}: disk ${disk.seconds} s, s3 ${s3.seconds} s (${ratio('seconds')} of the speed), ${each} ms an object; CPU ${disk.cpu.toFixed(1)} and ${s3.cpu.toFixed(1)} s (${ratio('cpu')})\n`,
    );
  }
}
await server.kill('SIGKILL');
rmSync(root, { recursive: true, force: true });
