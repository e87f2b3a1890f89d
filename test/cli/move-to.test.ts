import { appendFileSync, existsSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { link, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test, vi } from 'vitest';
import { defaultMapping } from '../../ingest/event/mapping.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadAll } from '../../src/cli/ingest/load-all.ts';
import { moveInto } from '../../src/cli/ingest/move-loaded.ts';
import { event, ndjson } from '../support/events.ts';
import { useLoader } from '../support/loader.ts';
import { outputOf } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const { own, file, run, counted } = useLoader(db);
const some = (...names: string[]) =>
  ndjson(names.map((name) => event({ advertiser_id: own.account, campaign_id: name })));

async function folders(): Promise<{ inbox: string; done: string }> {
  const [inbox, done] = [join(own.home, 'inbox'), join(own.home, 'done')];
  await file('x', '');
  await mkdir(inbox);
  await mkdir(done);
  return { inbox, done };
}

test('loaded files are moved, also those with rejected rows and those that were loaded before; a failed one stays', async () => {
  const { inbox, done } = await folders();
  await writeFile(join(inbox, 'a.ndjson'), some('a'));
  expect((await run(['ingest', 'events', inbox])).code).toBe(0);
  await writeFile(join(inbox, 'b.ndjson.gz'), gzipSync(some('b')));
  await writeFile(join(inbox, 'c.ndjson'), `${some('c')}\n{"event_type":"nothing"}`);
  await writeFile(join(inbox, 'd.csv'), 'no,columns\n1,2\n');
  const { code, stderr } = await run(['ingest', 'events', inbox, '--move-to', done]);
  expect(code, stderr).toBe(1);
  expect(await readdir(inbox)).toEqual(['d.csv']);
  expect((await readdir(done)).sort()).toEqual(['a.ndjson', 'b.ndjson.gz', 'c.ndjson']);
  expect(await counted()).toBe(3);
});

test('no file that is there already is overwritten; the same file is there once', async () => {
  const { inbox, done } = await folders();
  await writeFile(join(done, 'a.ndjson'), 'another');
  const [a, c] = [some('a'), some('c')];
  await writeFile(join(inbox, 'a.ndjson'), a);
  // As a run leaves them that was killed between the two steps of a move.
  await writeFile(join(inbox, 'b.ndjson'), some('b'));
  await link(join(inbox, 'b.ndjson'), join(done, 'b.ndjson'));
  await writeFile(join(inbox, 'c.ndjson'), c);
  await writeFile(join(done, 'c.ndjson'), c);
  await outputOf(run(['ingest', 'events', inbox, '--move-to', done]));
  expect(await readdir(inbox)).toEqual([]);
  expect((await readdir(done)).sort()).toEqual(['a.2.ndjson', 'a.ndjson', 'b.ndjson', 'c.ndjson']);
  expect(await readFile(join(done, 'a.ndjson'), 'utf8')).toBe('another');
  expect(await readFile(join(done, 'a.2.ndjson'), 'utf8')).toBe(a);
});

/** A file that somebody changes right before it is looked at for the third time. */
class ChangingFile extends LocalFile {
  #looks = 0;
  readonly #change: () => void;

  constructor(path: string, change: () => void) {
    super(path);
    this.#change = change;
  }

  override look() {
    if (++this.#looks === 3) this.#change();
    return super.look();
  }
}

test('a file that takes the place of another one while that is loaded stays, and is loaded next time', async () => {
  const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const { inbox, done } = await folders();
  const [path, next] = [join(inbox, 'a.ndjson'), join(own.home, 'next')];
  await writeFile(path, some('a', 'b'));
  await writeFile(next, some('c'));
  const flags = { moveTo: done, quiet: true };
  const { signal } = new AbortController();
  const loads = { store: db.store, flags, mapping: defaultMapping, size: {}, signal };
  await loadAll(loads, [new ChangingFile(path, () => renameSync(next, path))]);
  await writeFile(next, some('d'));
  // A follower goes on by itself.
  const following = { onLoaded: async () => {} };
  await loadAll(loads, [new ChangingFile(path, () => renameSync(next, path))], following);
  expect(said.mock.calls.join('').match(/stays: .*/g)).toEqual([
    'stays: run the same command again',
    'stays: it is read again',
  ]);
  said.mockRestore();
  expect(await readdir(done)).toEqual([]);
  expect((await run(['ingest', 'events', inbox, '--move-to', done])).code).toBe(0);
  expect(await readdir(done)).toEqual(['a.ndjson']);
  expect(await counted()).toBe(4);
});

// On most Linux machines one of them is in memory.
const otherDisk = ['/dev/shm', '/var/tmp'].find(
  (folder) => existsSync(folder) && statSync(folder).dev !== statSync(tmpdir()).dev,
);

test.each(['is there already', ...(otherDisk ? ['is on another disk'] : [])])(
  'what is written to a file while it is moved to a folder that %s stays with it',
  async (where) => {
    const { inbox, done } = await folders();
    const folder = where === 'is there already' ? done : mkdtempSync(join(otherDisk ?? '', 'adtally-'));
    const path = join(inbox, 'a.ndjson');
    const [a, b] = [some('a'), some('b')];
    await writeFile(path, a);
    if (folder === done) await writeFile(join(done, 'a.ndjson'), a);
    const file = new ChangingFile(path, () => appendFileSync(path, b));
    const { version } = file.look();
    try {
      expect(await moveInto(folder, file, version)).toBe(false);
      expect(await readFile(path, 'utf8')).toBe(a + b);
      expect(await readdir(folder)).toEqual(folder === done ? ['a.ndjson'] : []);
    } finally {
      if (folder !== done) rmSync(folder, { recursive: true });
    }
  },
);

test('a folder that would be read again, is not there, or cannot take what is loaded, is refused before anything is loaded', async () => {
  const { inbox, done } = await folders();
  await writeFile(join(inbox, 'a.ndjson'), some('a'));
  await mkdir(join(inbox, 'done'));
  const refused = async (...args: string[]) => {
    const { code, stderr } = await run(
      ['ingest', 'events', ...args],
      args[0] === '-' ? some('a') : undefined,
    );
    expect(code, stderr).toBe(2);
    return stderr;
  };
  expect(await refused(inbox, '--move-to', inbox)).toMatch(/read again/);
  expect(await refused(join(inbox, '**/*.ndjson'), '--move-to', join(inbox, 'done'))).toMatch(/read again/);
  expect(await refused(join(inbox, '*.ndjson'), '--move-to', inbox)).toMatch(/read again/);
  expect(await refused(inbox, '--move-to', join(own.home, 'nowhere'))).toMatch(/no such folder/);
  expect(await refused('-', '--move-to', done)).toMatch(/standard input/);
  expect(await refused(inbox, '--dry-run', '--move-to', done)).toMatch(/--dry-run/);
  expect(await counted()).toBe(0);
  expect((await run(['ingest', 'events', inbox, '--move-to', join(inbox, 'done')])).code).toBe(0);
  expect(await readdir(join(inbox, 'done'))).toEqual(['a.ndjson']);
});
