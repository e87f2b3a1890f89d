import { setTimeout as delay } from 'node:timers/promises';
import { chunksInDoubt } from '../../clickhouse/chunks-in-doubt.ts';
import { type Store, select, storeTime } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { loadPollMs } from '../../clickhouse/timings.ts';
import { runningLoads } from '../ledger/load-heartbeat.ts';
import { loadsAtWork } from '../ledger/loads-at-work.ts';

/** The time of a confirmation: it covers the money that was loaded until then. */
export interface ConfirmationTime {
  /** `yyyy-mm-dd hh:mm:ss.ffffff`, UTC */
  readonly time: string;
  /** A running load whose chunks in flight, and what was loaded after the first of them, are not covered. */
  readonly running?: string;
}

/**
 * The time for a confirmation made now. The money of a chunk carries a time from before it arrives, so this is earlier
 * than that of all chunks in flight. A load that comes into view after this has looked takes later times, but for a chunk
 * from which a killed load may have sent something; one that is about to note the time of a chunk is waited for.
 */
export async function confirmationTime(store: Store): Promise<ConfirmationTime> {
  for (;;) {
    const now = await retrying(() => storeTime(store));
    const atWork = [...(await retrying(() => loadsAtWork(store, undefined))).keys()];
    const [oldest] = await select<{ load: string; noted: 0 | 1; time: string }>(store, oldestInFlight, {
      atWork,
    });
    if (!oldest) return { time: now };
    if (oldest.noted) return { time: oldest.time < now ? oldest.time : now, running: oldest.load };
    await delay(loadPollMs);
  }
}

/** The claim that was noted first on a chunk that a running load has claimed and none has loaded; those not noted yet first. */
const oldestInFlight = `
  SELECT load_id AS load, toUInt8(toUInt64(sent) > 0) AS noted, toString(sent - INTERVAL 1 MICROSECOND) AS time
  FROM (
    SELECT chunk, load_id, max(c.sent_at) AS sent FROM load_chunks AS c
    WHERE (head, chunk) IN (${chunksInDoubt(`(load_id IN (${runningLoads}) OR has({atWork:Array(String)}, load_id))`)})
    GROUP BY chunk, load_id)
  WHERE toUInt64(sent) > 0 OR load_id IN (${runningLoads})
  ORDER BY sent LIMIT 1`;
