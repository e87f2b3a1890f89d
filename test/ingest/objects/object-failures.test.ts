import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { defaultMapping } from '../../../ingest/event/mapping.ts';
import { mappedReading } from '../../../ingest/event/reading.ts';
import { unload } from '../../../ingest/history/unload.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { loadFiles } from '../../../ingest/load/load-files.ts';
import { ObjectStores } from '../../../ingest/objects/object-stores.ts';
import { expandFiles } from '../../../ingest/places/expand-files.ts';
import { RejectLimit } from '../../../ingest/rejects/reject-limit.ts';
import { replaceEvents } from '../../../ingest/replace/replace-events.ts';
import { certificateIn } from '../../support/certificate.ts';
import { event, ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { type Fault, useObjectStorage } from '../../support/object-storage.ts';
import { parquetFile } from '../../support/parquet.ts';
import { useStore } from '../../support/store.ts';

/** Stores that refuse, throttle, break off and change while they are read. */

const db = useStore();
const storage = useObjectStorage('events');
const { own, ...loader } = useLoader(db);
beforeEach(() => storage.reset());

const address = (path: string) => `s3://${storage.bucket}/${own.account}/${path}`;
const put = (path: string, content: string | Buffer) => storage.put(`${own.account}/${path}`, content);
const lines = (count: number, campaign = 'c') =>
  ndjson(
    Array.from({ length: count }, (_, n) =>
      event({
        event_id: `${own.account}-${n}`,
        advertiser_id: own.account,
        campaign_id: campaign.repeat(100),
      }),
    ),
  );

const now = () => new Date();
const failures: string[] = [];
const stores = (env = storage.keys, giveUpAfterMs = 20_000) =>
  new ObjectStores({ env, endpoint: storage.endpoint, giveUpAfterMs });
const common = () => ({
  ...{ store: db.store, chunkBytes: 1 << 20, now },
  readingOf: (file: string) => mappedReading(file, defaultMapping),
});
async function load(args: string[], { env = storage.keys, giveUpAfterMs = 20_000, onWait = () => {} } = {}) {
  return loadFiles(await expandFiles(args, stores(env, giveUpAfterMs)), {
    ...common(),
    onWait,
    onFailed: (_, { message }) => void failures.push(message),
    takeBack: async (load) => void (await unload(db.store, load, now)),
  });
}

test.each<[string, Record<string, string>, string, RegExp]>([
  [
    'a wrong secret',
    { ...storage.keys, AWS_SECRET_ACCESS_KEY: 'hidden' },
    'e.ndjson',
    /does not accept the keys \(403 SignatureDoesNotMatch\)$/,
  ],
  [
    'an unknown key',
    { AWS_ACCESS_KEY_ID: 'unknown', AWS_SECRET_ACCESS_KEY: 'hidden' },
    '*.ndjson',
    /does not accept the keys \(403 InvalidAccessKeyId\)$/,
  ],
  ['half a key', { AWS_ACCESS_KEY_ID: 'unknown' }, '*.ndjson', /only one is set$/],
  ['an object that is not there', storage.keys, 'nothing.ndjson', /no file there$/],
  ['a pattern without a match', storage.keys, '*.csv', /no file there$/],
])('%s is one line with the address, and nothing is loaded', async (_, env, path, message) => {
  await put('e.ndjson', lines(1));
  const failed = load([address(path)], { env });
  await expect(failed).rejects.toThrow(message);
  await expect(failed).rejects.toThrow(new RegExp(`^${address(path).replaceAll('*', '\\*')}: [^\\n]*$`));
  await expect(failed).rejects.not.toThrow(/hidden/);
});

test('a bucket that is not there is named', async () => {
  await expect(load(['s3://nowhere/a/*.csv'])).rejects.toThrow(
    's3://nowhere/a/*.csv: there is no bucket s3://nowhere/',
  );
  await expect(load(['s3://nowhere/a.csv'])).rejects.toThrow(
    's3://nowhere/a.csv: there is no bucket s3://nowhere/',
  );
});

test('an object that lies in an archive is to be restored', async () => {
  await put('a.ndjson', lines(1));
  storage.meet(({ headers }) => (headers.range ? { status: 403, code: 'InvalidObjectState' } : undefined));
  await load([address('a.ndjson')]);
  expect(failures.at(-1)).toBe(
    `${address('a.ndjson')}: the object is in an archive: restore it first (403 InvalidObjectState)`,
  );
});

const busy: readonly Fault[] = [
  { status: 503, code: 'SlowDown' },
  { status: 429, code: 'TooManyRequests' },
  { status: 500, code: 'InternalError' },
  { cutAfter: 0 },
];

test('a store that throttles and breaks connections is asked again, and gives all of it', async () => {
  await put('a.ndjson', lines(13_000));
  await put('b.parquet', await parquetFile(db.store, own.account, 100_000, { group: 50_000 }));
  let n = 0;
  // Each request in turn meets one of them, and bodies break at other places each time.
  storage.meet(() => (n++ % 3 === 2 ? undefined : (busy[n % busy.length] ?? undefined)));
  const results = await load([address('*')]);
  expect(results.map(({ rows }) => rows)).toEqual([13_000, 100_000]);
  expect(await loader.counted()).toBe(113_000);
});

test('a listing that goes on without saying where is refused', async () => {
  await put('a.ndjson', lines(1));
  const body = `<ListBucketResult><IsTruncated>true</IsTruncated><NextMarker>x</NextMarker><Contents><Key>${own.account}/a.ndjson</Key></Contents></ListBucketResult>`;
  storage.meet(({ path }) => (path.includes('list-type=2') ? { body } : undefined));
  await expect(load([address('*')])).rejects.toThrow(
    'says that its listing goes on, but gives no NextContinuationToken',
  );
});

test('keys of a file that somebody has changed are read again', async () => {
  const { AWS_ACCESS_KEY_ID: id = '', AWS_SECRET_ACCESS_KEY: secret } = storage.keys;
  const written = (of: string) =>
    loader.file('credentials', `[default]\naws_access_key_id = ${of}\naws_secret_access_key = ${secret}\n`);
  const path = await written('OLD');
  await put('a.ndjson', lines(3));
  const env = { AWS_SHARED_CREDENTIALS_FILE: path, AWS_EC2_METADATA_DISABLED: 'true' };
  const own = stores(env);
  await expect(expandFiles([address('a.ndjson')], own)).rejects.toThrow(/does not accept the keys/);
  await written(id);
  expect(await expandFiles([address('a.ndjson')], own)).toHaveLength(1);
});

test('an endpoint of keys that throttles is asked again', async () => {
  await put('a.ndjson', lines(1));
  const keys = { AccessKeyId: 'S3RVER', SecretAccessKey: 'S3RVER' };
  const answers: Fault[] = [{ status: 429, code: 'Throttled' }, { body: JSON.stringify(keys) }];
  storage.meet(({ path }) => (path === '/keys' ? answers.shift() : undefined));
  const env = {
    HOME: '/nonexistent',
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${storage.endpoint}/keys`,
  };
  await load([address('a.ndjson')], { env });
  expect(await loader.counted()).toBe(1);
});

test('a body that breaks off is read on behind what has come', async () => {
  await put('a.ndjson', lines(13_000));
  storage.meet(({ method }) => (method === 'GET' ? { cutAfter: 1_500_000 } : undefined));
  await load([address('a.ndjson')]);
  expect(await loader.counted()).toBe(13_000);
  const starts = storage.asked.map(({ headers }) => Number(/^bytes=(\d+)-/.exec(headers.range ?? '')?.[1]));
  expect(starts.filter((start) => start > 1_000_000).length).toBeGreaterThan(1);
});

test('a store that does not recover is given up, with the reason', async () => {
  await put('a.ndjson', lines(1));
  storage.meet(() => ({ status: 503, code: 'SlowDown' }));
  await expect(load([address('*')], { giveUpAfterMs: 100 })).rejects.toThrow(
    `${address('*')}: the storage does not answer: 503 SlowDown`,
  );
});

test('a store whose certificate nobody vouches for is not asked again', async () => {
  const { key, cert } = certificateIn(loader.folder);
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) });
  onTestFinished(() => void server.close());
  let asked = 0;
  server.on('connection', () => asked++);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const own = new ObjectStores({ env: storage.keys, endpoint: `https://localhost:${port}` });
  await expect(expandFiles([address('a.ndjson')], own)).rejects.toThrow(
    `${address('a.ndjson')}: the certificate of the storage is not accepted (self-signed certificate): NODE_EXTRA_CA_CERTS names the authority that vouches for it`,
  );
  expect(asked).toBe(1);
});

test('a look at one object gives its connection back', async () => {
  const server = createPlainServer((_, answer) =>
    answer.writeHead(200, { etag: '"a"', 'content-length': 1 }).end(),
  );
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  let connections = 0;
  server.on('connection', () => connections++);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const own = new ObjectStores({ env: storage.keys, endpoint: `http://127.0.0.1:${port}` });
  for (const name of ['a', 'b', 'c']) await expandFiles([address(`${name}.ndjson`)], own);
  expect(connections).toBe(1);
});

test.each(['listed', 'read'])(
  'an object that is replaced after it was %s is read anew, whole',
  async (when) => {
    await put('a.ndjson', lines(13_000, 'a'));
    const listing = { body: '' };
    storage.meet(async ({ path, headers }) => {
      const isRead = headers.range !== undefined;
      if (isRead && listing.body === '') {
        listing.body = 'replaced';
        if (when === 'read') return { cutAfter: 3_000_000 };
        await put('a.ndjson', lines(14_000, 'b'));
      } else if (isRead && listing.body === 'replaced' && when === 'read') {
        listing.body = 'read anew';
        await put('a.ndjson', lines(14_000, 'b'));
      }
      return path === '' ? { status: 500, code: 'NoPath' } : undefined;
    });
    const results = await load([address('*')]);
    expect(results.map(({ rows }) => rows)).toEqual([14_000]);
    expect(await loader.counted()).toBe(14_000);
  },
);

test('an object that another loader has loaded grown, after this one had read it, counts once', async () => {
  await put('a.ndjson', lines(2));
  const stores = new ObjectStores({ env: storage.keys, endpoint: storage.endpoint });
  const [before] = await expandFiles([address('a.ndjson')], stores);
  if (!before) throw new Error('there is no object');
  // From here on it is in memory.
  await (await before.readFrom(0)).close();
  await put('a.ndjson', lines(5));
  await load([address('a.ndjson')]);
  const readingOf = (file: string) => mappedReading(file, defaultMapping);
  const [again] = await loadFiles([before], { store: db.store, now, readingOf });
  expect(again).toMatchObject({ rows: 0, repeatedRows: 5 });
  expect(await loader.counted()).toBe(5);
});

/** Replaces `a.ndjson` when a part of it has been sent. @param before what is done in that moment */
function replaceWhenSent(
  before: () => Promise<void> = async () => {},
  isSent = async () => (await loader.counted()) > 0,
  content = lines(14_000, 'b'),
): void {
  let replaced = false;
  storage.meet(async ({ path, headers }) => {
    if (!headers.range || !path.endsWith('a.ndjson') || replaced) return undefined;
    if (headers.range.startsWith('bytes=0-')) return { cutAfter: 5_000_000 };
    replaced = true;
    while (!(await isSent())) await delay(50);
    await before();
    await put('a.ndjson', content);
    return undefined;
  });
}

test('what has been sent of an object that is replaced then counts no more', async () => {
  await put('a.ndjson', lines(26_000, 'a'));
  replaceWhenSent();
  await load([address('a.ndjson')]);
  expect(await loader.counted()).toBe(14_000);
});

test('what was rejected of it counts towards the limit no more', async () => {
  const faulty = ndjson([event({ advertiser_id: own.account, quantity: 0 })]);
  await put('a.ndjson', faulty + lines(26_000, 'a'));
  replaceWhenSent(undefined, undefined, faulty + lines(14_000, 'b'));
  const [result] = await loadFiles(await expandFiles([address('a.ndjson')], stores()), {
    ...common(),
    rejectLimit: new RejectLimit({ rows: 1 }),
    takeBack: async (load) => void (await unload(db.store, load, now)),
  });
  expect(result).toMatchObject({ rows: 14_000, rejectedRows: 1 });
  expect(await loader.counted()).toBe(14_000);
});

test('it counts where another load of the same has waited behind', async () => {
  await put('a.ndjson', lines(26_000, 'a'));
  await put('copy.ndjson', lines(26_000, 'a'));
  let copied: Promise<unknown> | undefined;
  replaceWhenSent(
    () =>
      new Promise<void>((waits) => {
        copied = load([address('copy.ndjson')], { onWait: waits });
      }),
  );
  await load([address('a.ndjson')]);
  await copied;
  expect(await loader.counted()).toBe(40_000);
});

test.each([
  ['has grown', 'a'],
  ['was replaced', 'b'],
])('an object that %s while it takes the place of a load comes as it is then, whole', async (_, campaign) => {
  await put('old.ndjson', lines(3, 'old'));
  const [old] = await load([address('old.ndjson')]);
  await put('a.ndjson', lines(26_000, 'a'));
  const heldBack = async () => {
    const query = 'SELECT toUInt32(uniqExact(batch)) AS batches FROM incoming_staging';
    const [row] = await select<{ batches: number }>(db.store, query);
    return row?.batches ?? 0;
  };
  replaceWhenSent(undefined, async () => (await heldBack()) > 0, lines(27_000, campaign));
  const files = await expandFiles([address('a.ndjson')], stores());
  const { results } = await replaceEvents({
    ...{ store: db.store, now, files: 'a.ndjson', dryRun: false, onTotals: () => {} },
    target: { load: old?.loadId ?? '' },
    stage: (hold) => loadFiles(files, { ...common(), dryRun: true, ...(hold && { hold }) }),
  });
  expect(results.map(({ rows }) => rows)).toEqual([27_000]);
  expect(await loader.counted()).toBe(27_000);
  expect((await verifyLedger(db.store)).differences).toEqual([]);
  expect(await heldBack()).toBe(0);
});
