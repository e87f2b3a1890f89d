import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { globSync } from 'tinyglobby';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect, select } from '../../clickhouse/client.ts';
import { embedded } from '../support/compiled.ts';
import { leaseOf, startHolder } from '../support/embedded-processes.ts';
import { isRoot, nobody } from '../support/strangers.ts';

const { acquireEmbedded } = await embedded();
let root: string;
let dataDir: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'adtally-data-dir-'));
  dataDir = join(root, 'data');
  mkdirSync(dataDir);
});
afterEach(() => rmSync(root, { recursive: true, maxRetries: 20 }));

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** What a process said that held the engine of DATA_DIR for a moment. */
async function hold(): Promise<string> {
  const child = startHolder(dataDir);
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (data: string) => {
    said += data;
  });
  const holder = await leaseOf(child);
  await holder.leave();
  return said;
}

test('a DATA_DIR that others can read is closed to them, which is said once', async () => {
  chmodSync(dataDir, 0o755);
  expect(await hold()).toContain(`DATA_DIR ${dataDir} could be read by other users: its mode is 0700`);
  expect(modeOf(dataDir)).toBe('700');
  for (const made of ['store', 'store/metadata', 'clickhouse.log']) {
    expect(modeOf(join(dataDir, made))).toMatch(/^[67]00$/);
  }
  expect(await hold()).toBe('');
  // One of an earlier version.
  chmodSync(dataDir, 0o750);
  expect(await hold()).toContain('could be read by other users');
  expect(modeOf(dataDir)).toBe('700');
});

async function refuses(reason: string, dir = dataDir): Promise<void> {
  await expect(acquireEmbedded(dir)).rejects.toThrow(`DATA_DIR ${dir} ${reason}`);
  expect(existsSync(join(dir, 'clickhouse.log'))).toBe(false);
}

test('a DATA_DIR is refused in which others may have put something', async () => {
  mkdirSync(join(dataDir, 'store'));
  chmodSync(dataDir, 0o770);
  await refuses('could be written by other users');
  expect(modeOf(dataDir)).toBe('770');
});

test('a DATA_DIR with other content stays as it is, also when others can read it', async () => {
  writeFileSync(join(dataDir, 'letter.txt'), '');
  chmodSync(dataDir, 0o755);
  await refuses('can be read by other users and contains other files');
  expect(modeOf(dataDir)).toBe('755');
});

test('a DATA_DIR that is a symbolic link is refused', async () => {
  const link = join(root, 'link');
  symlinkSync(dataDir, link);
  await refuses('is a symbolic link', link);
  await refuses('is a symbolic link', `${link}/`);
});

test('a DATA_DIR of another user is refused', async () => {
  // Only root can give a folder away; everybody finds one of another user.
  if (isRoot) chownSync(dataDir, nobody, nobody);
  const others = isRoot ? dataDir : '/var/tmp';
  const reason = isRoot ? `belongs to another user (uid ${nobody})` : '';
  await expect(acquireEmbedded(others)).rejects.toThrow(`DATA_DIR ${others} ${reason}`);
});

test('a mutation that was cut off, as on a full disk, does not keep ClickHouse from its start', async () => {
  const rows = async (...statements: string[]) => {
    const lease = await acquireEmbedded(dataDir);
    const server = connect({ ...lease.address, database: 'default' });
    for (const query of statements) await server.command({ query });
    const left = await select<{ number: number }>(server, 'SELECT number FROM cut.numbers ORDER BY number');
    await server.close();
    await lease.release();
    return left.map(({ number }) => number);
  };
  const kept = await rows(
    'CREATE DATABASE cut',
    'CREATE TABLE cut.numbers (number UInt8) ENGINE = MergeTree ORDER BY number',
    'INSERT INTO cut.numbers VALUES (1), (2), (3), (4)',
    'ALTER TABLE cut.numbers DELETE WHERE number = 1 SETTINGS mutations_sync = 2',
    'ALTER TABLE cut.numbers DELETE WHERE number = 2 SETTINGS mutations_sync = 2',
    'ALTER TABLE cut.numbers DELETE WHERE number = 3 SETTINGS mutations_sync = 2',
  );
  expect(kept).toEqual([4]);
  const mutations = globSync('store/store/*/*/mutation_*.txt', { cwd: dataDir, absolute: true }).sort();
  expect(mutations).toHaveLength(3);
  const [empty = '', cut = '', whole = ''] = mutations;
  truncateSync(empty, 0);
  truncateSync(cut, 40);
  expect(await rows()).toEqual([4]);
  expect(mutations.filter((file) => existsSync(file))).toEqual([whole]);
  for (const file of [empty, cut])
    expect(readFileSync(join(dataDir, 'clickhouse.log'), 'utf8')).toContain(`removed ${file}`);
});
