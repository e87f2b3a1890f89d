import { ClickHouseError } from '@clickhouse/client';
import { type Store, select } from './client.ts';

/**
 * What was decided when a store was made. The placeholders of migrations are filled with it, and whoever needs to know
 * it reads it here; `adtally check` compares it with the tables. Every node of a cluster has the same.
 */
export interface Settings {
  /** The time zone of the report day. It never changes, because rows have their day by it. */
  readonly timezone: string;
  /** The name of the cluster; empty on a single node. */
  readonly cluster: string;
  /** How many shards accounts without a placement are hashed over. `adtally grow` makes it more. */
  readonly shards: number;
  /** How many shards there were when the store was made. It never changes: what is of no account stays on them. */
  readonly firstShards: number;
}

/**
 * No migration makes it, because it has to be there before the first. The row with the latest version holds; those
 * before it tell when a cluster has grown, and from how many shards.
 */
const settingsTable = `
CREATE TABLE IF NOT EXISTS settings
(
    timezone String,
    cluster String,
    shards UInt16,
    version DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = MergeTree
ORDER BY version`;

/** The settings of a store; undefined while it has none, because it is new or not there. */
export async function readSettings(store: Store): Promise<Settings | undefined> {
  const rows = select<Settings>(
    store,
    `SELECT timezone, cluster, shards, (SELECT min(shards) FROM settings) AS firstShards
     FROM settings ORDER BY version DESC, shards DESC LIMIT 1`,
  );
  const [settings] = await unlessMissing(rows, []);
  return settings;
}

/** The settings of a store. @throws when it has none */
export async function requireSettings(store: Store): Promise<Settings> {
  const settings = await readSettings(store);
  if (!settings) {
    throw new Error(
      `database ${store.address.database} has no settings: run adtally migrate, or restore a backup if it has events`,
    );
  }
  return settings;
}

/** Settings that hold from now on, on this node. */
export async function writeSettings(store: Store, { firstShards, ...settings }: Settings): Promise<void> {
  await store.command({ query: settingsTable });
  // A node that was added later learns the first number, too.
  const values = [...new Set([firstShards, settings.shards])].map((shards) => ({ ...settings, shards }));
  await store.insert({ table: 'settings', values, format: 'JSONEachRow' });
}

/** What a statement gives, or `otherwise` when its table or database is not there. */
export async function unlessMissing<T>(asked: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ClickHouseError && /^UNKNOWN_(TABLE|DATABASE)$/.test(error.type ?? '')) {
      return otherwise;
    }
    throw error;
  }
}
