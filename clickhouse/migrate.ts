import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { type Address, connect, type Store, select } from './client.ts';

const directory = new URL('./migrations/', import.meta.url);

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly checksum: string;
  readonly statements: readonly string[];
}

/** The store and this version of adtally do not fit; the message says what to do. */
class MigrationError extends Error {}

/**
 * Brings the store at `address` up to this version and returns the names of the migrations applied now.
 * Every statement can be repeated, so a run that was interrupted, or two runs at once, end in the same store.
 * @param reportTimezone fixes the report day of a new store; absent means UTC, or what the store has
 * @param options.renewDictionaries gives dictionaries, which keep a password, the one of `address`
 * @throws {MigrationError} when an applied migration was edited, the store is newer, or the time zone differs
 */
export async function migrate(
  address: Address,
  reportTimezone?: string,
  { renewDictionaries = false } = {},
): Promise<string[]> {
  const server = connect({ ...address, database: 'default' });
  const store = connect(address);
  try {
    await server.command({ query: `CREATE DATABASE IF NOT EXISTS ${address.database}` });
    await store.command({ query: historyTable });
    const pending = await pendingMigrations(store);
    const timezone = reportTimezone ?? (await storedTimezone(store)) ?? 'UTC';
    for (const migration of pending) {
      for (const statement of migration.statements) {
        await store.command({ query: fill(statement, { ...address, timezone }) });
      }
      const { version, name, checksum } = migration;
      await store.insert({
        table: 'migrations',
        values: [{ version, name, checksum }],
        format: 'JSONEachRow',
      });
    }
    await requireTimezone(store, timezone);
    if (renewDictionaries) {
      for (const statement of (await readMigrations()).flatMap(({ statements }) => statements)) {
        const renewed = statement.replace(
          /^CREATE DICTIONARY IF NOT EXISTS/m,
          'CREATE OR REPLACE DICTIONARY',
        );
        if (renewed !== statement) await store.command({ query: fill(renewed, { ...address, timezone }) });
      }
    }
    return pending.map(({ name }) => name);
  } finally {
    await Promise.all([server.close(), store.close()]);
  }
}

/** The migrations that the store still needs, in order. @throws {MigrationError} as `migrate` does */
export async function pendingMigrations(store: Store): Promise<Migration[]> {
  const known = await readMigrations();
  const applied = await select<{ version: number; name: string; checksum: string }>(
    store,
    'SELECT version, name, checksum FROM migrations FINAL ORDER BY version',
  );
  for (const { version, name, checksum } of applied) {
    const migration = known.find((candidate) => candidate.version === version);
    if (!migration) {
      throw new MigrationError(
        `the store has migration ${name}, which is newer than this adtally: update adtally`,
      );
    }
    if (migration.checksum !== checksum) {
      throw new MigrationError(
        `migration ${name} was edited after it was applied: restore the file, put the change into a new one`,
      );
    }
  }
  return known.filter(({ version }) => !applied.some((row) => row.version === version));
}

/** The time zone in which the store takes the day of an event; undefined before it has events. */
export async function storedTimezone(store: Store): Promise<string | undefined> {
  const [row] = await select<{ expression: string }>(
    store,
    `SELECT default_expression AS expression FROM system.columns
     WHERE database = currentDatabase() AND table = 'events' AND name = 'day'`,
  );
  return row && /'([^']+)'\)$/.exec(row.expression)?.[1];
}

/** @throws {MigrationError} when the store takes its days in another time zone than the one configured */
export async function requireTimezone(store: Store, configured?: string): Promise<string> {
  const stored = await storedTimezone(store);
  if (!stored) throw new MigrationError('the store has no events table: run adtally migrate');
  if (configured && configured !== stored) {
    throw new MigrationError(
      `REPORT_TIMEZONE=${configured}: the store was created with ${stored}, which is fixed; unset it or use a new store`,
    );
  }
  return stored;
}

async function readMigrations(): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort();
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(new URL(file, directory), 'utf8');
      return {
        version: Number.parseInt(file, 10),
        name: file.replace('.sql', ''),
        checksum: createHash('sha256').update(text).digest('hex'),
        statements: text.split(/;\s*$/m).filter((statement) => /^\w/m.test(statement)),
      };
    }),
  );
}

/** Puts values into `'{name}'` and `{name}.` of a migration; they are quoted as SQL strings are. */
function fill(statement: string, values: Address & { timezone: string }): string {
  return statement.replace(/\{(timezone|database|user|password)\}/g, (_, name: keyof typeof values) =>
    values[name].replace(/['\\]/g, '\\$&'),
  );
}

const historyTable = `
CREATE TABLE IF NOT EXISTS migrations
(
    version UInt32,
    name String,
    checksum String,
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY version`;
