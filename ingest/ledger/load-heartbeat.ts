import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { type Store, select } from '../../clickhouse/client.ts';
import type { LoadTimings } from './load-timings.ts';
import { loadsAtWork } from './loads-at-work.ts';

/** Where a load runs, and whether its last heartbeat is recent. */
export interface LoadHeartbeat {
  readonly host: string;
  readonly pid: number;
  readonly heartbeatIsFresh: 0 | 1;
}

/** Whether a load of `loads AS l` has shown lately that it runs. Takes `deadAfterMs`. */
export const fresh = 'l.version > now64(6) - toIntervalMillisecond({deadAfterMs:UInt32})';

/** The columns of a `LoadHeartbeat`, of `loads AS l`; takes the parameter `deadAfterMs`. */
const heartbeatColumns = `host, pid, ${fresh} AS heartbeatIsFresh`;

/** Ids of the loads that may be sending events: their last heartbeat is recent. Takes `deadAfterMs`. */
export const runningLoads = `SELECT load_id FROM loads AS l FINAL WHERE state = 'running' AND kind != 'rebuild' AND ${fresh}`;

/** The state of a load of `loads AS l`; one whose heartbeats have stopped will not continue. Takes `deadAfterMs`. */
export const stateColumn = `if(l.state = 'running' AND NOT ${fresh}, 'dead', toString(l.state))`;

/**
 * Identifies the PID namespace: host name plus a hash of the boot id and the namespace, since containers and cloned
 * machines can share a host name.
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

/** Whether a load recorded as running still is: its heartbeat is fresh and, on this machine, its process exists. */
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

/** Which of these loads are running; if none is, those that have ended and left a server at work. */
export async function aliveLoads(
  store: Store,
  ids: readonly string[],
  { deadAfterMs }: LoadTimings,
): Promise<string[]> {
  const rows = await select<LoadHeartbeat & { id: string }>(
    store,
    `SELECT load_id AS id, ${heartbeatColumns} FROM loads AS l FINAL
     WHERE load_id IN {ids:Array(String)} AND state = 'running'`,
    { ids, deadAfterMs },
  );
  const alive = rows.filter(isAlive).map(({ id }) => id);
  if (alive.length > 0) return alive;
  // After the look at the processes: whatever has died by now has sent its last statement.
  const atWork = await loadsAtWork(store);
  return ids.filter((id) => atWork.has(id));
}
