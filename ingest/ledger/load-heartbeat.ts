import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { deadAfterMs } from '../../clickhouse/timings.ts';

/** Where a load runs. */
export interface LoadHeartbeat {
  readonly host: string;
  readonly pid: number;
}

/** Whether a load of `loads AS l` has shown lately that it runs. */
export const fresh = `l.version > now64(6) - toIntervalMillisecond(${deadAfterMs})`;

/** Ids of the loads that may be sending events: their last heartbeat is recent. */
export const runningLoads = `SELECT load_id FROM loads AS l FINAL WHERE state = 'running' AND kind != 'rebuild' AND ${fresh}`;

/** The state of a load of `loads AS l`; one whose heartbeats have stopped will not continue. */
export const stateColumn = `if(l.state = 'running' AND NOT ${fresh}, 'dead', toString(l.state))`;

/**
 * Identifies the PID namespace: host name plus a hash of the boot id and the namespace, since containers and cloned
 * machines can share a host name.
 */
export function machine(): string {
  here ??= readMachine();
  return here;
}

let here: string | undefined;

function readMachine(): string {
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

/** Whether a load with a fresh heartbeat still runs: a load on this machine does while its process exists. */
export function isAlive({ host, pid }: LoadHeartbeat): boolean {
  if (host !== machine()) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Looked up once: that opens a file, and each load says it three times. */
export function userName(): string {
  user ??= readUserName();
  return user;
}

let user: string | undefined;

/** The user of a container can have a number and no name. */
function readUserName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}
