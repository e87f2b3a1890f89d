import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { accessSchema } from './access.ts';

const port = z.int().min(1).max(65_535);
const server = { url: z.url(), pid: z.int().positive() };

const stateSchema = accessSchema.extend({ ...server, leasePort: port });
const greetingSchema = z.object({ ...server, dataDir: z.string(), supervisorPid: z.int().positive() });

/** The content of `DATA_DIR/clickhouse.json`; `pid` is the engine's. */
export type EmbeddedState = z.infer<typeof stateSchema>;
/** What a supervisor tells a holder; `dataDir` is a real path. */
export type Greeting = z.infer<typeof greetingSchema>;

const stateFile = (dataDir: string): string => join(dataDir, 'clickhouse.json');
/** Settings for `curl -K`: a person reaches the server with them, and no password is on a command line. */
export const curlFile = (dataDir: string): string => join(dataDir, 'clickhouse.curl');
/** The log of engine and supervisor; the engine rotates it at 10 MB and keeps two. */
export const logFile = (dataDir: string): string => join(dataDir, 'clickhouse.log');

/**
 * The server named in `clickhouse.json`, running or not; undefined when the file is missing or invalid, or when another
 * user could have written or read it.
 * @throws when the file exists and cannot be read
 */
export function readState(dataDir: string): EmbeddedState | undefined {
  const text = ifExists(() => readOwn(stateFile(dataDir)));
  return text === undefined ? undefined : parse(stateSchema, text);
}

/** Replaces `clickhouse.json` and `clickhouse.curl` atomically; only their owner can read them. */
export function writeState(dataDir: string, state: EmbeddedState): void {
  const { url, passwords } = state;
  replaceFile(curlFile(dataDir), `url = "${url}/"\nuser = "adtally:${passwords.adtally}"\n`);
  replaceFile(stateFile(dataDir), JSON.stringify(state));
}

/** Removes them if they name the supervisor that listens on `leasePort`. */
export function removeState(dataDir: string, leasePort: number): void {
  if (readState(dataDir)?.leasePort !== leasePort) return;
  for (const file of [stateFile, curlFile]) rmSync(file(dataDir), { force: true });
}

/** The greeting in `text`; undefined when the sender is not a supervisor. */
export function parseGreeting(text: string): Greeting | undefined {
  return parse(greetingSchema, text);
}

function parse<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The text of a file; undefined when the file is not there. @throws any other failure */
export function readIfExists(path: string): string | undefined {
  return ifExists(() => readFileSync(path, 'utf8'));
}

/** Writes a file in one step, also where the power fails; only its owner can read it. */
export function replaceFile(path: string, text: string): void {
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, text, { mode: 0o600, flush: true });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** The databases that the store of `dataDir` has. */
export function storedDatabases(dataDir: string): string[] {
  const files = ifExists(() => readdirSync(join(dataDir, 'store', 'metadata'))) ?? [];
  return files.flatMap((file) => {
    const [, name] = /^([A-Za-z_][A-Za-z0-9_]*)\.sql$/.exec(file) ?? [];
    return name === undefined || name === 'system' || name === 'default' ? [] : [name];
  });
}

function readOwn(path: string): string | undefined {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { uid, mode } = fstatSync(file);
    const own = uid === process.geteuid?.() && (mode & 0o077) === 0;
    return own ? readFileSync(file, 'utf8') : undefined;
  } finally {
    closeSync(file);
  }
}

function ifExists<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
