import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, statfsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { prepareDataDir } from './data-dir.ts';
import { type EmbeddedLease, joinEmbedded } from './join.ts';
import { spawnModule, storeLockedExitCode } from './spawn.ts';
import { type EmbeddedState, logFile, readState } from './state.ts';

export type { EmbeddedLease } from './join.ts';

const startLimitMs = 30_000;
const pollMs = 20;
const lockedPauseMs = 200;

/** The embedded ClickHouse is not installed, or it does not exist for this platform. */
export class EmbeddedUnavailable extends Error {
  override readonly name = 'EmbeddedUnavailable';
}

/**
 * Joins the embedded ClickHouse of `dataDir`, or starts it. Any number of processes may do so at the same time and
 * share one engine. The lease keeps this process alive; it ends with `release()` or with the process, however that
 * ends.
 * @param database whose reports the reporter may read, besides those of the databases that are there at the start
 * @throws {EmbeddedUnavailable} when the engine is needed and not installed; `dataDir` is then not made
 * @throws {Error} naming DATA_DIR or the log file when it cannot be written or ClickHouse does not start
 */
export async function acquireEmbedded(dataDir: string, database = 'adtally'): Promise<EmbeddedLease> {
  // Whoever forgot CLICKHOUSE_URL finds no empty store afterwards. One that runs already needs no engine of ours.
  if (!existsSync(dataDir)) await requireLibrary();
  const home = prepareDataDir(dataDir);
  const deadline = performance.now() + startLimitMs;
  let own: ChildProcess | undefined;
  let rejected: EmbeddedState | undefined;

  for (;;) {
    const state = readState(home);
    // A file that led nowhere is tried again only when the supervisor started because of it has ended.
    if (state !== undefined && !(own && isDeepStrictEqual(state, rejected))) {
      const joined = await joinEmbedded(home, state);
      if (joined !== undefined) {
        // Ours lost the race. It has to be gone before the lease ends, or it would start when the winner stops.
        if (own && own.pid !== joined.supervisorPid) await stopSupervisor(own);
        return joined.lease;
      }
      rejected = state;
    }
    if (performance.now() > deadline) {
      own?.kill('SIGTERM');
      throw new Error(`the embedded ClickHouse did not start within 30 s; ${reasonIn(home)}`);
    }
    own ??= await spawnSupervisor(home, database);
    await delay(pollMs);
    if (isRunning(own)) continue;
    if (own.exitCode !== null && own.exitCode !== 0 && own.exitCode !== storeLockedExitCode) {
      throw new Error(`the embedded ClickHouse could not be started; ${reasonIn(home)}`);
    }
    own = undefined;
    await delay(lockedPauseMs);
  }
}

/** A full disk keeps it from writing its log, too. */
function reasonIn(home: string): string {
  return statfsSync(home).bavail === 0
    ? `the disk of ${home} is full: make room, then run the same command again`
    : `see ${logFile(home)}`;
}

async function spawnSupervisor(home: string, database: string): Promise<ChildProcess> {
  await requireLibrary();
  const log = openSync(logFile(home), 'a', 0o600);
  try {
    // Its own session: Ctrl-C in the terminal of a holder does not reach it.
    const supervisor = spawnModule('supervisor', [home, database], {
      detached: true,
      stdio: ['ignore', log, log],
    });
    await once(supervisor, 'spawn');
    supervisor.unref();
    return supervisor;
  } finally {
    closeSync(log);
  }
}

async function stopSupervisor(supervisor: ChildProcess): Promise<void> {
  if (!isRunning(supervisor)) return;
  supervisor.kill('SIGTERM');
  await once(supervisor, 'exit');
}

function isRunning(process: ChildProcess): boolean {
  return process.exitCode === null && process.signalCode === null;
}

/** It is an optional peer of the package: `--omit=optional` does not keep 550 MB off a global installation (npm 11). */
async function requireLibrary(): Promise<void> {
  try {
    const { resolveLibchdb } = await import('chdb/libchdb');
    resolveLibchdb();
    await import('ffi-rs');
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND') {
      throw new EmbeddedUnavailable(
        'there is no ClickHouse here: set CLICKHOUSE_URL to a ClickHouse server, or install the embedded one beside adtally: npm install --global chdb@3 ffi-rs@1 (without --global where adtally was installed without it)',
        { cause },
      );
    }
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new EmbeddedUnavailable(
      `the embedded ClickHouse cannot run here, on ${process.platform}-${process.arch}; set CLICKHOUSE_URL to a ClickHouse server: ${reason}`,
      { cause },
    );
  }
}
