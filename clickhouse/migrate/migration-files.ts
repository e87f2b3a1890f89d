import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { Address } from '../client.ts';
import type { Layout } from '../cluster/layout.ts';
import { type Sharding, shardingKey } from '../cluster/sharding-key.ts';

const directory = new URL('../migrations/', import.meta.url);

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly checksum: string;
  readonly statements: readonly string[];
}

/** Every migration of this version of adtally, in order. */
export async function readMigrations(): Promise<Migration[]> {
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

/** The values of the placeholders in migrations; `user` and `password` are those of dictionaries. */
export interface MigrationValues extends Address {
  readonly timezone: string;
  /** Absent for a single node. */
  readonly layout?: Layout;
}

/** A statement, and whether it runs in the database of the store or in the local one of a cluster node. */
interface NodeStatement {
  readonly where: 'store' | 'local';
  readonly query: string;
}

/**
 * The statements that a node runs for one statement of a migration. On a single node that is the statement itself, or
 * none if it is for clusters only. On a cluster node the `-- cluster:` comment before it decides: a table in the local
 * database plus a Distributed table of the same name, or a table of which every node has a full copy.
 */
export function statementsForNode(statement: string, values: MigrationValues): NodeStatement[] {
  const { layout } = values;
  const query = fillPlaceholders(statement, values);
  const { only, by } = directiveOf(statement);
  if (!layout) return only ? [] : [{ where: 'store', query }];
  if (by === 'every node') {
    return [{ where: 'store', query: replicatedTable(query, layout, 'everywhere') }];
  }
  const local: NodeStatement = { where: 'local', query: replicatedTable(query, layout, '{shard}') };
  return by === undefined
    ? [local]
    : [local, { where: 'store', query: distributedTable(statement, by, layout) }];
}

/** The sharding key of every Distributed table that the migrations leave, by table name. */
export async function shardingKeys(sharding: Sharding): Promise<Map<string, string>> {
  const keys = new Map<string, string>();
  for (const statement of (await readMigrations()).flatMap((migration) => migration.statements)) {
    const { by } = directiveOf(statement);
    if (by !== undefined && by !== 'every node') keys.set(tableOf(statement), shardingKey(by, sharding));
    else if (/^DROP TABLE/m.test(statement)) keys.delete(tableOf(statement));
  }
  return keys;
}

/** The tables of which every node of a cluster has a full copy. */
export async function tablesOnEveryNode(): Promise<string[]> {
  const statements = (await readMigrations()).flatMap((migration) => migration.statements);
  return statements
    .filter((statement) => /^CREATE TABLE/m.test(statement) && /^ENGINE = \w*MergeTree/m.test(statement))
    .filter((statement) => directiveOf(statement).by === 'every node')
    .map(tableOf);
}

/** The statements that create each dictionary in its latest form, replacing the existing one. */
export function dictionaryStatements(migrations: readonly Migration[]): string[] {
  const last = new Map<string, string>();
  for (const statement of migrations.flatMap(({ statements }) => statements)) {
    const create = /^CREATE (OR REPLACE DICTIONARY|DICTIONARY IF NOT EXISTS)/m;
    if (create.test(statement)) {
      last.set(tableOf(statement), statement.replace(create, 'CREATE OR REPLACE DICTIONARY'));
    }
  }
  return [...last.values()];
}

function directiveOf(statement: string): { only: boolean; by?: string } {
  const [, only, by, everyNode] =
    /^-- cluster: (only, )?(?:by (\w+)|on (every node))$/m.exec(statement) ?? [];
  if (!by && !everyNode && /^CREATE (TABLE|(OR REPLACE )?DICTIONARY)/m.test(statement)) {
    throw new Error(
      `migration of ${tableOf(statement)}: it needs a -- cluster: comment that says where it is stored`,
    );
  }
  const place = by ?? everyNode;
  return { only: only !== undefined, ...(place !== undefined && { by: place }) };
}

function tableOf(statement: string): string {
  return (
    /^(?:CREATE (?:OR REPLACE )?\w+|ALTER TABLE|DROP TABLE) (?:IF (?:NOT )?EXISTS )?(\w+)/m.exec(
      statement,
    )?.[1] ?? ''
  );
}

/** Has the columns, defaults and constraints of the local table, so that a bad line is refused before any is sent. */
function distributedTable(statement: string, by: string, { cluster, local, sharding }: Layout): string {
  const table = tableOf(statement);
  const create = /^ALTER/m.test(statement) ? 'CREATE OR REPLACE TABLE' : 'CREATE TABLE IF NOT EXISTS';
  return `${create} ${table} AS ${local}.${table}
ENGINE = Distributed('${cluster}', '${local}', '${table}', ${shardingKey(by, sharding)})`;
}

/**
 * The same table, replicated on every node of its shard or of the cluster. The coordination service then keeps the
 * dedup ids of chunks, for a limited time: 30 years.
 */
function replicatedTable(query: string, layout: Layout, shard: string): string {
  if (!layout.replicated) return query;
  const path = `'/clickhouse/tables/${layout.local}/${shard}/${tableOf(query)}', '{shard}-{replica}'`;
  return query
    .replace(
      /^ENGINE = (\w*MergeTree)(?:\((.*)\))?/m,
      (_, engine, args) => `ENGINE = Replicated${engine}(${path}${args ? `, ${args}` : ''})`,
    )
    .replace(
      /\bnon_replicated_deduplication_window = (\d+)/,
      'replicated_deduplication_window = $1, replicated_deduplication_window_seconds = 946080000',
    );
}

/** Fills the placeholders `'{name}'` and `{name}.` of a migration; values are escaped for SQL strings. */
function fillPlaceholders(
  statement: string,
  { timezone, database, user, password, layout }: MigrationValues,
): string {
  const values: Record<string, string> = {
    timezone,
    database,
    user,
    password,
    publisher_events: layout ? 'publisher_events' : 'events',
  };
  return statement.replace(/\{(timezone|database|user|password|publisher_events)\}/g, (_, name: string) =>
    (values[name] ?? '').replace(/['\\]/g, '\\$&'),
  );
}
