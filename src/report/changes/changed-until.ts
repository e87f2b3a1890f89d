import { familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { type Store, selectOne } from '../../../clickhouse/client.ts';
import { namesFollowWithinSeconds } from '../../../clickhouse/timings.ts';
import { rfc3339 } from '../day-changed.ts';

/** How much a caller knows who reads the changes from now on. */
export interface KnownUntil {
  /** No change that the caller does not see now will have this time or an earlier one; RFC 3339. */
  readonly changed_until: string;
  /** By when every server showed the last change of a name in his reports, likewise; null if there was none. */
  readonly names_changed_at: string | null;
}

/**
 * What is told as known is so much older than now. A kept answer may be as old as ANSWER_TRUST_MS, a confirmation is
 * visible a moment after its time, and the clocks of the servers of a cluster differ.
 */
export const defaultHoldBackMs = 10_000;

/** So long after a load was last heard of, one of its statements may still run in ClickHouse. */
const lingers = 'INTERVAL 1 MINUTE';

const never = "toDateTime64('2299-01-01', 6, 'UTC')";

/**
 * A load, and a rebuild is one, takes its turn before it sends anything, so the times at which its days change are
 * later: nothing from the earliest turn on is known until that load has ended. Who takes a turn after this has looked
 * changes days later than that. What a load leaves half done is noted as changed once more by the one that completes it
 * (`recordDaysChanged`).
 */
const earliestTurn = `
  SELECT min(l.turn) FROM (
    SELECT turn FROM loads AS r FINAL
    WHERE state IN ('running', 'failed') AND r.version > now64(6) - ${lingers} AND toUInt64(turn) > 0
    UNION ALL SELECT ${never}) AS l`;

/**
 * To be read before the changes: what comes in between is then seen now, and once more next time.
 * @throws when ClickHouse cannot be asked, or takes longer for it than is held back
 */
export async function knownUntil(
  store: Store,
  catalog: Catalog,
  { account, family }: { readonly account: string; readonly family: string },
  holdBackMs: number,
): Promise<KnownUntil> {
  const until = `least(
        now64(6, 'UTC') - toIntervalMillisecond({holdBackMs:UInt32}),
        (${earliestTurn}) - INTERVAL 1 MICROSECOND)`;
  const shownAt = `namesAt + INTERVAL ${namesFollowWithinSeconds} SECOND`;
  const query = `
    SELECT ${rfc3339(until)} AS changed_until,
      if(toUInt64(namesAt) > 0, ${rfc3339(shownAt)}, NULL) AS names_changed_at
    FROM (SELECT arrayMax([${namesChangedAt(catalog, family).join(', ')}]) AS namesAt)`;
  return selectOne<KnownUntil>(
    store,
    query,
    { account, holdBackMs },
    { max_execution_time: Math.max(1, Math.floor(holdBackMs / 2_000)), log_queries: 0 },
  );
}

/** SQL of the times at which names that the rows of a family show last changed, by kind. */
function namesChangedAt(catalog: Catalog, family: string): string[] {
  const { entity, dimensions } = familyOf(catalog, family);
  const columns = [entity, ...dimensions].flatMap((name) => catalog.dimensions[name]?.columns ?? []);
  return columns
    .flatMap(({ name }) => name ?? [])
    .map(
      ({ dictionary, attribute }) =>
        `toDateTime64OrZero(dictGetOrDefault('${dictionary}', '${attribute}', ('', {account:String}), ''), 6, 'UTC')`,
    );
}
