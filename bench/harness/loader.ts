import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Address } from '../../clickhouse/client.ts';
import { processMs } from './cpu.ts';
import { peakMemoryMb, storeEnvironment } from './processes.ts';

export interface LoaderRun {
  readonly seconds: number;
  readonly peakMemoryMb: number;
  /** Of the command alone, without ClickHouse. */
  readonly cpuMs: number;
}

/**
 * Runs `adtally ingest events FILE` as its own process, timed from start to exit.
 * @throws when it fails; rejected rows are not a failure
 */
export async function runLoader(
  compiled: string,
  address: Address,
  file: string,
  flags: readonly string[] = [],
): Promise<LoaderRun> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['src/cli.js', 'ingest', 'events', file, '--quiet', ...flags], {
    cwd: compiled,
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...storeEnvironment(address) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let last = { peakMemoryMb: Number.NaN, cpuMs: Number.NaN };
  const sample = () => {
    const now = { peakMemoryMb: peakMemoryMb(child.pid ?? 0), cpuMs: processMs(child.pid ?? 0) };
    if (!Number.isNaN(now.peakMemoryMb)) last = now;
  };
  const sampling = setInterval(sample, 20);
  const [output, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  clearInterval(sampling);
  if (code !== 0 && code !== 4)
    throw new Error(`ingest ${file}: exit code ${code}: ${output.trim().slice(-500)}`);
  return { seconds: (performance.now() - startedAt) / 1000, ...last };
}

/** Sends a file to ClickHouse as one plain INSERT, with curl. @returns seconds @throws when ClickHouse refuses it */
export async function plainInsert(address: Address, file: string, query: string): Promise<number> {
  const search = new URLSearchParams({
    database: address.database,
    query,
    date_time_input_format: 'best_effort',
  });
  const handle = await open(file);
  const curl = spawn(
    'curl',
    [
      '--silent',
      '--show-error',
      '--fail-with-body',
      '--write-out',
      '%{time_total}',
      '--request',
      'POST',
      '--header',
      `x-clickhouse-user: ${address.user}`,
      '--header',
      `x-clickhouse-key: ${address.password}`,
      '--header',
      'expect:',
      '--upload-file',
      '-',
      `${address.url}/?${search}`,
    ],
    { stdio: [handle.fd, 'pipe', 'inherit'] },
  );
  const [output, [code]] = await Promise.all([text(curl.stdout ?? Readable.from([])), once(curl, 'exit')]);
  await handle.close();
  if (code !== 0) throw new Error(`INSERT of ${file}: ${output.slice(0, 500)}`);
  return Number(output);
}
