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

/** What the migrations leave open. */
export interface Values extends Address {
  readonly timezone: string;
  /** Absent for a single node. */
  readonly layout?: Layout;
}

/** A statement, and whether it is for the database of the store or for the local one of a node. */
interface NodeStatement {
  readonly where: 'store' | 'local';
  readonly query: string;
}

/**
 * What a statement of a migration comes to: itself on a single node, and nothing where it is meant for clusters. On
 * a node of a cluster, what `-- cluster:` before it says: a table of the local database and a Distributed table of
 * its name, or something that every node has whole.
 */
export function statementsForNode(statement: string, values: Values): NodeStatement[] {
  const { layout } = values;
  const query = fill(statement, values);
  const { only, by } = directiveOf(statement);
  if (!layout) return only ? [] : [{ where: 'store', query }];
  if (by === 'every node') {
    return [{ where: 'store', query: replicated(query, layout, 'everywhere') }];
  }
  const local: NodeStatement = { where: 'local', query: replicated(query, layout, '{shard}') };
  return by === undefined ? [local] : [local, { where: 'store', query: distributed(statement, by, layout) }];
}

/** The sharding key of every Distributed table, by its name. */
export async function shardingKeys(sharding: Sharding): Promise<Map<string, string>> {
  const statements = (await readMigrations()).flatMap((migration) => migration.statements);
  return new Map(
    statements
      .map((statement) => ({ table: tableOf(statement), by: directiveOf(statement).by }))
      .filter(({ by }) => by !== undefined && by !== 'every node')
      .map(({ table, by = '' }) => [table, shardingKey(by, sharding)]),
  );
}

/** Names of the tables that every node of a cluster has whole. */
export async function tablesOnEveryNode(): Promise<string[]> {
  const statements = (await readMigrations()).flatMap((migration) => migration.statements);
  return statements
    .filter((statement) => /^CREATE TABLE/m.test(statement) && /^ENGINE = \w*MergeTree/m.test(statement))
    .filter((statement) => directiveOf(statement).by === 'every node')
    .map(tableOf);
}

/** Those that define the dictionaries as they are now, and take the place of what is there. */
export function dictionaries(migrations: readonly Migration[]): string[] {
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
    throw new Error(`migration of ${tableOf(statement)}: no -- cluster: says where it lies`);
  }
  const place = by ?? everyNode;
  return { only: only !== undefined, ...(place !== undefined && { by: place }) };
}

function tableOf(statement: string): string {
  return /^(?:CREATE (?:OR REPLACE )?\w+|ALTER TABLE) (?:IF NOT EXISTS )?(\w+)/m.exec(statement)?.[1] ?? '';
}

/** Has the columns, defaults and constraints of the local table, so that a bad line is refused before any is sent. */
function distributed(statement: string, by: string, { cluster, local, sharding }: Layout): string {
  const table = tableOf(statement);
  const create = /^ALTER/m.test(statement) ? 'CREATE OR REPLACE TABLE' : 'CREATE TABLE IF NOT EXISTS';
  return `${create} ${table} AS ${local}.${table}
ENGINE = Distributed('${cluster}', '${local}', '${table}', ${shardingKey(by, sharding)})`;
}

/**
 * The same table with a copy on every node of its shard, or on every node of the cluster. Chunks are then remembered
 * by the coordination service; the 30 years are there because its memory is also bounded by time.
 */
function replicated(query: string, layout: Layout, shard: string): string {
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

/** Puts values into `'{name}'` and `{name}.` of a migration; they are quoted as SQL strings are. */
function fill(statement: string, { timezone, database, user, password, layout }: Values): string {
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
