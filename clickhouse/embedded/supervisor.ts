/**
 * The supervisor process: `supervisor DATA_DIR DATABASE` owns one engine, restarts it when it dies and stops it when the
 * last lease ends. Exit codes: 0 stopped, 1 failed, 75 another engine uses the store.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { newAccess } from './access.ts';
import { removeCutMutations } from './cut-mutations.ts';
import { type Engine, launchEngine, type Ports, StoreLocked } from './launch.ts';
import { Leases } from './leases.ts';
import { guardPort } from './port-guard.ts';
import { storeLockedExitCode } from './spawn.ts';
import { logFile, removeState, storedDatabases, writeState } from './state.ts';

const shortLifeMs = 10_000;
/** Engines in a row that ended soon after their start: from the third on there is a pause, at the tenth we give up. */
const shortLivesBeforePause = 3;
const maxShortLives = 10;
const pauseMs = 1_000;

const [dataDir, database] = process.argv.slice(2);
if (dataDir === undefined || database === undefined) {
  throw new Error('usage: supervisor DATA_DIR DATABASE');
}

// Of all files of the store and the log.
process.umask(0o077);
const access = newAccess();
const leases = await Leases.listen(dataDir, access.secret);
const signalled = new Promise<string>((resolve) => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, resolve);
});

try {
  await supervise(dataDir, leases, Promise.race([signalled, leases.unused]));
} catch (error) {
  process.exitCode = error instanceof StoreLocked ? storeLockedExitCode : 1;
  if (!(error instanceof StoreLocked)) log(dataDir, String(error));
  removeState(dataDir, leases.port);
} finally {
  leases.close();
}

/** Runs engines, one after the other on the same ports, until `stopping`. @throws when it gives up */
async function supervise(dataDir: string, leases: Leases, stopping: Promise<string>): Promise<void> {
  let ports: Ports = { http: 0, tcp: 0 };
  let engine = launch(dataDir, ports);
  let served = false;
  let shortLives = 0;

  let stopped = false;
  const stop = stopping.then(async (reason) => {
    stopped = true;
    log(dataDir, `stopping: ${reason}`);
    leases.refuse();
    await engine.stop();
    removeState(dataDir, leases.port);
  });

  for (;;) {
    const startedAt = performance.now();
    const start = await engine.ready.catch(asError);
    if (stopped) return stop;
    if (!(start instanceof Error)) {
      ports = start;
      if (!served) await guardHttpPort(ports);
      served = true;
      try {
        announce(dataDir, leases, engine.pid, ports);
      } catch (error) {
        // The disk takes no state file; the engine would run on for nobody, and keep the store.
        await engine.stop();
        throw error;
      }
    } else if (served) {
      log(dataDir, start.message);
    } else {
      throw start;
    }

    const end = await engine.exited;
    if (stopped) return stop;
    leases.holdGreetings();
    log(dataDir, `ClickHouse, process ${engine.pid}, ended (${end}): ${await engine.lastWords}`);
    shortLives = performance.now() - startedAt < shortLifeMs ? shortLives + 1 : 0;
    for (let launched = false; !launched; ) {
      if (shortLives === maxShortLives) {
        throw new Error(`gave up: ClickHouse ended ${shortLives} times in a row within 10 s of its start`);
      }
      if (shortLives >= shortLivesBeforePause) await Promise.race([delay(pauseMs), stopping]);
      if (stopped) return stop;
      try {
        engine = launch(dataDir, ports);
        launched = true;
      } catch (error) {
        // Its disk fails: a life of no time.
        log(dataDir, String(error));
        shortLives++;
      }
    }
  }
}

function launch(dataDir: string, ports: Ports): Engine {
  for (const file of removeCutMutations(dataDir))
    log(dataDir, `removed ${file}, which was cut off, as on a full disk`);
  const databases = [...new Set([database ?? '', ...storedDatabases(dataDir)])];
  return launchEngine(dataDir, { ports, access, databases, native: false });
}

/** Without it the engine is as good, but for the moment after a crash. */
async function guardHttpPort({ http }: Ports): Promise<void> {
  await guardPort(http).catch((error: unknown) => log(dataDir ?? '', String(error)));
}

function announce(dataDir: string, leases: Leases, pid: number, ports: Ports): void {
  const server = { url: `http://127.0.0.1:${ports.http}`, pid };
  writeState(dataDir, { ...server, leasePort: leases.port, ...access });
  leases.greet({ ...server, dataDir, supervisorPid: process.pid });
  log(dataDir, `ClickHouse, process ${pid}, serves ${server.url}`);
}

// Opened by name each time, because the engine rotates the same file.
function log(dataDir: string, message: string): void {
  try {
    appendFileSync(logFile(dataDir), `${new Date().toISOString()} supervisor ${process.pid}: ${message}\n`);
  } catch {
    // Its disk fails, and standard error is the same file.
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
