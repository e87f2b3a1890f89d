import { ClickHouseError } from '@clickhouse/client';
import { type Address, connect, type Store, select } from '../client.ts';
import { type Layout, layoutOf } from '../cluster/layout.ts';
import {
  dictionaryStatements,
  type Migration,
  readMigrations,
  statementsForNode,
} from './migration-files.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { unfinishedRestore } from './restored.ts';

/** The store and this version of adtally do not match; the message says what to do. */
class MigrationError extends Error {}

/** The store was migrated by a newer version of adtally. */
export class NewerStore extends MigrationError {}

/** A restore was interrupted when it had given up the old data; the new is complete, and waits to take its place. */
export class UnfinishedRestore extends MigrationError {
  readonly from: string;

  /** @param from the backup, as the command was given it */
  constructor(from: string) {
    super(`a restore of ${from} was interrupted; end it with: adtally restore ${from} --replace`);
    this.from = from;
  }
}

export interface MigrateOptions {
  /** Creates dictionaries again with the password that they read with, because they store it. */
  readonly renewDictionaries?: boolean;
  /** Whom dictionaries read as; by default the user of the address. */
  readonly names?: { readonly user: string; readonly password: string };
}

/**
 * Migrates the store at `address` to this version and returns the names of the migrations applied.
 * Every statement can be repeated, so an interrupted run leads to the same store. Of two runs at once one waits for the
 * other: a statement that comes late would take back what a later one has done, and between two of them a view may be
 * missing.
 * @param reportTimezone fixes the report day of a new store; by default the store's, or UTC
 * @param layout for a node of a cluster, see `migrateCluster`
 * @throws {MigrationError} when an applied migration was edited, the store is newer, or the time zone differs
 */
export async function migrate(
  address: Address,
  reportTimezone?: string,
  { renewDictionaries = false, names }: MigrateOptions = {},
  layout?: Layout,
): Promise<string[]> {
  const server = connect({ ...address, database: 'default' });
  const store = connect(address);
  const local = connect({ ...address, database: layout?.local ?? address.database });
  try {
    await appliedMigrations(store);
    for (const { database } of [store.address, local.address]) {
      await server.command({ query: `CREATE DATABASE IF NOT EXISTS ${database}` });
    }
    await requireLayout(store, layout);
    await store.command({ query: historyTable });
    const applyAll = async (statements: readonly string[]) => {
      const timezone = reportTimezone ?? (await storedTimezone(store)) ?? 'UTC';
      const values = { ...address, ...names, timezone, ...(layout && { layout }) };
      for (const statement of statements) {
        for (const { where, query } of statementsForNode(statement, values)) {
          await (where === 'local' ? local : store).command({ query });
        }
      }
    };
    const applyPending = async () => {
      const pending = await pendingMigrations(store);
      for (const { version, name, checksum, statements } of pending) {
        await applyAll(statements);
        await store.insert({
          table: 'migrations',
          values: [{ version, name, checksum }],
          format: 'JSONEachRow',
        });
      }
      return pending.map(({ name }) => name);
    };
    const applied =
      (await pendingMigrations(store)).length > 0
        ? await oneAtATime(store, `adtally-migrate-${address.database}`, applyPending)
        : [];
    await requireTimezone(store, reportTimezone);
    if (renewDictionaries) await applyAll(dictionaryStatements(await readMigrations()));
    return applied;
  } finally {
    await Promise.all([server, store, local].map((client) => client.close()));
  }
}

/** @throws {MigrationError} when a store on a single node is migrated as one on a cluster, or the other way round */
async function requireLayout(store: Store, wanted: Layout | undefined): Promise<void> {
  const [events] = await select<{ engine: string }>(
    store,
    "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'events'",
  );
  if (!events) return;
  const { database } = store.address;
  const found = events.engine === 'Distributed' ? await layoutOf(store) : undefined;
  if (found && found.cluster !== wanted?.cluster) {
    throw new MigrationError(
      `database ${database} is on the cluster ${found.cluster}: set CLICKHOUSE_CLUSTER=${found.cluster}`,
    );
  }
  if (!found && wanted) {
    throw new MigrationError(
      `database ${database} is on a single node: use another CLICKHOUSE_DATABASE for the cluster and load the events into it, see docs/scaling.md`,
    );
  }
}

/** The migrations that the store lacks, in order. @throws {MigrationError} as `migrate` does */
export async function pendingMigrations(store: Store): Promise<Migration[]> {
  const known = await readMigrations();
  const applied = await appliedMigrations(store);
  for (const { version, name, checksum } of applied) {
    const migration = known.find((candidate) => candidate.version === version);
    if (!migration) {
      throw new NewerStore(
        `the store has migration ${name}, which is newer than this adtally: update adtally, or go back to a backup of before, see docs/operations.md`,
      );
    }
    if (migration.checksum !== checksum) {
      throw new MigrationError(
        `migration ${name} was edited after it was applied: restore the file and put the change into a new one`,
      );
    }
  }
  return known.filter(({ version }) => !applied.some((row) => row.version === version));
}

/** The migrations that the store has; none of a database that is not there. @throws {UnfinishedRestore} */
export async function appliedMigrations(
  store: Store,
): Promise<{ version: number; name: string; checksum: string }[]> {
  try {
    return await select(store, 'SELECT version, name, checksum FROM migrations FINAL ORDER BY version');
  } catch (error) {
    const missing = error instanceof ClickHouseError && /^UNKNOWN_(TABLE|DATABASE)$/.test(error.type ?? '');
    if (!missing) throw error;
    const from = await unfinishedRestore(store.address);
    if (from !== undefined) throw new UnfinishedRestore(from);
    return [];
  }
}

/** @throws {MigrationError} when the store lacks a migration, or as `migrate` does */
export async function requireMigrated(store: Store): Promise<void> {
  const [next] = await pendingMigrations(store);
  if (next) throw new MigrationError(`the store lacks migration ${next.name}: run adtally migrate`);
}

/** The time zone of the report day; undefined before the events table exists. */
export async function storedTimezone(store: Store): Promise<string | undefined> {
  const [row] = await select<{ expression: string }>(
    store,
    `SELECT default_expression AS expression FROM system.columns
     WHERE database = currentDatabase() AND table = 'events' AND name = 'day'`,
  );
  return row && timezoneOf(row.expression);
}

/** The time zone in the default expression of `events.day`. */
export function timezoneOf(expression: string): string | undefined {
  return /'([^']+)'\)$/.exec(expression)?.[1];
}

/** The time zone of the report day. @throws {MigrationError} when another one is configured */
export async function requireTimezone(store: Store, configured?: string): Promise<string> {
  const stored = await storedTimezone(store);
  if (!stored) throw new MigrationError('the store has no events table: run adtally migrate');
  if (configured && configured !== stored) {
    throw new MigrationError(
      `REPORT_TIMEZONE=${configured}: the store was created with ${stored}, which cannot change; unset REPORT_TIMEZONE or use a new store`,
    );
  }
  return stored;
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
