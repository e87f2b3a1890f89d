import { closedTable } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { type Store, select, selectOne } from '../client.ts';
import { type Layout, layoutOf } from '../cluster/layout.ts';
import { onNodes } from '../cluster/on-nodes.ts';
import { distributedEngine, schemaStatements, shardingKeys } from '../migrate/migration-files.ts';
import {
  amountType,
  type Column,
  type Rollup,
  rollupPartition,
  rollups,
  selectInCluster,
  selectOf,
} from '../rollups.ts';
import { readSettings, type Settings } from '../settings.ts';

interface Table {
  name: string;
  engine: string;
  sorting_key: string;
  partition_key: string;
  engine_full: string;
  /** The table that a materialized view writes to. */
  target: string;
  as_select: string;
}

/** Tables whose rows have the report day of a time. */
const datedTables = ['events', 'incoming_staging'];

/**
 * Compares the live schema with the catalog and the settings and returns one sentence per difference; an empty list
 * means they agree. Covers what reports and loads rely on: rollups and their views, event columns and types, the time
 * zone of days, name dictionaries, that every other table, view and column is there, and that tables remember inserts. In a cluster it checks every node,
 * and also its settings and the sharding keys of its Distributed tables; each sentence then begins with the host.
 */
export async function checkSchema(store: Store, catalog: Catalog): Promise<string[]> {
  const settings = await readSettings(store);
  if (!settings) return ['settings: the table is missing or empty: restore a backup'];
  const layout = await layoutOf(store);
  if (!layout) {
    const schema = await readSchema(store, store.address.database);
    return withMissing(await localDifferences(store, catalog, settings, schema), [schema]);
  }
  const keys = await shardingKeys(layout.sharding);
  const placements = await placementsChecksum(store, 'placements FINAL');
  const differences = await onNodes(store, layout.nodes, store.address.database, async (node, { host }) => {
    const schema = await readSchema(node, store.address.database);
    const local = await readSchema(node, layout.local);
    const found = [
      ...settingsDifferences(settings, await readSettings(node)),
      ...(await localDifferences(node, catalog, settings, local, layout)),
      ...(await distributedDifferences(node, keys, schema.tables, layout)),
      ...((await placementsChecksum(node, 'placements FINAL')) === placements
        ? []
        : [`placements: ${placementsDiffer}`]),
      ...((await placementsChecksum(node, 'dictionary(placement)')) === placements
        ? []
        : [`placement: ${placementsDiffer}`]),
    ];
    return (await withMissing(found, [schema, local], [...keys.keys()])).map(
      (difference) => `${host}: ${difference}`,
    );
  });
  return differences.flat();
}

const placementsDiffer = 'differs from the node of CLICKHOUSE_URL: repeat adtally place or adtally grow';

/** Equal for equal placements; the dictionary numbers shards from 0. */
async function placementsChecksum(store: Store, source: string): Promise<string> {
  const base = source.startsWith('dictionary') ? 0 : 1;
  const row = await selectOne<{ sum: string }>(
    store,
    `SELECT toString(groupBitXor(cityHash64(account_id, arrayMap(shard -> toUInt16(shard - ${base}), shards)))) AS sum FROM ${source}`,
  );
  return row.sum;
}

/** Differences of a node of a cluster from the node that the others are compared with. */
function settingsDifferences(wanted: Settings, found: Settings | undefined): string[] {
  // Begins as `withMissing` says it, which then does not say it again.
  const text = (settings?: Settings) => JSON.stringify(settings) ?? 'the table is missing or empty';
  if (text(found) === text(wanted)) return [];
  return [
    `settings: ${text(found)}, but ${text(wanted)} on the node of CLICKHOUSE_URL: repeat adtally grow if it was interrupted`,
  ];
}

interface LiveColumn extends Column {
  readonly table: string;
  /** What its value is computed by, or empty. */
  readonly expression: string;
}

interface Schema {
  readonly tables: ReadonlyMap<string, Table>;
  readonly columns: readonly LiveColumn[];
}

async function readSchema(store: Store, database: string): Promise<Schema> {
  const tables = await select<Table>(
    store,
    `SELECT name, engine, sorting_key, partition_key, engine_full,
            extract(replaceAll(create_table_query, concat(database, '.'), ''), ' TO ([^ ]+)') AS target,
            replaceAll(as_select, concat(database, '.'), '') AS as_select
     FROM system.tables WHERE database = {database:String}`,
    { database },
  );
  const columns = await select<LiveColumn>(
    store,
    'SELECT table, name, type, default_expression AS expression FROM system.columns WHERE database = {database:String} ORDER BY table, position',
    { database },
  );
  return { tables: new Map(tables.map((table) => [table.name, table])), columns };
}

/** Differences in the database that holds events, rollups and views. */
async function localDifferences(
  store: Store,
  catalog: Catalog,
  settings: Settings,
  { tables, columns }: Schema,
  layout?: Layout,
): Promise<string[]> {
  const columnsOf = (table: string) => columns.filter((column) => column.table === table);
  const replicated = layout?.replicated ?? false;
  const differences = await Promise.all(
    rollups(catalog).map(async (rollup) => {
      const wanted = await singleLine(store, layout ? selectInCluster(rollup) : selectOf(rollup));
      return [
        ...tableDifferences(rollup, tables.get(rollup.table), columnsOf(rollup.table), replicated),
        // The finest rollup is what a close keeps.
        ...(rollup.owner ? closedDifferences(rollup, tables, columnsOf(closedTable(rollup.family))) : []),
        ...viewDifferences(rollup, wanted, tables.get(rollup.view)),
      ];
    }),
  );
  return [
    ...eventDifferences(catalog, columnsOf('events')),
    ...dayDifferences(settings, columns),
    ...differences.flat(),
  ];
}

/**
 * Adds what this version has of tables, views and columns and the databases lack, where it is not told yet, and what would
 * let a table forget inserts.
 * @param spread tables that each of the databases has; of others one has them
 */
async function withMissing(
  told: readonly string[],
  databases: readonly Schema[],
  spread: readonly string[] = [],
): Promise<string[]> {
  const statements = [...spread.map((name) => `CREATE TABLE ${name}`), ...(await schemaStatements())];
  const missing = statements.flatMap((statement) => {
    const [, kind = '', name = ''] = /^CREATE (?:MATERIALIZED )?(\w+) (\w+)/m.exec(statement) ?? [];
    const have = (has: (schema: Schema) => boolean) =>
      spread.includes(name) ? databases.every(has) : databases.some(has);
    if (!have(({ tables }) => tables.has(name))) return [`${name}: the ${kind.toLowerCase()} is missing`];
    const engines = databases.map(({ tables }) => tables.get(name)?.engine_full).join();
    // Without this setting what is sent twice counts twice, and a mail goes out twice.
    const setting = `${/Replicated\w*MergeTree/.test(engines) ? '' : 'non_'}replicated_deduplication_window`;
    const [, window] = / non_replicated_deduplication_window = (\d+)/.exec(statement) ?? [];
    const found = new RegExp(` ${setting} = (\\d+)`).exec(engines)?.[1] ?? '0';
    return [
      ...[...statement.matchAll(/^ {4}`(\w+)` (?!AS )/gm)].flatMap(([, wanted = '']) =>
        have(({ columns }) => columns.some((column) => column.table === name && column.name === wanted))
          ? []
          : [`${name}: column ${wanted} is missing`],
      ),
      ...(window && found !== window ? [`${name}: ${setting} is ${found}, but has to be ${window}`] : []),
    ];
  });
  const untold = missing.filter((sentence) => !told.some((each) => each.startsWith(sentence)));
  return [...told, ...new Set(untold)];
}

/** With another sharding key, reports would look for an account on the wrong shard. */
async function distributedDifferences(
  store: Store,
  keys: ReadonlyMap<string, string>,
  tables: ReadonlyMap<string, Table>,
  layout: Layout,
): Promise<string[]> {
  const differences = await Promise.all(
    [...keys].map(async ([table, key]) => {
      const expression = (await singleLine(store, `SELECT ${key}`)).replace('SELECT ', '');
      const engine = distributedEngine(table, expression, layout);
      const found = tables.get(table)?.engine_full;
      return found === undefined || found === engine
        ? []
        : [`${table}: the engine is ${found}, but has to be ${engine}`];
    }),
  );
  return differences.flat();
}

function tableDifferences(
  rollup: Rollup,
  table: Table | undefined,
  live: Column[],
  replicated: boolean,
): string[] {
  if (!table) return [`${rollup.table}: the table is missing`];
  const differences = [];
  const expect = (what: string, wanted: string, found: string) => {
    if (wanted !== found)
      differences.push(`${rollup.table}: ${what} is ${found}, the catalog wants ${wanted}`);
  };
  expect('the engine', `${replicated ? 'Replicated' : ''}AggregatingMergeTree`, table.engine);
  expect('the sort key', rollup.sortingKey.join(', '), table.sorting_key);
  expect('the partition', rollupPartition, table.partition_key);
  for (const { name, type } of rollup.columns) {
    expect(`column ${name}`, type, live.find((column) => column.name === name)?.type ?? 'missing');
  }
  for (const { name } of live) {
    if (!rollup.columns.some((column) => column.name === name)) {
      differences.push(`${rollup.table}: column ${name} is not in the catalog`);
    }
  }
  return differences;
}

/** Rows that differ in an id that is not part of the key would be taken for one. */
function closedDifferences(
  { family, columns, sortingKey }: Rollup,
  tables: Schema['tables'],
  live: readonly LiveColumn[],
): string[] {
  const table = closedTable(family);
  const key = tables.get(table)?.sorting_key.split(', ');
  if (!key) return [`${table}: the table is missing`];
  return columns
    .filter(({ merge }) => merge !== 'max')
    .flatMap(({ name, type }) => {
      const wanted = type.replace(/^SimpleAggregateFunction\(sum, (.*)\)$/, '$1');
      const found = live.find((column) => column.name === name)?.type ?? 'missing';
      if (found !== wanted) return [`${table}: column ${name} is ${found}, the catalog wants ${wanted}`];
      const isKey = sortingKey.includes(name);
      return isKey && !key.includes(name) ? [`${table}: column ${name} is not in the sort key`] : [];
    });
}

function viewDifferences(rollup: Rollup, wanted: string, view: Table | undefined): string[] {
  if (!view) return [`${rollup.view}: the view is missing, so loads do not reach ${rollup.table}`];
  if (view.engine !== 'MaterializedView' || view.target !== rollup.table) {
    return [`${rollup.view}: does not write to ${rollup.table}, so loads do not reach it`];
  }
  return view.as_select === wanted
    ? []
    : [`${rollup.view}: selects «${view.as_select}», the catalog wants «${wanted}»`];
}

function eventDifferences(catalog: Catalog, live: Column[]): string[] {
  if (live.length === 0) return ['events: the table is missing'];
  const families = Object.values(catalog.families);
  const amounts = families.flatMap(({ measures }) => Object.values(measures).map(({ sumOf }) => sumOf));
  const others = families.flatMap(({ owner, money, entity, dimensions }) => [
    owner,
    money,
    ...[entity, ...dimensions].map((name) => catalog.dimensions[name]?.key ?? name),
  ]);
  const missing = [...new Set([...others, ...amounts])].filter(
    (wanted) => !live.some(({ name }) => name === wanted),
  );
  const narrow = live.flatMap(({ name, type }) => {
    const amount = amounts.find((each) => each === name);
    if (!amount || type === amountType(amount)) return [];
    return [`events: column ${name} is ${type}, the catalog wants ${amountType(amount)}`];
  });
  return [...missing.map((name) => `events: column ${name} is missing`), ...narrow];
}

function dayDifferences({ timezone }: Settings, columns: readonly LiveColumn[]): string[] {
  const wanted = `toDate(event_time, '${timezone}')`;
  return columns
    .filter(({ table, name }) => name === 'day' && datedTables.includes(table))
    .filter(({ expression }) => expression !== wanted)
    .map(({ table, expression }) => `${table}: column day is ${expression}, the settings want ${wanted}`);
}

async function singleLine(store: Store, query: string): Promise<string> {
  const sql = 'SELECT formatQuerySingleLine({query:String}) AS text';
  return (await selectOne<{ text: string }>(store, sql, { query })).text;
}
