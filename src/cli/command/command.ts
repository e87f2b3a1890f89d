import { setMaxListeners } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { closing, connect, type Store } from '../../../clickhouse/client.ts';
import { missingShards } from '../../../clickhouse/cluster/on-nodes.ts';
import { requireMigrated, requireTimezone } from '../../../clickhouse/migrate/migrate.ts';
import { dictionariesCanRead, migrateEmbedded } from '../../../clickhouse/migrate/migrate-embedded.ts';
import { readMigrations } from '../../../clickhouse/migrate/migration-files.ts';
import {
  certificateRefused,
  isOfConnection,
  isOfNode,
  isTransient,
  retrying,
  titleOfPage,
} from '../../../clickhouse/retry.ts';
import { earlyTimerMs } from '../../../clickhouse/timings.ts';
import { LoadError } from '../../../ingest/ledger/load-error.ts';
import { type Config, loadConfig } from '../../config/config.ts';
import { openStore } from '../../config/store.ts';

/** Loaded, but some rows were rejected. */
export const exitRejected = 4;

/** Writes a line for people, on standard error. */
export const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** Writes a line of a command's result, on standard output. */
export const print = (text: string): void => void process.stdout.write(`${text}\n`);

/** Cells of a line of a list. Control characters are written as in JSON, so that no text can pass for another line. */
export const line = (cells: readonly (string | number | null)[]): string =>
  cells.map((cell) => String(cell ?? '').replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, escaped) || '-').join('\t');

const escaped = (character: string): string =>
  `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;

/** As a shell takes it. */
export const quotedForShell = (text: string): string =>
  /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

export const formatNumber = (value: number): string => value.toLocaleString('en');

/** `1 day`, `2 days` */
export const counted = (count: number, noun: string): string =>
  `${formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`;

let loaded: Config | undefined;

/** The configuration of this process. @throws {ConfigError} naming the first wrong variable */
export function config(): Config {
  loaded ??= loadConfig(process.env);
  return loaded;
}

/**
 * Waits until no service answers any more from what it knew before: what changes reports calls it before it says that
 * it is done.
 */
export async function untilReportsShowIt(): Promise<void> {
  const { answerTrustMs } = config();
  if (answerTrustMs > 0) await delay(answerTrustMs + earlyTimerMs);
}

/** Whether a store to which these migrations were applied had none before: then their names tell a person nothing. */
export async function wasNew(applied: readonly string[]): Promise<boolean> {
  return applied.length === (await readMigrations()).length;
}

/**
 * Runs a command's work on a store of this version, and closes whatever was opened for it. An older store stays as it
 * is: `migrate` changes it, and nothing else.
 * @param mayBeNew for what fills a store: the tables of an embedded one are made if it has none yet
 * @throws when there is no store, it is of another version, or a restore has to be ended
 */
export async function withStore(
  work: (store: Store) => Promise<void>,
  { mayBeNew = false }: { readonly mayBeNew?: boolean } = {},
): Promise<void> {
  const { clickhouse, dataDir, reportTimezone } = config();
  const embedded = clickhouse.url === undefined;
  if (embedded && !mayBeNew && !existsSync(join(dataDir, 'store'))) {
    throw new Error(
      `there is no store in DATA_DIR ${dataDir}: adtally migrate makes one, and so does a load`,
    );
  }
  await withServer(async (store) => {
    const isMigrated = await requireMigrated(store, embedded && mayBeNew);
    // There is nothing left to migrate but a new store; each start of the engine has other passwords for dictionaries.
    if (embedded && !(isMigrated && dictionariesCanRead(dataDir, store.address))) {
      await migrateEmbedded(dataDir, store.address, reportTimezone);
    } else if (reportTimezone !== undefined) await requireTimezone(store, reportTimezone);
    await work(store).catch((cause: unknown) => nameMissingShards(store, cause));
  });
}

/** The same for what only looks, so that it says what is known while shards are down. Then it names them and fails. */
export async function withReachableStore(work: (store: Store) => Promise<void>): Promise<void> {
  await withStore(async (store) => {
    const missing = await missingShards(store);
    if (missing.length === 0) return work(store);
    await closing(connect(store.address, { withoutMissingShards: true }), work);
    throw new Error(lackOf(missing));
  });
}

/** @throws what was thrown or, where a shard is away, an error that names it instead of failed connections */
async function nameMissingShards(store: Store, cause: unknown): Promise<never> {
  const load = cause instanceof LoadError ? cause : undefined;
  // A load has waited for the shard; when it gives up, the server that is asked can be away as well, for a moment.
  const mayBeOfNode = load ? load.cause instanceof Error && isTransient(load.cause) : isOfNode(cause);
  if (!mayBeOfNode) throw cause;
  // The server that is asked may be starting again itself.
  const missing = await retrying(() => missingShards(store), { giveUpAfterMs: 10_000 }).catch(() => []);
  if (missing.length === 0) throw cause;
  const away = `${missing.join(' and ')} cannot be reached`;
  throw new Error(
    load
      ? `${load.message} ${away}: start ClickHouse there first`
      : `${away}. Start ClickHouse there, then run the same command again`,
    { cause },
  );
}

/** What an answer lacks without these shards. */
export const lackOf = (missing: readonly string[]): string =>
  `${missing.join(' and ')} cannot be reached: what is stored there is missing from this answer. Start ClickHouse there, then run the same command again`;

/** Codes of connections whose other side does not speak TLS, or not in a way that Node.js knows. */
const noTls = /^(?:EPROTO$|ERR_SSL_)/;

/** A failure of a connection to ClickHouse without a word of its own, with one that names ClickHouse; another as it is. */
export function ofServer(url: string, cause: unknown): unknown {
  if (!(cause instanceof Error)) return cause;
  // The address may hold a password.
  const { origin } = new URL(url);
  const server = `ClickHouse at ${origin}`;
  const code = 'code' in cause ? String(cause.code) : '';
  const [reason = code] = cause.message.split('\n', 1);
  if (noTls.test(code))
    return new Error(`${server} does not speak TLS (${code}): write http:// if it has none`, { cause });
  const refused = certificateRefused(cause, server);
  if (refused) return refused;
  const title = titleOfPage(cause);
  if (title !== undefined) {
    return new Error(`what answers at ${origin} is no ClickHouse, or stands in front of it: ${title}`, {
      cause,
    });
  }
  if (!isOfConnection(cause)) return cause;
  return new Error(
    `${server} does not answer, or broke off (${reason || code}): run the same command again once it answers`,
    { cause },
  );
}

/**
 * Runs a command's work on ClickHouse as it is, whatever state the database is in, or whether there is one.
 * @throws what the work throws, see `ofServer`
 */
export async function withServer(work: (store: Store) => Promise<void>): Promise<void> {
  const opened = await openStore(config());
  await closing(opened, () =>
    closing(connect(opened.address), work).catch((cause: unknown) => {
      throw ofServer(opened.address.url, cause);
    }),
  );
}

/** A signal that fires at the first SIGINT or SIGTERM, for work that then ends what is in flight. The second ends the process. */
export function stopOnSignal(): { signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  // Hundreds of loads may wait for it at once.
  setMaxListeners(0, controller.signal);
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const stop = () => {
    if (controller.signal.aborted) process.exit(1);
    say('stopping after what is in flight; press Ctrl-C again to stop at once');
    controller.abort();
  };
  for (const signal of signals) process.on(signal, stop);
  return {
    signal: controller.signal,
    release: () => {
      for (const signal of signals) process.off(signal, stop);
    },
  };
}
