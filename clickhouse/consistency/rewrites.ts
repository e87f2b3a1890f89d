import { type Store, storeTime } from '../client.ts';

/**
 * Does what changes months of reports otherwise than by events that come, and records from when until when, so that
 * reports as of a moment do not tell what nobody can know. What is interrupted stays open, and then all that ended before
 * in these months is lost, until another rewrite of them has ended. The caller makes sure that no other one runs.
 * @param months `yyyymm`
 * @param work takes the time from which on the past cannot be told, by the clock of the store
 */
export async function rewriting<Result>(
  store: Store,
  months: readonly number[],
  work: (beganAt: string) => Promise<Result>,
): Promise<Result> {
  const beganAt = await beginRewrite(store, months);
  const result = await work(beganAt);
  await endRewrite(store, months, { beganAt });
  return result;
}

/** @returns its time, `yyyy-mm-dd hh:mm:ss.ffffff`, UTC */
export async function beginRewrite(store: Store, months: readonly number[]): Promise<string> {
  const beganAt = await storeTime(store);
  if (months.length > 0) {
    await store.command({
      query: `INSERT INTO rewrites (month, began_at)
        SELECT arrayJoin({months:Array(UInt32)}), toDateTime64({beganAt:String}, 6, 'UTC')`,
      query_params: { months, beganAt },
      clickhouse_settings: { wait_end_of_query: 1 },
    });
  }
  return beganAt;
}

/** Ends a rewrite, and those of its months that were interrupted. @param isLost SQL: whether the past before is lost, too */
export async function endRewrite(
  store: Store,
  months: readonly number[],
  { beganAt, isLost = 'false' }: { readonly beganAt: string; readonly isLost?: string },
): Promise<void> {
  if (months.length === 0) return;
  await store.command({
    query: `INSERT INTO rewrites (month, began_at, ended_at, lost)
      SELECT month, began_at, now64(6, 'UTC'), ${isLost} OR began_at != toDateTime64({beganAt:String}, 6, 'UTC')
      FROM rewrites AS r FINAL WHERE month IN {months:Array(UInt32)} AND r.ended_at = 0`,
    query_params: { months, beganAt },
    clickhouse_settings: { wait_end_of_query: 1 },
  });
}
