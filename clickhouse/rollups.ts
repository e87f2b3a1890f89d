import { combinations, dimensionOf, familyOf, rollupTable } from '../catalog/breakdowns.ts';
import type { Catalog, Family } from '../catalog/catalog.ts';
import { type Amount, fieldSpecs } from '../catalog/events.ts';

export interface Column {
  readonly name: string;
  readonly type: string;
  /** What makes one value of those of equal keys; absent for a key. */
  readonly merge?: 'sum' | 'max';
}

/** One pre-aggregated table and the view that fills it, as derived from the catalog. */
export interface Rollup {
  readonly family: string;
  readonly table: string;
  readonly columns: readonly Column[];
  /** Begins with account and day, so a report reads one contiguous range. */
  readonly sortingKey: readonly string[];
  readonly view: string;
  /** What the view selects, for each column. */
  readonly fields: readonly string[];
  /** The table that the view reads. */
  readonly source: string;
  /** The event column that holds the account; absent for a rollup that reads a finer one. */
  readonly owner?: Family['owner'];
}

/**
 * When a load last added to a row, by the clock of the server: the one column that does not follow from the events. A
 * rebuild takes it over, by account and day.
 */
export const changedAt = 'changed_at';

const merged = (name: string, merge: 'sum' | 'max', type: string): Column => ({
  name,
  merge,
  type: `SimpleAggregateFunction(${merge}, ${type})`,
});
const latest = (name: string) => merged(name, 'max', "DateTime64(6, 'UTC')");

/**
 * By month: a night's load makes one or two parts, a month can be rebuilt alone, and an answer about other months stays
 * true. By year (tried, merged) 365 days of a small account take 0.4 to 0.6 of the engine's CPU and one day 1.06, but
 * every load would make all answers of the year untrue. The largest report took 0.96 of the CPU, and 1.2 times as long
 * on a busy machine, as fewer threads read one part.
 */
export const rollupPartition = 'toYYYYMM(day)';

/**
 * Every rollup of the catalog, each after the one that its view reads. The finest reads `events`; a coarser one reads
 * the rollup that also has the first dimension it lacks. The cascade is 1.3–1.5 times faster than reading `events`
 * for each, and a retried chunk fills just what is missing.
 */
export function rollups(catalog: Catalog): Rollup[] {
  return Object.keys(catalog.families).flatMap((family) =>
    combinations(familyOf(catalog, family))
      .reverse()
      .sort((a, b) => b.length - a.length)
      .map((dimensions) => rollup(catalog, family, dimensions)),
  );
}

function rollup(catalog: Catalog, familyName: string, dimensions: string[]): Rollup {
  const family = familyOf(catalog, familyName);
  const keys = [family.entity, ...dimensions].map((name) => dimensionOf(catalog, name));
  const sortingKey = ['account_id', 'day', ...keys.map(({ key }) => key)];
  const table = rollupTable(familyName, dimensions);
  const missing = family.dimensions.find((name) => !dimensions.includes(name));
  const measures = Object.entries(family.measures);
  // The coarsest rollup has the fewest rows.
  const tellsChanges = dimensions.length === 0;

  const fields = missing
    ? [
        ...sortingKey,
        ...measures.map(([name]) => `sum(r.${name}) AS ${name}`),
        'max(r.unconfirmed_at) AS unconfirmed_at',
        ...(tellsChanges ? [`now64(6, 'UTC') AS ${changedAt}`] : []),
      ]
    : [
        `${family.owner} AS account_id`,
        ...sortingKey.slice(1),
        ...measures.map(([name, { sumOf }]) => `sum(e.${sumOf}) AS ${name}`),
        `maxIf(loaded_at, ${family.money} != 0 AND NOT confirmed) AS unconfirmed_at`,
      ];
  const source = missing
    ? rollupTable(
        familyName,
        family.dimensions.filter((name) => name === missing || dimensions.includes(name)),
      )
    : 'events';

  return {
    family: familyName,
    table,
    columns: [
      { name: 'account_id', type: 'String' },
      { name: 'day', type: 'Date' },
      ...keys.map(({ key, storage }) => ({ name: key, type: storage })),
      ...measures.map(([name, { sumOf }]) => merged(name, 'sum', amountType(sumOf))),
      latest('unconfirmed_at'),
      ...(tellsChanges ? [latest(changedAt)] : []),
    ],
    sortingKey,
    view: `${table}_view`,
    fields,
    source,
    ...(!missing && { owner: family.owner }),
  };
}

/**
 * The SELECT of the view of a rollup, which groups by exactly the sort key.
 * @param source another table than the one that the view reads
 * @param condition for events, besides that they have an owner
 */
export function selectOf(
  { fields, owner, sortingKey, source: ownSource }: Rollup,
  source = ownSource,
  condition?: string,
): string {
  const where = owner ? [`${owner} != ''`, ...(condition ? [condition] : [])] : [];
  return [
    `SELECT ${fields.join(', ')}`,
    `FROM ${source} AS ${owner ? `e WHERE ${where.join(' AND ')}` : 'r'}`,
    `GROUP BY ${sortingKey.join(', ')}`,
  ].join('\n');
}

/** The SELECT of the view in a cluster, where publishers' events are read from a separate table. */
export function selectInCluster(rollup: Rollup): string {
  return selectOf(rollup, rollup.owner === 'publisher_id' ? 'publisher_events' : rollup.source);
}

/** The CREATE statements of a rollup, as they are in a migration. */
export function rollupDdl(rollup: Rollup): string {
  const columns = rollup.columns.map(({ name, type }) => `    ${name} ${type}`).join(',\n');
  return `-- cluster: by account
CREATE TABLE IF NOT EXISTS ${rollup.table}
(
${columns}
)
ENGINE = AggregatingMergeTree
PARTITION BY ${rollupPartition}
ORDER BY (${rollup.sortingKey.join(', ')})
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${rollup.view} TO ${rollup.table} AS
${selectOf(rollup)};
`;
}

/**
 * The type of an amount in `events` and of its sums. It is the same, because the sum of narrower numbers is as narrow: no
 * store holds so many events that one of 128 bits wraps (10^23 of the greatest count, 10^20 of the greatest amount).
 */
export function amountType(amount: Amount): string {
  return fieldSpecs[amount].kind === 'money' ? 'Decimal(38, 6)' : 'UInt128';
}
