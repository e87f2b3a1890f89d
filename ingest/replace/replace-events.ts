import { randomBytes } from 'node:crypto';
import { type Store, select } from '../../clickhouse/client.ts';
import { requireWholeTable } from '../../clickhouse/consistency/damaged-parts.ts';
import type { Hold } from '../delivery/sender.ts';
import { dropStaged, heldBy } from '../delivery/staging.ts';
import { requireNotReplayed } from '../history/replayed-rows.ts';
import { chunksOf } from '../history/unload.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { Load } from '../ledger/load.ts';
import type { LoadResult } from '../load/load-events.ts';
import { countOpenRejects } from '../rejects/rejected-rows.ts';
import { exchange } from './exchange.ts';
import {
  describeTarget,
  heldChunks,
  isHeldEvent,
  leavingEvents,
  ofAccount,
  replacedLoads,
  requireReplaceable,
  requireSettled,
  requireUnpruned,
  type Target,
} from './target.ts';
import { type Change, compareTotals } from './totals.ts';

export interface ReplaceOptions extends Ledger {
  readonly target: Target;
  /** The files, as the ledger has them. */
  readonly files: string;
  /** Judges all files and holds their records back; without `hold` it lets go of them, and leaves out what is loaded. */
  readonly stage: (hold?: Hold) => Promise<readonly LoadResult[]>;
  /** Everything is judged and compared, and nothing changed. */
  readonly dryRun: boolean;
  /** No sum may move further than this share of what was there. */
  readonly maxChangePercent?: number | undefined;
  readonly onTotals: (changes: readonly Change[]) => void;
  readonly now: () => Date;
}

export interface Replaced {
  readonly results: readonly LoadResult[];
  /** Absent for a dry run, and where nothing was to be done. */
  readonly loadId?: string;
}

/**
 * Loads files in the place of what was loaded before. A report sees all of the old events or all of the new ones. Waits for all
 * running loads; others wait for it. Killed at any point, the same command completes it; when it is done, that
 * changes nothing of a load that was replaced, and replaces once more what there is of days.
 * @throws before anything has changed, when a file cannot be loaded, the target cannot be replaced, or sums move too far
 */
export async function replaceEvents(options: ReplaceOptions): Promise<Replaced> {
  const { store, target, files, dryRun, now } = options;
  await requireWholeTable(store, 'events');
  const earlier = await requireReplaceable(store, target);
  if (earlier !== undefined) {
    const results = await options.stage();
    if (results.every(({ rows, rejectedRows, leftOutRows }) => rows + rejectedRows + leftOutRows === 0))
      return { results };
    throw replacedBefore(earlier);
  }
  if (dryRun) {
    const holder = `dry-run-${randomBytes(6).toString('hex')}`;
    try {
      return { results: await stageFor(options, holder, await replacedLoads(store, target)) };
    } finally {
      await letGo(store, holder).catch(() => {});
    }
  }
  const file = `${files} ${describeTarget(target)}`;
  const load = await Load.begin(store, { kind: 'replacement', file }, now(), options);
  try {
    const meanwhile = await requireReplaceable(store, target);
    if (meanwhile !== undefined) throw replacedBefore(meanwhile);
    const replaced = await replacedLoads(store, target, load.id);
    const results = await stageFor(options, load.id, replaced);
    await requireSettled(store, target, replaced, load.id);
    for (const result of results) {
      for (const name of Object.keys(load.counts) as (keyof typeof load.counts)[])
        load.counts[name] += result[name];
    }
    const held = results.flatMap((result) => result.judged ?? []);
    await exchange(options, load, { target, replaced, held }).catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${reason}. The same command completes the replacement`, { cause });
    });
    await load.finish();
    // Some of their rejected rows may have been dismissed before.
    const told = results.map(async (result) => {
      const ids = result.judged?.map(({ chunk }) => chunk.id) ?? [];
      return { ...result, openRejects: await countOpenRejects(options, ids) };
    });
    return { results: await Promise.all(told), loadId: load.id };
  } catch (error) {
    await load.fail(error);
    throw error;
  } finally {
    // What stays expires.
    await letGo(store, load.id).catch(() => {});
  }
}

const replacedBefore = (by: string): Error =>
  new Error(`it was replaced before, by load ${by}: to replace that one give --replaces ${by}`);

/** Holds all files back, and looks whether they may take the place of the target. */
async function stageFor(
  options: ReplaceOptions,
  holder: string,
  replaced: readonly string[],
): Promise<readonly LoadResult[]> {
  const { store, target, stage, maxChangePercent = Number.POSITIVE_INFINITY, onTotals } = options;
  const results = await stage({ load: holder, replaced });
  const held = new Set(
    results.flatMap((result) => result.judged ?? []).map(({ chunk }) => heldBy(chunk.id, holder)),
  );
  // Of an object that was replaced while it was read.
  await letGo(store, holder, held);
  if (results.every(({ rows }) => rows === 0))
    throw new Error('the files have no events: nothing was changed. adtally unload takes a load back');
  await requireOfAccount(store, target, holder);
  await requireUnpruned(store, target, replaced, holder);
  // Shards cannot look into both at once.
  for (const chunks of [chunksOf(replaced), { sql: heldChunks(), params: { holder } }])
    await requireNotReplayed(store, chunks, describeTarget(target));
  const changes = await compareTotals(store, leavingEvents(target, replaced, holder));
  onTotals(changes);
  const tooFar = changes.find(({ percent }) => Math.abs(percent) > maxChangePercent);
  if (tooFar) {
    throw new Error(
      `${tooFar.what} would go from ${tooFar.before} to ${tooFar.after}, which is more than --max-change ${maxChangePercent}%: nothing was changed`,
    );
  }
  return results;
}

/** @throws when events come that the target would not take back */
async function requireOfAccount(store: Store, target: Target, holder: string): Promise<void> {
  if ('load' in target) return;
  const { days, account } = target;
  const [other] = await select<{ events: number; on: string; accounts: string }>(
    store,
    `SELECT toFloat64(count()) AS events, toString(any(s.day)) AS on,
       any(arrayStringConcat(arrayFilter(a -> a != '', [advertiser_id, publisher_id]), ' and ')) AS accounts
     FROM incoming_staging AS s WHERE ${isHeldEvent} AND NOT (${ofAccount})`,
    { holder, account, ...days },
  );
  if (!other || other.events === 0) return;
  const events = other.events === 1 ? '1 event of the files is' : `${other.events} events of the files are`;
  throw new Error(
    `${events} not of ${account} on ${days.from} to ${days.to}, one of them of ${other.accounts} on ${other.on}: nothing was changed`,
  );
}

/** Lets go of what is held back. @param but batches that stay */
async function letGo(store: Store, holder: string, but: ReadonlySet<string> = new Set()): Promise<void> {
  const query = 'SELECT DISTINCT batch FROM incoming_staging WHERE load_id = {holder:String}';
  const batches = (await select<{ batch: string }>(store, query, { holder })).map(({ batch }) => batch);
  const left = batches.filter((batch) => !but.has(batch));
  if (left.length > 0) await dropStaged(store, left);
}
