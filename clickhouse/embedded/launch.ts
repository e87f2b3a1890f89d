import type { ChildProcess } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { pollFor } from '../poll.ts';
import { quoted } from '../quoted.ts';
import { type Access, accessVariables } from './access.ts';
import { spawnModule } from './spawn.ts';
import { logFile, readIfExists, replaceFile } from './state.ts';

const readyPollMs = 10;
const stopLimitMs = 30_000;
const stderrTailChars = 4_000;

const portsSchema = z.object({ http: z.int().positive(), tcp: z.int().min(0) });
/** Loopback ports of an engine; 0 asks the system for one. Of an engine that runs, a `tcp` of 0 means none. */
export type Ports = z.infer<typeof portsSchema>;

/** Another engine already uses the same store. */
export class StoreLocked extends Error {
  override readonly name = 'StoreLocked';
}

export interface Engine {
  readonly pid: number;
  /** Resolves when its ports listen; rejects with StoreLocked or another Error if it ends before. */
  readonly ready: Promise<Ports>;
  /** Resolves, and never rejects, with how the process ended. */
  readonly exited: Promise<string>;
  /** The end of its standard error; resolves after `exited`. */
  readonly lastWords: Promise<string>;
  /** Asks the process to stop, kills it after 30 s, and resolves when it is gone. */
  stop(): Promise<void>;
}

const embeddedConfig = fileURLToPath(new URL('../config/embedded.xml', import.meta.url));

export interface EngineOptions {
  readonly ports: Ports;
  readonly access: Access;
  /** Those whose reports the reporter may read. */
  readonly databases: readonly string[];
  /**
   * Whether it listens for the native protocol, too. Any local process can then end the engine by a login that fails
   * (tried: the exception leaves the thread of the connection), though none gets in. An engine that does not listen for it
   * shares its HTTP port with others, so that `guardPort` may keep that port after a crash.
   */
  readonly native: boolean;
  /** Has to be named embedded.xml; the files in embedded.d/ beside it are merged into it. */
  readonly configFile?: string;
}

/** Starts an engine on `dataDir/store`. It runs until `stop()` or until this process is gone. */
export function launchEngine(dataDir: string, options: EngineOptions): Engine {
  const store = join(dataDir, 'store');
  const portsFile = join(dataDir, `clickhouse.ports.${process.pid}`);
  persistSystemDatabase(store);
  rmSync(portsFile, { force: true });

  const child = spawnModule('engine', engineArgs(dataDir, store, portsFile, options), {
    stdio: ['pipe', 'ignore', 'pipe'],
    // Not as arguments, which every user of the machine sees.
    variables: {
      ...accessVariables(options.access, options.databases),
      SHARED_PORT: options.native ? '0' : '1',
    },
  });
  // Node also emits the failure, after the throw below; unheard, it would end the supervisor.
  child.on('error', () => undefined);
  if (child.pid === undefined) throw new Error('the ClickHouse process could not be started');
  // The pipe fails when the engine is already gone, which `exited` reports.
  child.stdin?.on('error', () => undefined);
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => {
      // Begun, and not written where the disk is full.
      rmSync(portsFile, { force: true });
      resolve(signal ?? `exit code ${code}`);
    });
  });
  const lastWords = tailOf(child);

  const findPorts = async (): Promise<Ports | undefined> => {
    if (child.exitCode !== null || child.signalCode !== null) throw startFailure(await lastWords);
    const text = readIfExists(portsFile);
    // ClickHouse does not write the file in one step; the line end comes last.
    if (!text?.endsWith('\n')) return undefined;
    rmSync(portsFile);
    return portsSchema.parse(JSON.parse(text));
  };
  const ready = pollFor(findPorts, { pollMs: readyPollMs });
  // A caller that stops an engine while it starts does not await `ready`.
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
  portsFile: string,
  { ports, native, configFile = embeddedConfig }: EngineOptions,
): string[] {
  const queries = [
    'SYSTEM START LISTEN HTTP',
    ...(native ? ['SYSTEM START LISTEN TCP'] : []),
    `SELECT getServerPort('http_port') AS http, ${native ? "getServerPort('tcp_port')" : 0} AS tcp
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
 * Puts the database `system` on disk, as in a server. clickhouse-local keeps it in memory, and after a restart could
 * not create query_log, because its files already exist.
 */
function persistSystemDatabase(store: string): void {
  const file = join(store, 'metadata', 'system.sql');
  mkdirSync(join(store, 'metadata'), { recursive: true });
  if (readIfExists(file)) return;
  replaceFile(file, "ATTACH DATABASE system UUID '5d3c1a9e-6f0b-4c7d-9a51-ad7a11700001'\nENGINE = Atomic\n");
}

function tailOf(child: ChildProcess): Promise<string> {
  let tail = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-stderrTailChars);
  });
  return new Promise((resolve) => {
    // Leave out the line that announces the log file.
    child.once('close', () => resolve(tail.replace(/^Logging \w+ to .*$/gm, '').trim()));
  });
}

function startFailure(stderr: string): Error {
  if (stderr.includes('Cannot lock file')) return new StoreLocked(stderr);
  return new Error(`ClickHouse exited before it was ready: ${stderr}`);
}
