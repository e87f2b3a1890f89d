import { spawn } from 'node:child_process';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { ObjectStores } from '../../../ingest/objects/object-stores.ts';
import { expandFiles } from '../../../ingest/places/expand-files.ts';
import { startOf } from '../../support/compiled.ts';
import { ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { type Ended, peakMemoryMb } from '../../support/process.ts';
import { useStore } from '../../support/store.ts';

const stores = new ObjectStores({ env: {} });
const db = useStore();
const { own, counted, env, events, file, folder, run } = useLoader(db);

const ingest = (...args: string[]): Promise<Ended> => run(['ingest', 'events', ...args]);

test('a packed file that is cut off is told without a stack trace; the whole file completes what came before the break', async () => {
  const whole = gzipSync(ndjson(events(2_000)));
  const path = await file('e.ndjson.gz', whole.subarray(0, whole.length >> 1));
  const { code, stdout, stderr } = await ingest('--chunk-bytes', '20000', path);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain(`${path}: `);
  expect(stderr).toMatch(/ends too early: it is truncated/);
  expect(stderr).not.toMatch(/^\s+at /m);
  const before = await counted();
  expect(before).toBeGreaterThan(0);
  await file('e.ndjson.gz', whole);
  const again = await ingest('--json', path);
  expect(JSON.parse(again.stdout)).toMatchObject({ rows: 2_000 - before, repeated_rows: before });
  expect(await counted()).toBe(2_000);
});

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
  test('stops the run before the files beside it where its name tells no format', async () => {
    await file('a.ndjson', ndjson(events(2)));
    await file('b.txt', 'notes');
    const { code, stderr } = await ingest(own.home);
    expect(code).toBe(1);
    expect(stderr).toContain(`${join(own.home, 'b.txt')}: the name does not tell the format`);
    expect(await counted()).toBe(0);
  });

  test.each(['a file', 'a folder', 'a folder below a pattern'])(
    'for want of permission is named: %s',
    async (kind) => {
      const path = kind === 'a file' ? await file('e.ndjson', ndjson(events(2))) : join(own.home, 'locked');
      if (kind !== 'a file') await mkdir(path);
      const arg = kind === 'a folder below a pattern' ? join(own.home, '*/*.ndjson') : path;
      for (const [place, mode] of [
        [folder, 0o755],
        [own.home, 0o755],
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
    const lost = join(own.home, 'lost+found');
    await mkdir(lost, 0);
    await chmod(folder, 0o755);
    await chmod(own.home, 0o755);
    const found = await asNobody(() => expandFiles([join(own.home, '**/*.ndjson')], stores));
    expect(found.map(({ name }) => name)).toEqual([path]);
    await chmod(lost, 0o700);
  });
});

/** Root may read everything: where the tests run as root, somebody else has to try. */
async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  return work().finally(() => process.seteuid?.(0));
}
