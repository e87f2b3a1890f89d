import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const port = z.int().min(1).max(65_535);
const server = { url: z.url(), tcpPort: port, pid: z.int().positive() };

const stateSchema = z.object({ ...server, leasePort: port });
const greetingSchema = z.object({ ...server, dataDir: z.string(), supervisorPid: z.int().positive() });

/** The content of `DATA_DIR/clickhouse.json`; `pid` is the engine's. */
export type EmbeddedState = z.infer<typeof stateSchema>;
/** The only line that a supervisor sends to a holder; `dataDir` is a real path. */
export type Greeting = z.infer<typeof greetingSchema>;

const stateFile = (dataDir: string): string => join(dataDir, 'clickhouse.json');
/** The log of engine and supervisor; the engine rotates it at 10 MB and keeps two. */
export const logFile = (dataDir: string): string => join(dataDir, 'clickhouse.log');

/**
 * The server named in `clickhouse.json`, running or not; undefined when the file is missing or invalid.
 * @throws when the file exists and cannot be read
 */
export function readState(dataDir: string): EmbeddedState | undefined {
  const text = readIfExists(stateFile(dataDir));
  return text === undefined ? undefined : parse(stateSchema, text);
}

/** Replaces `clickhouse.json` atomically; only its owner can read it. */
export function writeState(dataDir: string, state: EmbeddedState): void {
  const draft = `${stateFile(dataDir)}.${process.pid}`;
  writeFileSync(draft, JSON.stringify(state), { mode: 0o600 });
  renameSync(draft, stateFile(dataDir));
}

/** Removes `clickhouse.json` if it names the supervisor that listens on `leasePort`. */
export function removeState(dataDir: string, leasePort: number): void {
  if (readState(dataDir)?.leasePort === leasePort) rmSync(stateFile(dataDir), { force: true });
}

/** The greeting in `line`; undefined when the sender is not a supervisor. */
export function parseGreeting(line: string): Greeting | undefined {
  return parse(greetingSchema, line);
}

/** The text of a file; undefined when there is none. @throws any other failure */
export function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function parse<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
