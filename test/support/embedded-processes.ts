import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { Server } from '../../clickhouse/client.ts';
import { startOf } from './compiled.ts';

/** The engine that serves DATA_DIR, as its owner finds it; undefined while none does. */
export function engineIn(dataDir: string): { pid: number; address: Server } | undefined {
  const file = join(dataDir, 'clickhouse.json');
  if (!existsSync(file)) return undefined;
  const { url, pid, passwords } = JSON.parse(readFileSync(file, 'utf8'));
  return { pid, address: { url, user: 'adtally', password: passwords.adtally } };
}

/** A process that holds a lease until it is told to leave, or killed. */
export interface Holder {
  readonly url: string;
  readonly address: Server;
  /** Of the engine. */
  readonly pid: number;
  readonly process: ChildProcess;
  /** Resolves when the holder has released and ended. */
  leave(): Promise<void>;
}

export function startHolder(
  dataDir: string,
  env: NodeJS.ProcessEnv = process.env,
): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [...startOf('test/support/embedded-holder'), dataDir], { env });
}

/** Waits until `holder` has its lease. Throws with what it said when it ends without one. */
export async function leaseOf(holder: ChildProcessWithoutNullStreams): Promise<Holder> {
  for await (const line of createInterface({ input: holder.stdout })) {
    const leave = async (): Promise<void> => {
      holder.stdin.end();
      await once(holder, 'exit');
    };
    return { ...(JSON.parse(line) as Omit<Holder, 'process' | 'leave'>), process: holder, leave };
  }
  throw new Error(`the holder got no lease: ${await text(holder.stderr)}`);
}
