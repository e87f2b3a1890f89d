import { type Store, select } from '../../clickhouse/client.ts';
import { replacesLoad } from '../ledger/load-records.ts';
import { type ChunkSet, namedChunks } from '../load/chunk-months.ts';
import type { LoadedChunk } from '../load/receipt.ts';

/** The replacement that stands in the place of a load; undefined where all that replaced it were taken back, or none has been ended. */
export async function replacementOf(store: Store, load: string): Promise<string | undefined> {
  const found = await select<{ id: string; stands: 0 | 1 }>(
    store,
    `SELECT load_id AS id, toUInt8(state = 'loaded') AS stands FROM loads FINAL
     WHERE kind = 'replacement' AND state IN ('loaded', 'unloaded') AND endsWith(file, {target:String})
     ORDER BY stands DESC, id DESC`,
    { target: ` ${replacesLoad(load)}` },
  );
  for (const { id, stands } of found) {
    const by = stands ? id : await replacementOf(store, id);
    if (by !== undefined) return by;
  }
  return undefined;
}

/**
 * Replacements of a target that have not been ended.
 * @param target as the ledger has it at the end of their files
 * @param own one that does not count; given where others that have claimed nothing wait for their turn, or have changed nothing
 */
export async function unfinishedReplacements(store: Store, target: string, own = ''): Promise<string[]> {
  const unfinished = await select<{ id: string }>(
    store,
    `SELECT load_id AS id FROM loads FINAL WHERE kind = 'replacement' AND state IN ('running', 'failed')
       AND endsWith(file, {target:String}) AND load_id != {own:String}
       AND ({own:String} = '' OR load_id IN (SELECT load_id FROM load_chunks))`,
    { target: ` ${target}`, own },
  );
  return unfinished.map(({ id }) => id);
}

/** The loads that a load has replaced, one after the other: their events are gone, and their files still count as loaded. */
export async function loadsReplacedBy(store: Store, load: string): Promise<string[]> {
  const [found] = await select<{ id: string }>(
    store,
    `SELECT extract(file, concat({target:String}, '(\\\\S+)$')) AS id FROM loads FINAL
     WHERE load_id = {load:String} AND kind = 'replacement' AND id IN (SELECT load_id FROM loads FINAL WHERE state = 'unloaded')`,
    { load, target: ` ${replacesLoad('')}` },
  );
  return found ? [found.id, ...(await loadsReplacedBy(store, found.id))] : [];
}

/**
 * The replacement by days that stands in the place of events of chunks: its days and account are theirs, and they left before it
 * had ended.
 * @param except loads that do not count
 */
export async function replacementOfDays(
  store: Store,
  { sql, params }: ChunkSet,
  except: readonly string[] = [],
): Promise<string | undefined> {
  const found = await select<{ id: string; stands: 0 | 1 }>(
    store,
    `SELECT DISTINCT r.load_id AS id, r.stands AS stands
     FROM (SELECT day, arrayJoin([p.advertiser_id, p.publisher_id]) AS account, min(p.left_at) AS left
           FROM past_events AS p
           INNER JOIN (SELECT chunk, max(s.sent_at) AS sent FROM load_chunks AS s WHERE chunk IN ${sql} GROUP BY chunk) AS c
             ON c.chunk = toString(p.chunk)
           WHERE p.replaced AND p.left_at > c.sent AND p.chunk IN ${sql} GROUP BY day, account) AS e
     INNER JOIN (SELECT load_id, finished_at, state = 'loaded' AS stands,
                        extractGroups(file, ' --replaces-days (\\\\S+)\\\\.\\\\.(\\\\S+) --of (.+)$') AS target,
                        target[3] AS account, toDateOrZero(target[1]) AS first, toDateOrZero(target[2]) AS last
                 FROM loads FINAL WHERE kind = 'replacement' AND state IN ('loaded', 'unloaded') AND notEmpty(target)) AS r
       ON r.account = e.account
     WHERE e.day BETWEEN r.first AND r.last AND e.left <= r.finished_at AND r.load_id NOT IN {except:Array(String)}
     ORDER BY stands DESC, id DESC`,
    { ...params, except },
  );
  for (const { id, stands } of found) {
    const by = stands ? id : await replacementOf(store, id);
    if (by !== undefined && !except.includes(by)) return by;
  }
  return undefined;
}

/** The replacement that has taken all events of what is loaded; undefined where some of them count, or it never had any. */
export async function replacementOfAll(
  store: Store,
  loaded: readonly LoadedChunk[],
): Promise<string | undefined> {
  if (loaded.some(({ rows }) => rows > 0) || loaded.every(({ leftOutRows }) => leftOutRows === 0))
    return undefined;
  for (const load of new Set(loaded.map((each) => each.load))) {
    const by = await replacementOf(store, load);
    if (by !== undefined) return by;
  }
  return replacementOfDays(store, namedChunks(loaded.map(({ chunk }) => chunk)));
}
