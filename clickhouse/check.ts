import { type Catalog, eventTypes } from '../src/catalog.ts';
import { type Store, select } from './client.ts';
import { type Column, type Rollup, rollupPartition, rollups } from './rollups.ts';

interface Table {
  name: string;
  engine: string;
  sorting_key: string;
  partition_key: string;
  engine_full: string;
  /** The table a materialized view writes to. */
  target: string;
  as_select: string;
}

/** What the service reads beside the reports. */
const serviceTables = {
  confirmations: ['account_id', 'day', 'confirmed_at'],
  tokens: ['id', 'account_id', 'hash', 'label', 'created_at', 'expires_at', 'revoked_at', 'version'],
  account_limits: ['account_id', 'requests', 'version'],
};

/**
 * Compares the live schema with the catalog and names each difference; an empty list means they agree.
 * Covers what reports and loads rely on: rollups, their views, event columns and types, name dictionaries, and
 * what else the service reads.
 */
export async function check(store: Store, catalog: Catalog): Promise<string[]> {
  const tables = new Map(
    (
      await select<Table>(
        store,
        `SELECT name, engine, sorting_key, partition_key, engine_full,
                extract(replaceAll(create_table_query, concat(currentDatabase(), '.'), ''), ' TO ([^ ]+)') AS target,
                replaceAll(as_select, concat(currentDatabase(), '.'), '') AS as_select
         FROM system.tables WHERE database = currentDatabase()`,
      )
    ).map((table) => [table.name, table]),
  );
  const columns = await select<Column & { table: string }>(
    store,
    'SELECT table, name, type FROM system.columns WHERE database = currentDatabase() ORDER BY table, position',
  );
  const columnsOf = (table: string) => columns.filter((column) => column.table === table);

  const differences = await Promise.all(
    rollups(catalog).map(async (rollup) => [
      ...tableDifferences(rollup, tables.get(rollup.table), columnsOf(rollup.table)),
      ...viewDifferences(rollup, await singleLine(store, rollup.select), tables.get(rollup.view)),
    ]),
  );
  return [
    ...eventDifferences(catalog, columnsOf('events')),
    ...differences.flat(),
    ...dictionaryDifferences(catalog, tables),
    ...Object.entries(serviceTables).flatMap(([table, wanted]) => {
      const live = columnsOf(table).map(({ name }) => name);
      if (live.length === 0) return [`${table}: the table is missing`];
      return wanted
        .filter((name) => !live.includes(name))
        .map((name) => `${table}: column ${name} is missing`);
    }),
  ];
}

function tableDifferences(rollup: Rollup, table: Table | undefined, live: Column[]): string[] {
  if (!table) return [`${rollup.table}: the table is missing`];
  const differences = [];
  const expect = (what: string, wanted: string, found: string) => {
    if (wanted !== found)
      differences.push(`${rollup.table}: ${what} is ${found}, the catalog wants ${wanted}`);
  };
  expect('the engine', 'AggregatingMergeTree', table.engine);
  expect('the sort key', rollup.sortingKey.join(', '), table.sorting_key);
  expect('the partition', rollupPartition, table.partition_key);
  // Without it a chunk that is sent twice is counted twice.
  const window = / non_replicated_deduplication_window = (\d+)/.exec(table.engine_full)?.[1] ?? '0';
  expect('non_replicated_deduplication_window', '10000', window);
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

function viewDifferences(rollup: Rollup, wanted: string, view: Table | undefined): string[] {
  if (!view) return [`${rollup.view}: the view is missing, loads do not reach ${rollup.table}`];
  if (view.engine !== 'MaterializedView' || view.target !== rollup.table) {
    return [`${rollup.view}: does not write to ${rollup.table}, loads do not reach it`];
  }
  return view.as_select === wanted
    ? []
    : [`${rollup.view}: selects «${view.as_select}», the catalog wants «${wanted}»`];
}

function eventDifferences(catalog: Catalog, live: Column[]): string[] {
  if (live.length === 0) return ['events: the table is missing'];
  const wanted = new Set(
    Object.values(catalog.families).flatMap((family) => [
      family.owner,
      family.money,
      ...[family.entity, ...family.dimensions].map((name) => catalog.dimensions[name]?.key ?? name),
      ...Object.values(family.measures).map(({ sumOf }) => sumOf),
    ]),
  );
  const missing = [...wanted].filter((name) => !live.some((column) => column.name === name));
  const types = live.find(({ name }) => name === 'event_type')?.type ?? '';
  return [
    ...missing.map((name) => `events: column ${name} is missing`),
    ...eventTypes
      .filter((type) => !types.includes(`'${type}'`))
      .map((type) => `events: event_type cannot be '${type}'`),
  ];
}

function dictionaryDifferences(catalog: Catalog, tables: Map<string, Table>): string[] {
  return Object.values(catalog.dimensions)
    .flatMap(({ columns }) => columns.map(({ name }) => name?.dictionary))
    .filter((name) => name !== undefined && tables.get(name)?.engine !== 'Dictionary')
    .map((name) => `${name}: the dictionary is missing`);
}

async function singleLine(store: Store, query: string): Promise<string> {
  const [row] = await select<{ text: string }>(
    store,
    'SELECT formatQuerySingleLine({query:String}) AS text',
    {
      query,
    },
  );
  return row?.text ?? '';
}
