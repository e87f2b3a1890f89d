import { buffer } from 'node:stream/consumers';
import { dimensionOf, familyOf, rollupTable } from '../../../catalog/breakdowns.ts';
import type { Catalog, Family } from '../../../catalog/catalog.ts';
import type { ReadStatement, Reads, SentTable } from '../../../clickhouse/reader.ts';
import { ownSettings } from '../../report/compile.ts';
import { owned, ownedOn } from '../../report/owned.ts';
import { everyDay, type ShardRouting } from '../../report/plan.ts';

/** What is compared: an account's rows of a family by day and campaign or ad unit, with a report of the other side. */
export interface Compared {
  readonly reader: Reads;
  readonly catalog: Catalog;
  readonly family: string;
  readonly account: string;
  /** IANA zone of the days of reports. */
  readonly timezone: string;
  readonly routing: ShardRouting | undefined;
  /** Whether loads are told with the names of their files, which only operators may see. */
  readonly namesFiles: boolean;
  readonly first: string;
  readonly last: string;
  /** Of each measure whether it is compared. */
  readonly used: readonly boolean[];
}

/**
 * Rows of one side, as the engine wrote them; they are never looked at here. `f` has the measures of the family in their
 * order: counts as they are, money in millionths. `n` is how many records a row is the sum of, which only theirs have.
 */
export type Side = readonly Uint8Array[];

const sideStructure = 'day Date, key String, n UInt64, f Array(Int256)';

export const sent = (bytes: Side): SentTable => ({ structure: sideStructure, format: 'RowBinary', bytes });

/** The family's measures, in the order of `f`. */
export const measuresOf = ({ measures }: Family): string[] => Object.keys(measures);

/** The measures that are compared, with their places in `f`, counted from 0. */
export const usedMeasures = ({ catalog, family, used }: Compared) =>
  Object.entries(familyOf(catalog, family).measures)
    .map(([name, { type }], n) => ({ name, n, isMoney: type === 'Money' }))
    .filter(({ n }) => used[n]);

/** What tells their rows apart: the column of the campaign or ad unit. */
export const keyOf = (catalog: Catalog, family: string): string => entityOf(catalog, family).key;

const entityOf = (catalog: Catalog, family: string) => dimensionOf(catalog, familyOf(catalog, family).entity);

/** SQL of the sums of a family's measures as `f`, from sums of the same names. */
export function figuresFrom({ measures }: Family, sums: (measure: string) => string): string {
  const values = Object.entries(measures).map(([name, { type }]) =>
    type === 'Money' ? `toInt256(toDecimal256(${sums(name)}, 6) * 1000000)` : `toInt256(${sums(name)})`,
  );
  return `[${values.join(', ')}]`;
}

/** SQL of `f` without what is not compared. */
export const onlyUsed = (figures: string, { used }: Pick<Compared, 'used'>): string =>
  `arrayMap((x, u) -> x * u, ${figures}, [${used.map(Number).join(', ')}])`;

/** A statement on both sides, with its own parameters beside account and days. */
export function statementOf(
  compared: Compared,
  query: string,
  {
    params = {},
    tables = {},
    reads = {},
  }: {
    readonly params?: Readonly<Record<string, string | readonly string[]>>;
    readonly tables?: Readonly<Record<string, SentTable>>;
    /** Tables that are read beside the coarsest rollup, each with the column that holds the account. */
    readonly reads?: Readonly<Record<string, string>>;
  } = {},
): ReadStatement {
  const { family, account, routing, first, last } = compared;
  return {
    query,
    params: { account, first, last, ...params },
    settings: {
      ...ownSettings({ account, routing }, { [rollupTable(family, [])]: 'account_id', ...reads }),
      // What a shard compares its rows with may lie on others.
      distributed_product_mode: 'global',
    },
    tables,
  };
}

/** Runs a statement whose rows are one side. */
export async function sideFrom({ reader }: Compared, statement: ReadStatement): Promise<Side> {
  return [await buffer(await reader.stream({ ...statement, query: `${statement.query}\nFORMAT RowBinary` }))];
}

/** What the report by day has. */
export function rollupRows(compared: Compared): ReadStatement {
  const { catalog, family } = compared;
  const figures = figuresFrom(familyOf(catalog, family), (name) => `sum(r.${name})`);
  return statementOf(
    compared,
    [
      `SELECT day, ${keyOf(catalog, family)} AS key, toUInt64(0) AS n, ${onlyUsed(figures, compared)} AS f`,
      `FROM ${rollupTable(family, [])} AS r WHERE ${owned} GROUP BY day, key`,
      'HAVING arrayExists(x -> x != 0, f)',
    ].join('\n'),
  );
}

/** Their rows of the days, with the ids of ours where their keys are ours, or names that one of ours has alone. */
export function resolvedRows(compared: Compared, theirs: Side): ReadStatement {
  const { used } = compared;
  return statementOf(
    compared,
    [
      `SELECT day, id AS key, sum(count) AS n, ${onlyUsed('sumForEach(figures)', { used })} AS f FROM (`,
      `SELECT t.day AS day, t.n AS count, t.f AS figures, multiIf(t.key IN (SELECT own.id FROM (${ourKeys(compared)}) AS own), t.key, k.ids = 1, k.id, t.key) AS id`,
      `FROM theirs AS t LEFT JOIN (SELECT own.name AS name, any(own.id) AS id, count() AS ids FROM (${ourKeys(compared)}) AS own GROUP BY name) AS k ON k.name = t.key`,
      'WHERE t.day BETWEEN {first:Date} AND {last:Date}) GROUP BY day, key HAVING arrayExists(x -> x != 0, f)',
    ].join('\n'),
    { tables: { theirs: sent(theirs) }, params: { every_first: everyDay.first, every_last: everyDay.last } },
  );
}

/** The ids that the account has rows of on any day, with their names. */
function ourKeys(compared: Compared): string {
  const { catalog, family } = compared;
  const key = keyOf(catalog, family);
  return `SELECT ${key} AS id, ${nameOf(compared, key)} AS name FROM ${rollupTable(family, [])} AS r WHERE ${ownedOn(['every_first', 'every_last'])} GROUP BY id, name`;
}

/** SQL of the name of an id. */
export function nameOf({ catalog, family, routing }: Compared, id: string): string {
  const name = entityOf(catalog, family).columns[0]?.name;
  if (!name) return id;
  const dictionary = routing ? `${routing.database}.${name.dictionary}` : name.dictionary;
  return `dictGetOrDefault('${dictionary}', '${name.attribute}', ({account:String}, ${id}), ${id})`;
}

/** SQL of both sides beside each other: `o` of ours, `t` of theirs, by day and key. Reads the tables `ours` and `theirs`. */
export function bothSides({ used }: Pick<Compared, 'used'>, key = 'key'): string {
  const none = noneOf(used);
  return [
    `SELECT day, ${key} AS key, sum(n) AS n, sumForEach(o) AS o, sumForEach(t) AS t FROM (`,
    `SELECT day, key, toUInt64(0) AS n, f AS o, ${none} AS t FROM ours`,
    `UNION ALL SELECT day, key, n, ${none} AS o, f AS t FROM theirs) GROUP BY day, key`,
  ].join('\n');
}

/** SQL of `f` without figures. */
export const noneOf = (used: readonly boolean[]): string => `arrayWithConstant(${used.length}, toInt256(0))`;
