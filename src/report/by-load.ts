import { loadOfChunk } from '../../clickhouse/came-between.ts';
import { foldedChunk } from '../../clickhouse/consistency/fold-events.ts';
import { groupingDimensions, loadColumns } from './columns.ts';
import { rfc3339, rowsChanged, safelyBefore } from './day-changed.ts';
import { ofRange, ownedOn } from './owned.ts';
import type { Plan } from './plan.ts';
import { cameSince, leftSince } from './rows-of-then.ts';

const unknown = (column: string) => (column === 'change' ? "'unknown'" : "''");
/** SQL of `loadColumns` for changes that no load is known of. */
export const unknownLoad = loadColumns.map((name) => `${unknown(name)} AS ${name}`).join(', ');

/** When the month of a day was closed. */
const closedAt = "fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC')";

/**
 * What came and what was taken away since a month was closed, by load. The caller adds all changes as `unknown`. Each told row is
 * therefore written twice: as itself, and negated as `unknown`. So sums by key are what changed, to the last digit, and what
 * stays unknown is what the events that are kept do not tell. Only days that changed are read.
 */
export function changesByLoad({ catalog, breakdown, family }: Plan): string {
  const { owner, measures } = family;
  const keys = groupingDimensions(catalog, breakdown).map(({ key }) => key);
  const changed = `${ownedOn(ofRange, owner)} AND ${rowsChanged(breakdown.family, safelyBefore(closedAt))}`;
  const came = `FROM events AS e PREWHERE ${changed} AND ${cameSince(closedAt)} AND chunk != '${foldedChunk}'`;
  const left = `FROM past_events AS e PREWHERE ${changed} AND ${leftSince(closedAt)}`;
  const names = Object.keys(measures);
  const columns = ['account_id', 'day', ...keys, ...loadColumns];
  const sums = (sign: string) =>
    Object.entries(measures).map(([measure, { sumOf, type }]) => {
      const sum = `sum(e.${sumOf})`;
      return `${sign}${type === 'Money' ? sum : `toInt128(${sum})`} AS ${measure}`;
    });
  const grouped = (how: string, sign = '') =>
    `SELECT any(e.${owner}) AS account_id, ${['day', ...keys].join(', ')}, ${how}, toString(e.reason) AS reason, ${sums(sign).join(', ')}`;
  const by = `GROUP BY ${['day', ...keys].join(', ')}`;
  const told = loadColumns.map((column) => `if(is_told, g.${column}, ${unknown(column)}) AS ${column}`);
  return [
    `SELECT ${['account_id', 'day', ...keys, ...told, ...names.map((each) => `if(is_told, g.${each}, -g.${each}) AS ${each}`)].join(', ')} FROM (`,
    `SELECT any(n.account_id) AS account_id, ${['day', ...keys].join(', ')}, ${rfc3339('max(n.at)')} AS changed_at, if(n.chunk = '', 'by_hand', 'loaded') AS change, c.load AS load, reason,`,
    `${names.map((each) => `sum(n.${each}) AS ${each}`).join(', ')} FROM (`,
    `${grouped('toString(e.chunk) AS chunk, max(e.loaded_at) AS at')} ${came} ${by}, chunk, reason) AS n`,
    `LEFT JOIN (SELECT chunk, ${loadOfChunk} AS load FROM load_chunks AS c WHERE chunk GLOBAL IN (SELECT toString(e.chunk) ${came}) GROUP BY chunk) AS c ON c.chunk = n.chunk`,
    `${by}, change, load, reason`,
    'UNION ALL',
    `SELECT ${[...columns, ...names].join(', ')} FROM (`,
    `${grouped(`${rfc3339('e.left_at')} AS changed_at, if(e.replaced, 'replaced', 'taken_back') AS change, toString(e.load_id) AS load`, '-')} ${left}`,
    // Of what was interrupted nobody knows whether it left.
    'WHERE (toYYYYMM(day), left_at) GLOBAL IN (SELECT month, began_at FROM rewrites AS w FINAL WHERE toUInt64(w.ended_at) > 0 AND NOT w.lost)',
    `${by}, ${loadColumns.join(', ')})`,
    ') AS g ARRAY JOIN [true, false] AS is_told',
  ].join('\n');
}

/** The tables that are read beside those of adjustments, each with the column that holds the account. */
export function tablesByLoad(owner: string, changes: string): Record<string, string> {
  return { events: owner, past_events: owner, [changes]: 'account_id' };
}
