import { changesTable, closedTable } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../client.ts';
import { layoutOf, localDatabase } from '../cluster/layout.ts';
import { onNodes } from '../cluster/on-nodes.ts';
import { monthName, monthOf } from '../months.ts';
import { namesTables } from '../names-tables.ts';
import { quoted } from '../quoted.ts';
import { rollups } from '../rollups.ts';
import { type DayRange, everyDay } from './verify-rollups.ts';

/** A part that ClickHouse found damaged when it started, and set aside: its rows are in no answer. */
export interface DamagedPart {
  readonly table: string;
  /** `yyyymm`; anything else: its rows may be of any month. */
  readonly partition: string;
  /** As its folder is called now. */
  readonly part: string;
}

/** What a question is answered from. */
export interface Questioned {
  /** `yyyy-mm-dd`, both included. */
  readonly days: readonly { readonly first: string; readonly last: string }[];
  readonly tables: readonly string[];
}

/** What was asked for may lack rows. The message is for callers. */
export class DamagedFigures extends Error {
  override readonly name = 'DamagedFigures';
  readonly parts: readonly DamagedPart[];

  constructor(parts: readonly DamagedPart[]) {
    const months = [...new Set(parts.map(({ partition }) => partition))].sort();
    const which = months.every(isMonth)
      ? `the figures of ${months.map((month) => monthName(Number(month))).join(', ')} are damaged`
      : 'what the figures are made of is damaged';
    super(`${which}: the operator has to run adtally verify`);
    this.parts = parts;
  }
}

/** What tells of loads, and what was there before. */
export const historyTables = [
  ...['load_chunks', 'loads', 'pruned_months'],
  ...['past_confirmations', 'past_events', 'past_names', 'rewrites'],
];

/** All that the figures of a family, of today or closed, are made of. */
export function tablesOf(catalog: Catalog, family: string): string[] {
  return [
    ...rollups(catalog).flatMap((rollup) => (rollup.family === family ? [rollup.table] : [])),
    ...[changesTable(family), closedTable(family), 'closes', 'confirmations', 'events'],
    ...namesTables,
  ];
}

const isMonth = (partition: string) => /^\d{6}$/.test(partition);

/** @throws {DamagedFigures} when a part that was set aside may have rows that the answer needs */
export function requireWhole(parts: readonly DamagedPart[], questioned: Questioned): void {
  const { days, tables } = questioned;
  const lacking = parts.filter(
    ({ table, partition }) =>
      tables.includes(table) &&
      (!isMonth(partition) ||
        days.some(
          ({ first, last }) => monthOf(first) <= Number(partition) && Number(partition) <= monthOf(last),
        )),
  );
  if (lacking.length > 0) throw new DamagedFigures(lacking);
}

/** The same of a store that is asked now. @throws {DamagedFigures} */
export async function requireWholeStore(store: Store, questioned: Questioned): Promise<void> {
  requireWhole(await damagedParts(store), questioned);
}

/** The columns of `DamagedPart` and the number of the shard, with one row without a table for each shard that tells. */
export const damagedPartsQuery = `SELECT DISTINCT name AS table, partition, part, shardNum() AS shard FROM damaged_parts
  WHERE database IN ('', {database:String}, {local:String})`;

export const ofDatabase = (database: string) => ({ database, local: localDatabase(database) });

/** The damaged parts of all tables, on all shards. */
export async function damagedParts(store: Store): Promise<DamagedPart[]> {
  return select<DamagedPart>(
    store,
    `SELECT DISTINCT table, partition, part FROM (${damagedPartsQuery}) WHERE table != '' ORDER BY table, partition, part`,
    ofDatabase(store.address.database),
  );
}

/** Gives up what is left of damaged parts, on every node. */
export async function dropDamagedParts(store: Store, parts: readonly DamagedPart[]): Promise<void> {
  const layout = await layoutOf(store);
  const drop = async (server: Store, database: string) => {
    const here = await select<DamagedPart>(
      server,
      'SELECT table, name AS part FROM system.detached_parts WHERE database = {database:String}',
      { database },
    );
    for (const { table, part } of here.filter((each) =>
      parts.some((given) => given.table === each.table && given.part === each.part),
    )) {
      await server.command({
        query: `ALTER TABLE {database:Identifier}.{table:Identifier} DROP DETACHED PART ${quoted(part)}`,
        query_params: { database, table },
        clickhouse_settings: { allow_drop_detached: 1 },
      });
    }
  };
  const { database } = store.address;
  if (!layout) return drop(store, database);
  for (const each of [layout.local, database])
    await onNodes(store, layout.nodes, each, (node) => drop(node, each));
}

/**
 * To be called before rows are replaced by what is made of others: nothing would tell any more that some are missing.
 * @param months `yyyymm`; absent: all of them
 * @throws when parts of the table are damaged, of these months
 */
export async function requireWholeTable(
  store: Store,
  table: string,
  months?: readonly number[],
): Promise<void> {
  const found = (await damagedParts(store)).find(
    (each) =>
      each.table === table &&
      (!months || !isMonth(each.partition) || months.includes(Number(each.partition))),
  );
  if (found)
    throw new Error(
      `${describeDamagedPart(found)}. Nothing was changed: adtally verify tells how to mend that, which has to come first`,
    );
}

/** The days that its rows may be of. */
export function daysOfPart({ partition }: DamagedPart): DayRange {
  const day = `${monthName(Number(partition))}-01`;
  return isMonth(partition) ? { from: day, to: day } : everyDay;
}

/** What ClickHouse answers where it cannot decode what a part has on disk. */
const unreadable = [
  'ATTEMPT_TO_READ_AFTER_EOF',
  'CANNOT_DECOMPRESS',
  'CANNOT_READ_ALL_DATA',
  'CHECKSUM_DOESNT_MATCH',
  'CORRUPTED_DATA',
  'UNKNOWN_CODEC',
];

/** The part in which reading has failed, and its folder. ClickHouse looks at rows when it reads them, and not when it starts. */
export function unreadablePart(error: unknown): (DamagedPart & { readonly path: string }) | undefined {
  if (!(error instanceof Error && 'type' in error && unreadable.includes(String(error.type))))
    return undefined;
  const [, path = '', part, table] =
    /while reading from part (\S*\/([^/\s]+)\/) in table [^.\s]+\.(\S+) /.exec(error.message) ?? [];
  if (part === undefined || table === undefined) return undefined;
  return { table, partition: part.slice(0, part.indexOf('_')), part, path };
}

/** What a person should do about it. */
export const adviceOnUnreadable = ({ table, path }: NonNullable<ReturnType<typeof unreadablePart>>): string =>
  `${path} of ${table} cannot be read, and reports that need it are refused. Have ClickHouse set it aside: stop ClickHouse, empty ${path}checksums.txt, start it, and run adtally verify, which tells how to mend it then`;

/** In words. */
export function describeDamagedPart({ table, partition, part }: DamagedPart): string {
  const month = isMonth(partition) ? ` of ${monthName(Number(partition))}` : '';
  return `ClickHouse found part ${part} of ${table}${month} damaged and goes on without it`;
}

/** The same, with what a person should do. */
export const adviceOn = (part: DamagedPart): string =>
  `${describeDamagedPart(part)}: reports that need its rows are refused; adtally verify tells how to mend it`;
