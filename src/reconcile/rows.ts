import type { ReadStatement } from '../../clickhouse/reader.ts';
import { type Status, statuses } from './model/about.ts';
import { roundedBy } from './model/score.ts';
import { keyOf, nameOf, noneOf, sent, statementOf, usedMeasures } from './model/sides.ts';
import type { Reconciled } from './reconcile.ts';

const isNothing = (name: string) => `arrayAll(x -> x = 0, ${name})`;

/**
 * SQL: the row is listed. Explanations move figures between rows: they can leave something on one that is equal, and on one that
 * neither side has, such as what ours would have on another day.
 */
const isListed = `(status != 'equal' OR NOT ${isNothing('u')})`;

/** SQL of all rows: both sides as they are, `o` and `t`, and `u`, what the explanations leave of their difference. */
function allRows({ compared, scale, explained }: Reconciled): string {
  const none = noneOf(compared.used);
  const columns = { n: 'toUInt64(0)', o: none, t: none, o_after: none, t_after: none };
  const side = (from: string, values: Partial<typeof columns>) =>
    `SELECT day, key, ${Object.entries({ ...columns, ...values })
      .map(([name, value]) => `${value} AS ${name}`)
      .join(', ')} FROM ${from}`;
  const sides = [
    side('ours', { o: 'f' }),
    side('theirs', { t: 'f' }),
    side('ours_after', { o_after: 'f' }),
    side('theirs_after', { t_after: 'f', n: 'n' }),
  ];
  const isRounded = explained.some(({ cause }) => cause === 'rounding');
  const left = 'arrayMap((o, t) -> t - o, o_after, t_after)';
  const unexplained = isRounded
    ? `arrayMap((x, is) -> x * (NOT is), ${left}, ${roundedBy(scale, 'o_after', 't_after')})`
    : left;
  const within =
    'arrayAll((o, t) -> toDecimal256(abs(t - o), 0) * 100 <= toDecimal256(abs(o), 0) * {tolerance:Decimal(18, 6)}, o, t)';
  return `SELECT *, ${unexplained} AS u, multiIf(o = t, 'equal', ${isNothing('t')}, 'only_ours', ${isNothing('o')}, 'only_theirs', ${within}, 'within', 'differs') AS status FROM (
    SELECT day, key, sum(n) AS n, ${['o', 't', 'o_after', 't_after'].map((name) => `sumForEach(${name}) AS ${name}`).join(', ')} FROM (${sides.join('\nUNION ALL ')}) GROUP BY day, key)`;
}

/** @param tolerance in percent of ours, decimal: what differs by no more is `within` */
function statement(reconciled: Reconciled, query: string, tolerance: string): ReadStatement {
  const { compared, before, after } = reconciled;
  return statementOf(compared, query, {
    params: { tolerance },
    tables: {
      ours: sent(before.ours),
      theirs: sent(before.theirs),
      ours_after: sent(after.ours),
      theirs_after: sent(after.theirs),
    },
  });
}

export interface RowCounts {
  /** Rows that one side has, or both. */
  readonly of: Readonly<Record<Status, number>>;
  /** How many `compileRows` lists. */
  readonly listed: number;
}

export async function countRows(reconciled: Reconciled, tolerance: string): Promise<RowCounts> {
  const has = `NOT (${isNothing('o')} AND ${isNothing('t')})`;
  const query = `SELECT status, toFloat64(countIf(${has})) AS rows, toFloat64(countIf(${isListed})) AS listed
    FROM (${allRows(reconciled)}) GROUP BY status`;
  const { reader } = reconciled.compared;
  const counts = await reader.rows<{ status: Status; rows: number; listed: number }>(
    statement(reconciled, query, tolerance),
  );
  const of = (status: Status) => counts.find((each) => each.status === status)?.rows ?? 0;
  return {
    of: Object.fromEntries(statuses.map((status) => [status, of(status)])) as Record<Status, number>,
    listed: counts.reduce((sum, { listed }) => sum + listed, 0),
  };
}

/** SQL of an amount as text. */
const amount = (value: string, isMoney: boolean): string =>
  isMoney ? `toString(toDecimal256(${value}, 6) / 1000000)` : `toString(${value})`;

/** The rows that are not equal, or on which explanations leave something. @param most the first rows; absent: all */
function listedRows(
  reconciled: Reconciled,
  tolerance: string,
  columns: readonly string[],
  most: number | undefined,
): ReadStatement {
  return statement(
    reconciled,
    `SELECT ${columns.join(', ')} FROM (${allRows(reconciled)}) AS r
     WHERE ${isListed} ORDER BY r.day, r.key${most === undefined ? '' : ` LIMIT ${most}`}`,
    tolerance,
  );
}

/** These rows as objects: amounts are text with all digits. */
export function compileRows(reconciled: Reconciled, tolerance: string, most?: number): ReadStatement {
  const { compared } = reconciled;
  const figures = usedMeasures(compared).map(({ name, n, isMoney }) => {
    const at = `[${n + 1}]`;
    const values = [`r.o${at}`, `r.t${at}`, `r.t${at} - r.o${at}`, `r.u${at}`];
    const members = 'Tuple(ours String, theirs String, difference String, unexplained String)';
    return `tuple(${values.map((value) => amount(value, isMoney)).join(', ')})::${members} AS ${name}`;
  });
  const columns = [
    'toString(r.day) AS day',
    `r.key AS ${keyOf(compared.catalog, compared.family)}`,
    `${nameOf(compared, 'r.key')} AS name`,
    'r.status AS status',
  ];
  return listedRows(reconciled, tolerance, [...columns, ...figures], most);
}

/** The same as a table for people, the first rows. */
export function compileTable(reconciled: Reconciled, tolerance: string, most: number): ReadStatement {
  const { compared } = reconciled;
  const figures = usedMeasures(compared).map(({ name, n, isMoney }) => {
    const side = (of: 'o' | 't' | 'u') => amount(`r.${of}[${n + 1}]`, isMoney);
    const left = `if(r.u[${n + 1}] = 0, '', concat(' (', ${side('u')}, ')'))`;
    return `concat(${side('o')}, ' / ', ${side('t')}, ${left}) AS \`${name}: ours / theirs (unexplained)\``;
  });
  const key = `r.key AS ${keyOf(compared.catalog, compared.family)}`;
  return listedRows(reconciled, tolerance, ['r.day AS day', key, 'r.status AS status', ...figures], most);
}
