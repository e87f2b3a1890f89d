import { gzipSync } from 'node:zlib';
import { beforeEach, expect, test } from 'vitest';
import { useBlobStorage } from '../../support/blob-storage.ts';
import { useCommandRunners } from '../../support/command-runners.ts';
import { event, ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { useObjectStorage } from '../../support/object-storage.ts';
import { parquetFile } from '../../support/parquet.ts';
import { outputOf } from '../../support/process.ts';
import { useStore } from '../../support/store.ts';

/** Objects of a bucket are loaded as files are. */

const db = useStore();
const storage = useObjectStorage('events');
const sas = 'sv=2024-11-04&sp=rl&sig=hidden%2Bsignature%3D';
const azure = useBlobStorage('network', 'logs', sas);
const { own, ...loader } = useLoader(db);
const runCommand = useCommandRunners();
beforeEach(() => storage.reset());

const run = (args: readonly string[], env: Record<string, string> = storage.keys) =>
  runCommand([...args, '--endpoint', storage.endpoint], { ...loader.env(), ...env });

async function ingest(...args: string[]) {
  return JSON.parse(await outputOf(run(['ingest', 'events', '--json', ...args]))) as Record<string, number>;
}
const address = (path: string) => `s3://${storage.bucket}/${own.account}/${path}`;
const put = (path: string, content: string | Buffer) => storage.put(`${own.account}/${path}`, content);

const lines = (count: number, from = 0) =>
  ndjson(
    Array.from({ length: count }, (_, n) =>
      event({
        event_id: `${own.account}-${from + n}`,
        advertiser_id: own.account,
        campaign_id: 'x'.repeat(100),
      }),
    ),
  );

/** So large that it is read piece by piece: its ids do not compress. */
async function largeFile(): Promise<Buffer> {
  const id = 'base64Encode(SHA384(concat({account:String}, toString(number))))';
  const file = await parquetFile(db.store, own.account, 100_000, { group: 25_000, id });
  expect(file.length).toBeGreaterThan(4 << 20);
  return file;
}

test('what was loaded from disk is known in a bucket, and the other way round; copied and renamed it counts once', async () => {
  const contents = {
    'a.ndjson': lines(30_000),
    'b.ndjson.gz': gzipSync(lines(2_000, 30_000)),
    'c.parquet': await parquetFile(db.store, `${own.account}`, 20_000, { group: 10_000 }),
    'd+e f%2B(1)é.ndjson': lines(10, 40_000),
  };
  for (const [name, content] of Object.entries(contents)) await put(name, content);
  const onDisk = await loader.file('a.ndjson', contents['a.ndjson']);
  expect(await loader.ingest(onDisk)).toMatchObject({ code: 0 });
  expect(await ingest(address(''))).toMatchObject({ files: 4, rows: 22_010, repeated_rows: 30_000 });
  expect(await ingest(address('*'))).toMatchObject({ files: 4, rows: 0, repeated_rows: 52_010 });
  await put('copies/renamed.ndjson', contents['a.ndjson']);
  await put('copies/d.ndjson', contents['d+e f%2B(1)é.ndjson']);
  expect(await ingest(address('**/*.ndjson'))).toMatchObject({ files: 4, rows: 0, repeated_rows: 60_020 });
  const file = await loader.file('c.parquet', contents['c.parquet']);
  expect(JSON.parse((await loader.ingest(file)).stdout)).toMatchObject({ rows: 0, repeated_rows: 20_000 });
  expect(await loader.counted()).toBe(52_010);
});

test('buckets of Google and containers of Azure are read in the same way', async () => {
  const gs = { GS_ACCESS_KEY_ID: 'S3RVER', GS_SECRET_ACCESS_KEY: 'S3RVER' };
  await put('a.ndjson', lines(3));
  const google = await run(['ingest', 'events', '--json', address('*').replace('s3:', 'gs:')], gs);
  expect(JSON.parse(google.stdout)).toMatchObject({ files: 1, rows: 3 });
  for (let n = 0; n < 5; n++)
    azure.blobs.set(`${own.account}/in & out/${n}.ndjson`, Buffer.from(lines(2, n * 10 + 10)));
  azure.blobs.set(`${own.account}/big.parquet`, await largeFile());
  const ingestBlobs = async (
    path: string,
    env: Record<string, string> = { AZURE_STORAGE_SAS_TOKEN: `?${sas}` },
  ) => {
    const place = `az://network/logs/${own.account}/${path}`;
    const args = ['ingest', 'events', '--json', place, '--endpoint', azure.endpoint];
    return runCommand(args, { ...loader.env(), ...env });
  };
  const all = await ingestBlobs('**');
  expect(JSON.parse(all.stdout)).toMatchObject({ files: 6, rows: 100_010, repeated_rows: 0 });
  for (const folder of ['', '/in & out', '/spark.ndjson']) azure.folders.add(own.account + folder);
  const withFolders = await ingestBlobs('**');
  expect(JSON.parse(withFolders.stdout)).toMatchObject({ files: 6, rows: 0, repeated_rows: 100_010 });
  const folder = await ingestBlobs('in & out');
  expect(JSON.parse(folder.stdout)).toMatchObject({ files: 5, rows: 0, repeated_rows: 10 });
  const wrong = await ingestBlobs('*', { AZURE_STORAGE_SAS_TOKEN: sas.replace('hidden', 'wrong') });
  expect(wrong.stderr.trim()).toBe(
    `error: az://network/logs/${own.account}/*: the storage does not accept the keys (403 AuthenticationFailed)`,
  );
  const missing = await ingestBlobs('nothing.csv');
  expect(missing.stderr.trim()).toBe(`error: az://network/logs/${own.account}/nothing.csv: no file there`);
});

test('the row groups of a Parquet object come over the network once', async () => {
  await put('p.parquet', await largeFile());
  storage.reset();
  expect(await ingest(address('p.parquet'))).toMatchObject({ rows: 100_000 });
  const ranges = storage.asked.flatMap(({ method, headers }) => (method === 'GET' && headers.range) || []);
  // Behind the magic bytes.
  expect(ranges.filter((range) => range.startsWith('bytes=4-'))).toHaveLength(1);
});

test('names and confirmations come from a bucket; what is moved must be a file', async () => {
  await put('names/a.csv', `account_id,campaign_id,name\n${own.account},c,Spring\n`);
  await put('days.csv', `account_id,day\n${own.account},2026-03-01\n`);
  const named = await run(['ingest', 'campaigns', address('names/')]);
  expect(named).toMatchObject({ code: 0, stderr: `${address('names/a.csv')}: 1 line of campaigns loaded\n` });
  expect((await run(['ingest', 'confirmations', address('days.csv')])).stderr).toMatch(/: 1 day confirmed/);
  await put('a.ndjson', lines(1));
  const moved = await run(['ingest', 'events', address('a.ndjson'), '--move-to', loader.folder]);
  expect(moved).toMatchObject({
    code: 2,
    stderr: `error: --move-to: ${address('a.ndjson')} cannot be moved\n`,
  });
});
