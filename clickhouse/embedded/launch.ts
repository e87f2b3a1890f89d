import type { ChildProcess } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { spawnModule } from './spawn.ts';
import { logFile, readIfExists } from './state.ts';

const readyPollMs = 10;
const stopLimitMs = 30_000;
const stderrTailChars = 4_000;

const portsSchema = z.object({ http: z.int().positive(), tcp: z.int().positive() });
/** Loopback ports of an engine; 0 asks the system for one. */
export type Ports = z.infer<typeof portsSchema>;

/** Another engine already runs on the same store. */
export class StoreLocked extends Error {
  override readonly name = 'StoreLocked';
}

/** A port that was asked for belongs to somebody else. */
export class PortTaken extends Error {
  override readonly name = 'PortTaken';
}

export interface Engine {
  readonly pid: number;
  /** Resolves when both ports listen; rejects with StoreLocked, PortTaken or Error if it ends before. */
  readonly ready: Promise<Ports>;
  /** Resolves, and never rejects, with how the process ended. */
  readonly exited: Promise<string>;
  /** Resolves after `exited` with the end of its standard error. */
  readonly lastWords: Promise<string>;
  /** Resolves when the process is gone: it is asked to, and killed after 30 s. */
  stop(): Promise<void>;
}

const embeddedConfig = fileURLToPath(new URL('../config/embedded.xml', import.meta.url));

/**
 * Starts an engine on `dataDir/store`. It lives until `stop()` or until this process is gone.
 * @param configFile a file of the name embedded.xml; what lies beside it in embedded.d/ is merged into it
 */
export function launchEngine(dataDir: string, ports: Ports, configFile = embeddedConfig): Engine {
  const store = join(dataDir, 'store');
  const portsFile = join(dataDir, `clickhouse.ports.${process.pid}`);
  persistSystemDatabase(store);
  rmSync(portsFile, { force: true });

  const child = spawnModule('engine', engineArgs(dataDir, store, ports, portsFile, configFile), {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  if (child.pid === undefined) throw new Error('the engine process could not be started');
  // An engine that is already gone makes the pipe fail; `exited` tells the same.
  child.stdin?.on('error', () => undefined);
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const lastWords = tailOf(child);

  const untilReady = async (): Promise<Ports> => {
    while (child.exitCode === null && child.signalCode === null) {
      const text = readIfExists(portsFile);
      // The engine does not write the file in one step; the line end comes last.
      if (text?.endsWith('\n')) {
        rmSync(portsFile);
        return portsSchema.parse(JSON.parse(text));
      }
      await delay(readyPollMs);
    }
    rmSync(portsFile, { force: true });
    throw startFailure(await lastWords);
  };
  const ready = untilReady();
  // Whoever stops an engine that is still starting does not wait for `ready`.
  ready.catch(() => undefined);

  return {
    pid: child.pid,
    ready,
    exited,
    lastWords,
    async stop() {
      child.stdin?.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), stopLimitMs);
      await exited;
      clearTimeout(timer);
    },
  };
}

function engineArgs(
  dataDir: string,
  store: string,
  ports: Ports,
  portsFile: string,
  configFile: string,
): string[] {
  const queries = [
    'SYSTEM START LISTEN HTTP',
    'SYSTEM START LISTEN TCP',
    `SELECT getServerPort('http_port') AS http, getServerPort('tcp_port') AS tcp
     INTO OUTFILE ${quoted(portsFile)} FORMAT JSONEachRow`,
    // Blocks until standard input closes. /dev/stdin would not open: Node's pipe is a socket.
    "SELECT count() FROM file('-', LineAsString) FORMAT Null",
  ];
  return [
    `--config-file=${configFile}`,
    `--path=${store}`,
    `--logger.log=${logFile(dataDir)}`,
    `--http_port=${ports.http}`,
    `--tcp_port=${ports.tcp}`,
    `--query=${queries.join('; ')}`,
  ];
}

/**
 * Makes `system` a database on disk, as in a server. In clickhouse-local it is in memory: after a restart
 * query_log could not be created again over the files of the one before.
 */
function persistSystemDatabase(store: string): void {
  const file = join(store, 'metadata', 'system.sql');
  mkdirSync(join(store, 'metadata'), { recursive: true });
  if (readIfExists(file)) return;
  writeFileSync(
    file,
    "ATTACH DATABASE system UUID '5d3c1a9e-6f0b-4c7d-9a51-ad7a11700001'\nENGINE = Atomic\n",
  );
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}

function tailOf(child: ChildProcess): Promise<string> {
  let tail = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-stderrTailChars);
  });
  return new Promise((resolve) => {
    // It always announces its log file.
    child.once('close', () => resolve(tail.replace(/^Logging \w+ to .*$/gm, '').trim()));
  });
}

function startFailure(stderr: string): Error {
  if (stderr.includes('Cannot lock file')) return new StoreLocked(stderr);
  if (stderr.includes('Address already in use')) return new PortTaken(stderr);
  return new Error(`the engine ended before it was ready: ${stderr}`);
}
