import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Address } from '../../clickhouse/client.ts';
import { pollFor } from '../../clickhouse/poll.ts';
import { onCleanup } from './cleanup.ts';

const run = promisify(execFile);
const checkout = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Compiles adtally and the peers to plain JavaScript and returns the folder. Production runs JavaScript, too, and a
 * TypeScript loader would take memory.
 */
export async function compile(): Promise<string> {
  // Inside node_modules, so that packages are found.
  const cache = join(checkout, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'adtally-bench-'));
  const remove = onCleanup(() => rm(folder, { recursive: true, force: true }));
  try {
    const tsc = join(checkout, 'node_modules/.bin/tsc');
    await run(tsc, ['-p', join(checkout, 'bench/tsconfig.json'), '--outDir', folder]);
    await cp(join(checkout, 'package.json'), join(folder, 'package.json'));
    for (const data of ['migrations', 'config']) {
      await cp(join(checkout, 'clickhouse', data), join(folder, 'clickhouse', data), { recursive: true });
    }
    return folder;
  } catch (error) {
    await remove();
    throw error;
  }
}

export interface ServerProcess {
  readonly url: string;
  readonly pid: number;
  /** The largest resident memory up to now, in MB. */
  peakMemoryMb(): number;
  stop(): Promise<void>;
}

/** Starts a program of the compiled folder and waits until its log says where it listens. */
export async function startServer(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<ServerProcess> {
  const log = join(folder, `server-${performance.now()}.log`);
  const file = openSync(log, 'w');
  const { PATH = '', HOME = '', TMPDIR } = process.env;
  const child = spawn(process.execPath, [...args], {
    cwd: folder,
    env: { PATH, HOME, ...(TMPDIR && { TMPDIR }), NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'ignore', file],
  });
  closeSync(file);
  const { pid } = child;
  if (pid === undefined) throw new Error('a server process could not be started');
  const stop = onCleanup(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill();
    await ended;
  });
  const findUrl = () => {
    if (child.exitCode !== null) throw new Error(`exit code ${child.exitCode}`);
    return /listening on (http:[^\s";]+)/.exec(readFileSync(log, 'utf8'))?.[1];
  };
  try {
    const url = await pollFor(findUrl, { pollMs: 20, signal: AbortSignal.timeout(120_000) });
    return { url, pid, peakMemoryMb: () => peakMemoryMb(pid), stop };
  } catch (cause) {
    await stop();
    const end = readFileSync(log, 'utf8').trim().slice(-500);
    throw new Error(`${args.join(' ')} did not start: ${end}`, { cause });
  }
}

/** `adtally serve` with limits too high to matter, because the other side has none. */
export function startService(
  folder: string,
  address: Address,
  env: Readonly<Record<string, string>> = {},
): Promise<ServerProcess> {
  return startServer(folder, ['src/cli.js', 'serve'], {
    ...storeEnvironment(address),
    PORT: '0',
    RATE_LIMIT_REQUESTS: '1000000000',
    MAX_CONCURRENT_REPORTS: '128',
    ...env,
  });
}

export function storeEnvironment(address: Address): Record<string, string> {
  return {
    CLICKHOUSE_URL: address.url,
    CLICKHOUSE_USER: address.user,
    CLICKHOUSE_PASSWORD: address.password,
    CLICKHOUSE_DATABASE: address.database,
  };
}

/** VmHWM of a process in MB; NaN where there is no /proc. */
export function peakMemoryMb(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}
