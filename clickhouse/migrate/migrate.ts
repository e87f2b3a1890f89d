import { type Address, connect, type Store, select } from '../client.ts';
import type { Layout } from '../cluster/layout.ts';
import { readSettings, requireSettings, type Settings, unlessMissing, writeSettings } from '../settings.ts';
import {
  dictionaryStatements,
  type Migration,
  readMigrations,
  type Statement,
  statementsForNode,
} from './migration-files.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { unfinishedRestore } from './restored.ts';

/** The store was migrated by a newer version of adtally. */
export class NewerStore extends Error {}

/** A restore was interrupted when it had given up the old data; the new is complete, and waits to take its place. */
export class UnfinishedRestore extends Error {
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
 * @throws when an applied migration was edited, the store is newer, or was made with other settings
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
    await store.command({ query: historyTable });
    const wanted = { timezone: reportTimezone, layout };
    const applyAll = async (statements: readonly Statement[], { timezone }: Settings) => {
      const values = { ...address, ...names, timezone, ...(layout && { layout }) };
      for (const statement of statements) {
        for (const { where, query } of statementsForNode(statement, values)) {
          await (where === 'local' ? local : store).command({ query });
        }
      }
    };
    // One that cannot read would answer no report, and tell so only then.
    const tryDictionary = async ({ text, name, ...rest }: Statement, user: string, settings: Settings) => {
      const tried = `${name}_tried`;
      await applyAll(
        [{ ...rest, name: tried, text: text.replace(`DICTIONARY ${name}`, `DICTIONARY ${tried}`) }],
        settings,
      );
      try {
        await store.command({ query: `SYSTEM RELOAD DICTIONARY ${tried}` });
      } catch (error) {
        throw new Error(
          `dictionaries cannot read names as the user ${user}, so they stay as they are: see CLICKHOUSE_NAMES_USER and CLICKHOUSE_NAMES_PASSWORD. ClickHouse says: ${(error as Error).message}`,
          { cause: error },
        );
      } finally {
        await store.command({ query: `DROP DICTIONARY IF EXISTS ${tried}` });
      }
    };
    const applyPending = async () => {
      const pending = await pendingMigrations(store);
      const settings = await settle(store, wanted);
      for (const { version, name, checksum, statements } of pending) {
        await applyAll(statements, settings);
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
        ? await oneAtATime(store, migrationTurn(address), applyPending)
        : [];
    const settings = await settle(store, wanted);
    if (renewDictionaries) {
      const statements = await dictionaryStatements();
      const one = statements.find(({ name }) => name === 'campaign_names');
      if (names && one)
        await oneAtATime(store, migrationTurn(address), () => tryDictionary(one, names.user, settings));
      await applyAll(statements, settings);
    }
    return applied;
  } finally {
    await Promise.all([server, store, local].map((client) => client.close()));
  }
}

const migrationTurn = ({ database }: Address): string => `adtally-migrate-${database}`;

/** What the caller of `migrate` wants of a store. */
interface Wanted {
  readonly timezone: string | undefined;
  readonly layout: Layout | undefined;
}

/** The settings of a store; a new one gets those that are wanted, before its first table. @throws as `migrate` does */
async function settle(store: Store, wanted: Wanted): Promise<Settings> {
  const { timezone = 'UTC', layout } = wanted;
  if ((await appliedMigrations(store)).length === 0 && !(await readSettings(store))) {
    const { cluster = '', sharding = { shards: 1, firstShards: 1 } } = layout ?? {};
    const { shards, firstShards } = sharding;
    await requireKnownTimezone(store, timezone);
    await writeSettings(store, { timezone, cluster, shards, firstShards });
  }
  const settings = await requireSettings(store);
  requireSame(store, settings, wanted);
  return settings;
}

/** Node.js takes a zone in any case. @throws when ClickHouse does not know it by this name */
async function requireKnownTimezone(store: Store, timezone: string): Promise<void> {
  const found = await select<{ name: string }>(
    store,
    'SELECT time_zone AS name FROM system.time_zones WHERE lower(time_zone) = lower({timezone:String})',
    { timezone },
  );
  if (found.some(({ name }) => name === timezone)) return;
  const [known] = found;
  throw new Error(
    `REPORT_TIMEZONE=${timezone}: ${known ? `write ${known.name}, as ClickHouse does` : 'ClickHouse knows no such time zone'}`,
  );
}

/** @throws when a store was made with another time zone, or on another cluster or on none */
function requireSame({ address }: Store, { timezone, cluster }: Settings, wanted: Wanted): void {
  const { database } = address;
  if (cluster && cluster !== wanted.layout?.cluster) {
    throw new Error(`database ${database} is on the cluster ${cluster}: set CLICKHOUSE_CLUSTER=${cluster}`);
  }
  if (!cluster && wanted.layout) {
    throw new Error(
      `database ${database} is on a single node: use another CLICKHOUSE_DATABASE for the cluster and load the events into it, see docs/scaling.md`,
    );
  }
  requireSameTimezone(timezone, wanted.timezone);
}

/** @throws when another time zone of days is configured than the store, or a backup of one, has */
export function requireSameTimezone(stored: string, configured: string | undefined, isBackup = false): void {
  if (configured === undefined || configured === stored) return;
  const [what, another] = isBackup ? ['backup', 'another backup'] : ['store', 'a new store'];
  throw new Error(
    `REPORT_TIMEZONE=${configured}: the ${what} was created with ${stored}, which cannot change; unset REPORT_TIMEZONE or use ${another}`,
  );
}

/** The migrations that the store lacks, in order. @throws as `migrate` does */
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
      throw new Error(
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
  const history = select<Pick<Migration, 'version' | 'name' | 'checksum'>>(
    store,
    'SELECT version, name, checksum FROM migrations FINAL ORDER BY version',
  );
  const applied = await unlessMissing(history, undefined);
  if (applied) return applied;
  const from = await unfinishedRestore(store.address);
  if (from !== undefined) throw new UnfinishedRestore(from);
  return [];
}

/**
 * Waits while a process is migrating.
 * @returns whether the store has migrations: a new one, which has none, is let pass where `mayBeNew`
 * @throws when the store lacks a migration, or as `migrate` does
 */
export async function requireMigrated(store: Store, mayBeNew = false): Promise<boolean> {
  let pending = await pendingMigrations(store);
  if (pending.length === 0) return true;
  if ((await appliedMigrations(store)).length > 0) {
    await oneAtATime(store, migrationTurn(store.address), async () => {});
    pending = await pendingMigrations(store);
  } else if (mayBeNew) return false;
  const [next] = pending;
  if (next) throw new Error(`the store lacks migration ${next.name}: run adtally migrate`);
  return true;
}

/** The time zone of the report day. @throws when another one is configured */
export async function requireTimezone(store: Store, configured?: string): Promise<string> {
  const { timezone } = await requireSettings(store);
  requireSameTimezone(timezone, configured);
  return timezone;
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
