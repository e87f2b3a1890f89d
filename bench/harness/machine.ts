import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { arch, availableParallelism, cpus, loadavg, platform, release, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Address } from '../../clickhouse/client.ts';
import { connect, select } from '../../clickhouse/client.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const packages = [
  '@clickhouse/client',
  'hono',
  '@hono/node-server',
  'chdb',
  '@duckdb/node-api',
  '@hypequery/clickhouse',
  'postgres',
];

/** What a result depends on besides the code; without it a number means nothing. */
export interface Environment {
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  /** The commit of the checkout, with `+` when files differ from it. */
  readonly commit: string;
  readonly at: string;
}

/** Reads the machine, the versions and the commit. */
export async function describeEnvironment(server: Address): Promise<Environment> {
  const store = connect({ ...server, database: 'default' });
  const [clickhouse] = await select<{ version: string }>(store, 'SELECT version() AS version');
  await store.close();
  const installed = packages.map((name) => [name, installedVersion(name)]);
  return {
    machine: {
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: availableParallelism(),
      memory_gb: Math.round(totalmem() / 2 ** 30),
      kernel: `${platform()} ${release()} ${arch()}`,
      // What else was running when the benchmark began.
      load_1_minute: Math.round((loadavg()[0] ?? 0) * 100) / 100,
    },
    versions: {
      node: process.version,
      clickhouse: clickhouse?.version ?? 'unknown',
      ...Object.fromEntries(installed),
    },
    commit: commit(),
    at: new Date().toISOString(),
  };
}

function installedVersion(name: string): string {
  try {
    return JSON.parse(readFileSync(`${checkout}node_modules/${name}/package.json`, 'utf8')).version;
  } catch {
    return 'not installed';
  }
}

function commit(): string {
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', checkout, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    return `${git('rev-parse', '--short=12', 'HEAD').trim()}${git('status', '--porcelain') ? '+' : ''}`;
  } catch {
    return 'not a git checkout';
  }
}
