import { execFile } from 'node:child_process';
import { chownSync, existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onCleanup } from '../harness/cleanup.ts';
import { CannotRun } from './peer.ts';

const run = promisify(execFile);

/** PostgreSQL refuses to run as root. */
const nobody = 65534;
const debian = '/usr/lib/postgresql';

/**
 * Starts a PostgreSQL server on an empty folder and a loopback port, with settings for reports on this machine.
 * @throws {CannotRun} when no server is there and no server can be installed, or when it does not start
 */
export async function startPostgresql(): Promise<{ url: string; stop(): Promise<void> }> {
  const programs = findPrograms() ?? (await install());
  const folder = await mkdtemp(join(tmpdir(), 'adtally-bench-postgresql-'));
  const root = process.getuid?.() === 0;
  if (root) chownSync(folder, nobody, nobody);
  const options = {
    cwd: folder,
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    ...(root && { uid: nobody, gid: nobody }),
  };
  const pg = (program: string, ...args: string[]) => run(join(programs, program), args, options);
  const data = join(folder, 'data');
  const port = 20_000 + (process.pid % 10_000);
  const megabytes = (share: number) => `${Math.round((totalmem() * share) / 2 ** 20)}MB`;
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: "''",
    shared_buffers: megabytes(0.1),
    effective_cache_size: megabytes(0.4),
    work_mem: '512MB',
    max_wal_size: '8GB',
    max_connections: 80,
    random_page_cost: 1.1,
    jit: 'off',
  };
  const stop = onCleanup(async () => {
    await pg('pg_ctl', '-D', data, '-w', '-m', 'immediate', 'stop').catch(() => undefined);
    await rm(folder, { recursive: true, force: true });
  });
  try {
    await pg('initdb', '-D', data, '-U', 'bench', '--auth=trust', '--locale=C', '--encoding=UTF8');
    const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
    await pg('pg_ctl', '-D', data, '-w', '-l', join(folder, 'log'), '-o', flags.join(' '), 'start');
  } catch (cause) {
    await stop();
    const why = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    throw new CannotRun(`it did not start: ${why}`, { cause });
  }
  return { url: `postgres://bench@127.0.0.1:${port}/postgres`, stop };
}

/** The folder of initdb and pg_ctl: where Debian has it, the latest first, or on the search path. */
function findPrograms(): string | undefined {
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env.PATH ?? '').split(':'),
  ];
  return folders.find((folder) => existsSync(join(folder, 'initdb')));
}

async function install(): Promise<string> {
  const command = 'apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql';
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  if (process.getuid?.() === 0) await run('sh', ['-c', command], { env: environment }).catch(() => undefined);
  const installed = findPrograms();
  if (!installed) throw new CannotRun('no server was found, nor could one be installed with apt-get');
  return installed;
}
