import { type Store, select } from '../../../clickhouse/client.ts';
import { Refreshed } from '../../../clickhouse/refreshed.ts';
import { unloadOf } from '../../../ingest/ledger/load-records.ts';

/**
 * The end of the last load, or of the unload after it, at most two seconds behind; undefined while nothing was loaded. What changes
 * no rows counts as neither: what only takes its turn with loads, such as a backup or a close, and a load that failed without a row.
 */
export function lastLoadOf(store: Store, onError: (error: unknown) => void): Refreshed<Date | undefined> {
  const finishedAt: Refreshed<Date | undefined> = new Refreshed(() => readLastLoad(store, finishedAt.value), {
    everyMs: 2_000,
    onError,
  });
  return finishedAt;
}

/** @param known the end that was read last: only loads recorded since then can have a later end, and an index finds them */
async function readLastLoad(store: Store, known: Date | undefined): Promise<Date | undefined> {
  const [row] = await select<{ milliseconds: number }>(
    store,
    `SELECT toUInt32(max(finished_at)) * 1000 AS milliseconds FROM loads
     WHERE if(kind = 'rebuild', startsWith(file, {unload:String}), state != 'failed' OR rows > 0)
       AND version >= fromUnixTimestamp64Milli({known:Int64})`,
    { unload: unloadOf(''), known: known?.getTime() ?? 0 },
    // Shards that are down are left out: reports of accounts on the other shards go on.
    { skip_unavailable_shards: 1 },
  );
  return row?.milliseconds ? new Date(row.milliseconds) : known;
}
