import { chunksInDoubt } from '../../clickhouse/chunks-in-doubt.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import type { DayRange } from '../../clickhouse/consistency/verify-rollups.ts';
import { rollupPartition } from '../../clickhouse/rollups.ts';
import { requireLoad } from '../history/load-history.ts';
import type { Leaving } from '../history/past-events.ts';
import { replacementOf, unfinishedReplacements } from '../history/replacements.ts';
import { chunksOf } from '../history/unload.ts';
import { replacesLoad } from '../ledger/load-records.ts';
import { prunedMonthOf } from '../load/chunk-months.ts';

/** What new events take the place of: a load, or what any load has brought of an account on some days. */
export type Target = { readonly load: string } | { readonly days: DayRange; readonly account: string };

/** As options say it; the ledger has it at the end of the file of a replacement. */
export function describeTarget(target: Target): string {
  if ('load' in target) return replacesLoad(target.load);
  return `--replaces-days ${target.days.from}..${target.days.to} --of ${target.account}`;
}

/**
 * Loads whose events all leave: that of the target, and earlier replacements of it that have not been ended.
 * @param own the replacement itself, which has its turn: others that have claimed nothing wait for theirs, or have changed nothing
 */
export async function replacedLoads(store: Store, target: Target, own = ''): Promise<string[]> {
  const unfinished = await unfinishedReplacements(store, describeTarget(target), own);
  return [...('load' in target ? [target.load] : []), ...unfinished];
}

/**
 * @returns the replacement that stands in the place of a load
 * @throws when there is no such load of files
 */
export async function requireReplaceable(store: Store, target: Target): Promise<string | undefined> {
  if (!('load' in target)) return undefined;
  const { load } = target;
  const { kind } = await requireLoad(store, load);
  if (kind !== 'events' && kind !== 'replacement')
    throw new Error(`${load} is no load of files: it cannot be replaced`);
  return replacementOf(store, load);
}

/**
 * Looks for chunks in doubt that hold events of an account on some days: loading them again, or the load that waits to mend them,
 * would bring back what leaves.
 * @param replaced see `replacedLoads`
 * @throws when there is one that does not come with the files
 */
export async function requireSettled(
  store: Store,
  target: Target,
  replaced: readonly string[],
  holder: string,
): Promise<void> {
  if ('load' in target) return;
  const { account, days } = target;
  const [found] = await select<{ load: string; file: string }>(
    store,
    `SELECT load_id AS load, any(l.file) AS file FROM loads AS l WHERE load_id IN (
       SELECT load_id FROM load_chunks WHERE (head, chunk) IN (${chunksInDoubt()})
         AND load_id NOT IN {replaced:Array(String)} AND chunk NOT IN ${heldChunks()}
         AND (chunk IN (SELECT chunk FROM events WHERE ${ofAccount}) OR chunk IN (SELECT chunk FROM incoming_staging WHERE ${ofAccount})))
     GROUP BY load_id ORDER BY load_id DESC LIMIT 1`,
    { replaced, holder, account, ...days },
  );
  if (!found) return;
  throw new Error(
    `it is unknown whether all of ${found.file} arrived (load ${found.load}). If its command still runs, wait until it has ended; otherwise run its command again, have its body sent again, or take the load back with adtally unload ${found.load}. Then replace. Nothing was changed.`,
  );
}

/** What a load holds back: its chunks, as SQL that can stand behind IN. Takes `holder`. */
export const heldChunks = (inDatabase = ''): string =>
  `(SELECT chunk FROM ${inDatabase}incoming_staging WHERE load_id = {holder:String})`;

/** Condition on `incoming_staging`: an event that a load holds back. Takes `holder`. */
export const isHeldEvent = 'load_id = {holder:String} AND empty(faults) AND NOT left_out';

/** Condition on the events that belong to an account on either side, on some days. */
export const ofAccount =
  'day BETWEEN {from:Date} AND {to:Date} AND (advertiser_id = {account:String} OR publisher_id = {account:String})';

/**
 * The events that leave: those of the target, and what the chunks that come had brought before.
 * @param replaced see `replacedLoads`
 */
export function leavingEvents(target: Target, replaced: readonly string[], holder: string): Leaving {
  const ofTarget = (inDatabase: string) =>
    [
      ...('load' in target ? [] : [`(${ofAccount})`]),
      ...(replaced.length > 0 ? [`chunk IN ${chunksOf(replaced, inDatabase).sql}`] : []),
    ].join(' OR ');
  return {
    sql: (inDatabase = '') =>
      `(${[ofTarget(inDatabase), `chunk IN ${heldChunks(inDatabase)}`].filter(Boolean).join(' OR ')})`,
    params: {
      ...chunksOf(replaced).params,
      holder,
      ...('load' in target ? {} : { ...target.days, account: target.account }),
    },
  };
}

/**
 * @param replaced see `replacedLoads`
 * @throws when events that would leave have been pruned: they belong to no load any more
 */
export async function requireUnpruned(
  store: Store,
  target: Target,
  replaced: readonly string[],
  holder: string,
): Promise<void> {
  const pruned =
    (await prunedMonthOf(store, chunksOf(replaced))) ??
    (await prunedMonthOf(store, { sql: heldChunks(), params: { holder } })) ??
    ('load' in target ? undefined : await prunedMonthIn(store, target.days));
  if (pruned === undefined) return;
  throw new Error(
    `${describeTarget(target)}: adtally prune has folded or dropped events of ${pruned}, and no other command can tell them from others. Nothing was changed. A backup from before the prune still has them (adtally restore).`,
  );
}

async function prunedMonthIn(store: Store, days: DayRange): Promise<string | undefined> {
  const query = `SELECT concat(substring(toString(month), 1, 4), '-', substring(toString(month), 5)) AS name FROM pruned_months
    WHERE month BETWEEN toYYYYMM({from:Date}) AND toYYYYMM({to:Date}) ORDER BY month LIMIT 1`;
  return (await select<{ name: string }>(store, query, { ...days }))[0]?.name;
}

/** The months of events, as a subquery of `day` says them: of each the first and the last day. */
export const monthsIn = (days: string): string =>
  `SELECT ${rollupPartition} AS month, toString(min(d.day)) AS from, toString(max(d.day)) AS to FROM (${days}) AS d
   GROUP BY month ORDER BY month`;
