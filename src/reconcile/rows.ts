import { familyOf } from '../../catalog/breakdowns.ts';
import type { ReadStatement } from '../../clickhouse/reader.ts';
import { roundedBy } from './model/score.ts';
import { keyOf, measuresOf, nameOf, noneOf, sent, statementOf } from './model/sides.ts';
import type { Reconciled } from './reconcile.ts';

const statuses = ['equal', 'within', 'differs', 'only_ours', 'only_theirs'] as const;
type Status = (typeof statuses)[number];

export interface RowsAsked {
  /** In percent of ours, decimal: what differs by no more is `within`. */
  readonly tolerance: string;
}

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
  const isNothing = (name: string) => `arrayAll(x -> x = 0, ${name})`;
  return `SELECT *, ${unexplained} AS u, multiIf(o = t, 'equal', ${isNothing('t')}, 'only_ours', ${isNothing('o')}, 'only_theirs', ${within}, 'within', 'differs') AS status FROM (
    SELECT day, key, sum(n) AS n, ${['o', 't', 'o_after', 't_after'].map((name) => `sumForEach(${name}) AS ${name}`).join(', ')} FROM (${sides.join('\nUNION ALL ')}) GROUP BY day, key)`;
}

function statement(reconciled: Reconciled, query: string, { tolerance }: RowsAsked): ReadStatement {
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

/** How many rows there are of each status. */
export async function countRows(reconciled: Reconciled, asked: RowsAsked): Promise<Record<Status, number>> {
  const query = `SELECT status, toFloat64(count()) AS rows FROM (${allRows(reconciled)}) GROUP BY status`;
  const { reader } = reconciled.compared;
  const rows = await reader.rows<{ status: Status; rows: number }>(statement(reconciled, query, asked));
  const found = new Map(rows.map((row) => [row.status, row.rows]));
  return Object.fromEntries(statuses.map((status) => [status, found.get(status) ?? 0])) as Record<
    Status,
    number
  >;
}

/** SQL of an amount as text. */
const amount = (value: string, isMoney: boolean): string =>
  isMoney ? `toString(toDecimal256(${value}, 6) / 1000000)` : `toString(${value})`;

/** The rows that are not equal, as objects: amounts are text with all digits. */
export function compileRows(reconciled: Reconciled, asked: RowsAsked): ReadStatement {
  const { compared } = reconciled;
  const key = keyOf(compared.catalog, compared.family);
  const figures = usedMeasures(reconciled).map(({ name, n, isMoney }) => {
    const values = [`r.o[${n}]`, `r.t[${n}]`, `r.t[${n}] - r.o[${n}]`, `r.u[${n}]`];
    const members = 'Tuple(ours String, theirs String, difference String, unexplained String)';
    return `tuple(${values.map((value) => amount(value, isMoney)).join(', ')})::${members} AS ${name}`;
  });
  const columns = [
    'toString(r.day) AS day',
    `r.key AS ${key}`,
    `${nameOf(compared, 'r.key')} AS name`,
    'r.status AS status',
  ];
  return statement(
    reconciled,
    `SELECT ${[...columns, ...figures].join(', ')} FROM (${allRows(reconciled)}) AS r
     WHERE r.status != 'equal' ORDER BY r.day, r.key`,
    asked,
  );
}

/** The same as a table for people, the first rows. */
export function compileTable(reconciled: Reconciled, asked: RowsAsked, limit: number): ReadStatement {
  const { compared } = reconciled;
  const key = keyOf(compared.catalog, compared.family);
  const figures = usedMeasures(reconciled).map(({ name, n, isMoney }) => {
    const both = `${amount(`r.o[${n}]`, isMoney)}, ' / ', ${amount(`r.t[${n}]`, isMoney)}`;
    const left = `if(r.u[${n}] = 0, '', concat(' (', ${amount(`r.u[${n}]`, isMoney)}, ')'))`;
    return `concat(${both}, ${left}) AS \`${name}: ours / theirs (unexplained)\``;
  });
  return statement(
    reconciled,
    `SELECT ${['r.day AS day', `r.key AS ${key}`, 'r.status AS status', ...figures].join(', ')} FROM (${allRows(reconciled)}) AS r
     WHERE r.status != 'equal' ORDER BY r.day, r.key LIMIT ${limit}`,
    asked,
  );
}

function usedMeasures({ compared }: Reconciled) {
  const { measures } = familyOf(compared.catalog, compared.family);
  return measuresOf(familyOf(compared.catalog, compared.family))
    .map((name, n) => ({ name, n: n + 1, isMoney: measures[name]?.type === 'Money' }))
    .filter((_, n) => compared.used[n]);
}
