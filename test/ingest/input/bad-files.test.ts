import { spawn } from 'node:child_process';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { ObjectStores } from '../../../ingest/objects/object-stores.ts';
import { expandFiles } from '../../../ingest/places/expand-files.ts';
import { startOf } from '../../support/compiled.ts';
import { type EventLine, event, ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { type Ended, peakMemoryMb } from '../../support/process.ts';
import { useStore } from '../../support/store.ts';
import { zstd } from '../../support/zstd.ts';

const stores = new ObjectStores({ env: {} });
const db = useStore();
let account: string;
let home: string;
const { counted, env, file, folder, run } = useLoader(db, (own) => {
  ({ account, home } = own);
});

const ingest = (...args: string[]): Promise<Ended> => run(['ingest', 'events', ...args]);

/** Must fail with a message that names the file and says why, and load nothing. */
async function refused(path: string, reason: string | RegExp, ...flags: string[]): Promise<void> {
  const { code, stdout, stderr } = await ingest(path, ...flags);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain(path);
  expect(stderr).toMatch(reason);
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(await counted()).toBe(0);
}

const events = (count: number, fields: Partial<EventLine> = {}) =>
  Array.from({ length: count }, () => event({ advertiser_id: account, ...fields }));

const text = () => Buffer.from(ndjson(events(300)));
const noise = () => Buffer.alloc(3_000, Buffer.from([0x9c, 0x01, 0xff]));
const cut = (packed: Buffer) => packed.subarray(0, packed.length - 40);
function damaged(packed: Buffer): Buffer {
  const copy = Buffer.from(packed);
  copy.fill(0xff, copy.length >> 1, (copy.length >> 1) + 20);
  return copy;
}

function wrongChecksum(packed: Buffer): Buffer {
  const copy = Buffer.from(packed);
  copy[copy.length - 1] = ~(copy.at(-1) ?? 0);
  return copy;
}

const withMore = (packed: Buffer) => Buffer.concat([packed, Buffer.from('more')]);
const twice =
  (pack: (content: Buffer) => Buffer, gap = 0) =>
  () =>
    Buffer.concat([pack(text()), Buffer.alloc(gap), pack(text())]);

describe('a packed file that is broken loads nothing and says so', () => {
  test.each<[string, string, () => Buffer, RegExp]>([
    ['gzip, cut off', 'e.ndjson.gz', () => cut(gzipSync(text())), /ends too early: it is truncated/],
    // What the damaged bytes say may also be that more should come.
    ['gzip, damaged', 'e.ndjson.gz', () => damaged(gzipSync(text())), /gzip data is damaged|truncated/],
    ['not gzip at all', 'e.ndjson.gz', noise, /holds neither gzip data nor text/],
    ['brotli, cut off', 'e.csv.br', () => cut(brotliCompressSync(text())), /ends too early: it is truncated/],
    ['brotli, damaged', 'e.csv.br', () => damaged(brotliCompressSync(text())), /damaged|truncated/],
    [
      'brotli, two one after the other',
      'e.ndjson.br',
      twice(brotliCompressSync),
      /more bytes follow the end/,
    ],
    ['brotli, and more', 'e.ndjson.br', () => withMore(brotliCompressSync(text())), /more bytes follow/],
    ['gzip, and more', 'e.ndjson.gz', () => withMore(gzipSync(text())), /gzip data is damaged/],
    ['gzip, two with a gap', 'e.ndjson.gz', twice(gzipSync, 512), /more bytes follow the end/],
    ['zstd, cut off', 'e.ndjson.zst', () => cut(zstd()), /truncated/],
    ['zstd, damaged', 'e.ndjson.zst', () => damaged(zstd()), /zstd data is damaged/],
    ['zstd, wrong checksum', 'e.ndjson.zst', () => wrongChecksum(zstd()), /zstd data is damaged/],
    ['not zstd at all', 'e.ndjson.zst', noise, /holds neither zstd data nor text/],
    ['not Parquet at all', 'e.parquet', text, /is not a Parquet file, or it is cut off/],
    ['Parquet, empty', 'e.parquet', () => Buffer.alloc(0), /is not a Parquet file, or it is cut off/],
  ])('%s', async (_, name, content, reason) => refused(await file(name, content()), reason));

  test.each([
    ['at its end', 1000],
    ['in the middle', 4],
  ])('Parquet, cut off %s', async (_, part) => {
    const whole = await parquet(5_000);
    await refused(
      await file('e.parquet', whole.subarray(0, -Math.ceil(whole.length / Number(part)))),
      /Parquet/,
    );
  });

  test('and the whole file completes what came before the break', async () => {
    const lines = ndjson(events(2_000));
    const whole = gzipSync(lines);
    const path = await file('e.ndjson.gz', whole.subarray(0, whole.length >> 1));
    expect((await ingest('--chunk-bytes', '20000', path)).code).toBe(1);
    const before = await counted();
    expect(before).toBeGreaterThan(0);
    await file('e.ndjson.gz', whole);
    const { stdout } = await ingest('--json', path);
    expect(JSON.parse(stdout)).toMatchObject({ rows: 2_000 - before, repeated_rows: before });
    expect(await counted()).toBe(2_000);
  });
});

async function parquet(rows: number, quantity = '1'): Promise<Buffer> {
  const { stream } = await db.store.exec({
    query: `SELECT concat({account:String}, '-', toString(number)) AS event_id, '2026-03-01 12:00:00' AS event_time,
                   'impression' AS event_type, {account:String} AS advertiser_id, 'campaign' AS campaign_id,
                   toString(${quantity}) AS quantity FROM numbers({rows:UInt32}) FORMAT Parquet`,
    query_params: { account, rows },
  });
  return buffer(stream);
}

test('a line without end is refused in bounded memory', async () => {
  const { CLICKHOUSE_URL = '', ...rest } = env();
  const loader = spawn(process.execPath, [...startOf('src/cli'), 'ingest', 'events', '-'], {
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
    env: { PATH: process.env.PATH, CLICKHOUSE_URL, ...rest },
  });
  const said = buffer(loader.stderr);
  let closed = false;
  let peak = 0;
  loader.stdin.on('error', () => {
    closed = true;
  });
  const ended = new Promise((resolve) => loader.once('close', resolve));
  const block = Buffer.alloc(1 << 20, 'x');
  for (let sent = 0; sent < 200 && !closed; sent++) {
    await new Promise<void>((resolve) => loader.stdin.write(block, () => resolve()));
    peak = Math.max(peak, peakMemoryMb(loader.pid ?? 0) || 0);
  }
  loader.stdin.end();
  expect(await ended).toBe(1);
  expect((await said).toString()).toMatch(/- line 1: no line end within 16 MiB/);
  expect(peak).toBeGreaterThan(0);
  expect(peak).toBeLessThan(500);
});

describe('a file that cannot be read', () => {
  test.each<[string, RegExp]>([
    ['missing.csv', /there is no such file/],
    ['missing-*.csv', /no file there/],
    ['folder', /no file there/],
    ['e', /the name does not tell the format/],
  ])('%s is named', async (name, reason) => {
    await mkdir(join(home, 'folder'));
    await file('e', ndjson(events(1)));
    await refused(join(home, name), reason);
  });

  test('stops the run before the files beside it where its name tells no format', async () => {
    await file('a.ndjson', ndjson(events(2)));
    await file('b.txt', 'notes');
    const { code, stderr } = await ingest(home);
    expect(code).toBe(1);
    expect(stderr).toContain(`${join(home, 'b.txt')}: the name does not tell the format`);
    expect(await counted()).toBe(0);
  });

  test.each(['a file', 'a folder', 'a folder below a pattern'])(
    'for want of permission is named: %s',
    async (kind) => {
      const path = kind === 'a file' ? await file('e.ndjson', ndjson(events(2))) : join(home, 'locked');
      if (kind !== 'a file') await mkdir(path);
      const arg = kind === 'a folder below a pattern' ? join(home, '*/*.ndjson') : path;
      for (const [place, mode] of [
        [folder, 0o755],
        [home, 0o755],
        [path, 0],
      ] as const)
        await chmod(place, mode);
      const loading = asNobody(async () => {
        const [input = new LocalFile(path)] = await expandFiles([arg], stores);
        await loadEvents({ store: db.store, input, chunkBytes: 1000, now: () => new Date() });
      });
      await expect(loading).rejects.toThrow(`${path}: no permission to read it`);
      await chmod(path, 0o700);
    },
  );

  test('for want of permission is none of a lost+found below a pattern', async () => {
    const path = await file('e.ndjson', ndjson(events(2)));
    const lost = join(home, 'lost+found');
    await mkdir(lost, 0);
    await chmod(folder, 0o755);
    await chmod(home, 0o755);
    const found = await asNobody(() => expandFiles([join(home, '**/*.ndjson')], stores));
    expect(found.map(({ name }) => name)).toEqual([path]);
  });
});

/** Root may read everything: where the tests run as root, somebody else has to try. */
async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  return work().finally(() => process.seteuid?.(0));
}
