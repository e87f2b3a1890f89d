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
  readonly statements: readonly Statement[];
}

export interface Statement {
  /** With placeholders, and the comments before it. */
  readonly text: string;
  /** `CREATE`, `ALTER`, `DROP`, `INSERT`, … */
  readonly verb: string;
  /** The table, view or dictionary that it makes, changes or drops; empty where it does none of these. */
  readonly name: string;
  readonly isDictionary: boolean;
  /** Where a cluster keeps the rows of `name`. Absent for a view that fills a table: it is where its tables are. */
  readonly place?: Place;
}

interface Place {
  /** What decides the shard of a row, see `shardingKey`, or `every node` for what each node has whole. */
  readonly by: string;
  /** A single node does not have it. */
  readonly only: boolean;
}

/** Every migration of this version of adtally, in order. */
export async function readMigrations(): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort();
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, directory), 'utf8')));
  const places = new Map<string, Place>();
  return files.map((file, n) => {
    const text = texts[n] ?? '';
    return {
      version: Number.parseInt(file, 10),
      name: file.replace('.sql', ''),
      checksum: createHash('sha256').update(text).digest('hex'),
      statements: text
        .split(/;\s*$/m)
        .filter((statement) => /^\w/m.test(statement))
        .map((statement) => parse(statement, places)),
    };
  });
}

/** @param places of the tables made so far; one that is changed or dropped stays where it was made */
function parse(text: string, places: Map<string, Place>): Statement {
  const [verb = ''] = /^\w+/m.exec(text) ?? [];
  const [, kind = '', name = ''] =
    /^(?:CREATE|ALTER|DROP)(?: OR REPLACE| MATERIALIZED)? (\w+) (?:IF (?:NOT )?EXISTS )?(\w+)/m.exec(text) ??
    [];
  const [, only, by] = /^-- cluster: (only, )?(?:by |on (?=every node$))(.+)$/m.exec(text) ?? [];
  if (by !== undefined) places.set(name, { by, only: only !== undefined });
  const place = places.get(name);
  if (!place && verb === 'CREATE' && kind !== 'VIEW') {
    throw new Error(
      `migration of ${name}: it needs a -- cluster: comment that says where a cluster keeps its rows`,
    );
  }
  if (verb === 'DROP') places.delete(name);
  return { text, verb, name, isDictionary: kind === 'DICTIONARY', ...(place && { place }) };
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
 * none if it is for clusters only. On a cluster node the place of its table decides: a table in the local database plus
 * a Distributed table of the same name, or a table with a full copy on every node.
 */
export function statementsForNode(
  { text, verb, name, place }: Statement,
  values: MigrationValues,
): NodeStatement[] {
  const { layout } = values;
  const query = fillPlaceholders(text, values);
  if (!layout) return place?.only ? [] : [{ where: 'store', query }];
  if (place?.by === 'every node') {
    return [{ where: 'store', query: replicatedTable(query, name, layout, 'everywhere') }];
  }
  const local: NodeStatement = { where: 'local', query: replicatedTable(query, name, layout, '{shard}') };
  if (!place) return [local];
  // First the one that reads the other.
  if (verb === 'DROP') return [{ where: 'store', query }, local];
  const key = shardingKey(place.by, layout.sharding);
  return [local, { where: 'store', query: distributedTable(name, key, layout) }];
}

/** The sharding key of every Distributed table that the migrations leave, by table name. */
export async function shardingKeys(sharding: Sharding): Promise<Map<string, string>> {
  const spread = (await created()).flatMap(({ name, place }) =>
    place && place.by !== 'every node' ? [[name, shardingKey(place.by, sharding)] as const] : [],
  );
  return new Map(spread);
}

/** The tables with a full copy on every node of a cluster. */
export async function tablesOnEveryNode(): Promise<string[]> {
  const whole = (await created()).filter(
    ({ isDictionary, place }) => !isDictionary && place?.by === 'every node',
  );
  return whole.map(({ name }) => name);
}

/** The statements that create each dictionary in its latest form, replacing the existing one. */
export async function dictionaryStatements(): Promise<Statement[]> {
  return (await created()).filter(({ isDictionary }) => isDictionary);
}

/** The CREATE statements of schema.sql: of every table, dictionary and view of a single node. */
export async function schemaStatements(): Promise<string[]> {
  const page = await readFile(new URL('../schema.sql', import.meta.url), 'utf8');
  return page.split(/;\n+/).filter((statement) => statement !== '');
}

/** The latest CREATE of every table, view and dictionary that the migrations leave. */
async function created(): Promise<Statement[]> {
  const left = new Map<string, Statement>();
  for (const statement of (await readMigrations()).flatMap(({ statements }) => statements)) {
    if (statement.verb === 'CREATE') left.set(statement.name, statement);
    if (statement.verb === 'DROP') left.delete(statement.name);
  }
  return [...left.values()];
}

/**
 * Makes or replaces the table that spreads rows over the local ones. It has their columns, defaults and constraints, so
 * that a bad line is refused before any is sent.
 */
export function distributedTable(table: string, key: string, layout: Layout): string {
  return `CREATE OR REPLACE TABLE ${table} AS ${layout.local}.${table}
ENGINE = ${distributedEngine(table, key, layout)}`;
}

export function distributedEngine(table: string, key: string, { cluster, local }: Layout): string {
  return `Distributed('${cluster}', '${local}', '${table}', ${key})`;
}

/**
 * The same table, replicated on every node of its shard or of the cluster. The coordination service then keeps the
 * dedup ids of chunks, for a limited time: 30 years.
 */
function replicatedTable(query: string, name: string, layout: Layout, shard: string): string {
  if (!layout.replicated) return query;
  const path = `'/clickhouse/tables/${layout.local}/${shard}/${name}', '{shard}-{replica}'`;
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
