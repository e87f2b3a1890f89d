import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { type Store, select } from '../../clickhouse/client.ts';

/** A load of which the store heard nothing for so long is dead. */
export const deadAfterSeconds = 15;

/** What a load says of where it runs, and whether it said so lately. */
export interface LoadHeartbeat {
  readonly host: string;
  readonly pid: number;
  readonly heartbeatIsFresh: 0 | 1;
}

/** The columns of a `LoadHeartbeat`, of `loads AS l`. */
export const heartbeatColumns = `host, pid, l.version > now64(6) - toIntervalSecond(${deadAfterSeconds}) AS heartbeatIsFresh`;

/**
 * Where processes have numbers of their own: the host, with a mark of its start and of the container, as containers
 * and copied machines can have the same name.
 */
export function machine(): string {
  try {
    const start = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const own = createHash('sha256')
      .update(`${start} ${readlinkSync('/proc/self/ns/pid')}`)
      .digest('hex');
    return `${hostname()}/${own.slice(0, 8)}`;
  } catch {
    return hostname();
  }
}

/** Whether a load that says it runs still does: its heartbeats are fresh and, on this machine, its process lives. */
export function isAlive({ host, pid, heartbeatIsFresh }: LoadHeartbeat): boolean {
  if (!heartbeatIsFresh) return false;
  if (host !== machine() || pid === process.pid) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** Which of these loads are running now. */
export async function aliveLoads(store: Store, ids: readonly string[]): Promise<string[]> {
  const rows = await select<LoadHeartbeat & { id: string }>(
    store,
    `SELECT load_id AS id, ${heartbeatColumns} FROM loads AS l FINAL
     WHERE load_id IN {ids:Array(String)} AND state = 'running'`,
    { ids },
  );
  return rows.filter(isAlive).map(({ id }) => id);
}
