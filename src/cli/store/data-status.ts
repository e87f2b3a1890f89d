import { type Store, selectOne } from '../../../clickhouse/client.ts';
import { damagedParts } from '../../../clickhouse/consistency/damaged-parts.ts';
import { foldedChunk } from '../../../clickhouse/consistency/fold-events.ts';
import { localDay } from '../../../clickhouse/local-time.ts';
import { monthName } from '../../../clickhouse/months.ts';
import { rollupPartition } from '../../../clickhouse/rollups.ts';
import { requireSettings } from '../../../clickhouse/settings.ts';
import {
  askFigure,
  type ClosedSize,
  closedSize,
  loadsOf,
  openWork,
  type PastSize,
  pastSize,
  type StoreSize,
  storeSize,
  unconfirmedDays,
} from '../../../ingest/history/figures.ts';
import { interruptedRewrites, interruptedUnloads } from '../../../ingest/history/interrupted.ts';
import { judgeDay } from '../../../ingest/history/low-day.ts';
import { failingFiles, lastEventsAt, longestLoad } from '../../../ingest/history/troubled-loads.ts';
import { latelyFollowed } from '../../../ingest/ledger/followed-files.ts';
import type { AlertLimits } from '../../config/config.ts';

export type DataStatus = Awaited<ReturnType<typeof readData>>;

/** What a store has and what is open in it. */
export async function readData(store: Store, now: Date, alerts: AlertLimits) {
  const { timezone } = await requireSettings(store);
  const today = localDay(now, timezone);
  // Only pruned months are read; the rest is known from metadata.
  const events = await selectOne<{ rows: number; folded_rows: number; first_day: string; last_day: string }>(
    store,
    `SELECT toFloat64(count()) AS rows, if(rows = 0, '', toString(min(day))) AS first_day,
       if(rows = 0, '', toString(max(day))) AS last_day,
       (SELECT toFloat64(count()) FROM events WHERE chunk = '${foldedChunk}'
          AND ${rollupPartition} IN (SELECT month FROM pruned_months)) AS folded_rows FROM events`,
  );
  const unconfirmed = await unconfirmedDays(store);
  const open = {
    rejectedRows: await askFigure(store, openWork.rejectedRows),
    chunksInDoubt: await askFigure(store, openWork.chunksInDoubt),
    unconfirmedDays: unconfirmed.figure,
  };
  const lastEvents = await lastEventsAt(store);
  const judged = await judgeDay(store, now, { timezone, rule: alerts.lowDay });
  const { rows, ...more } = events;
  return {
    timezone,
    today,
    // Raw ones: `folded_rows` are sums that pruned months were folded into.
    events: rows - events.folded_rows,
    ...more,
    size: await selectOne<StoreSize>(store, storeSize),
    closed: await selectOne<ClosedSize>(store, closedSize),
    past: await selectOne<PastSize>(store, pastSize),
    disk: await selectOne<{ free: number; total: number }>(
      store,
      "SELECT toFloat64(free_space) AS free, toFloat64(total_space) AS total FROM system.disks WHERE name = 'default'",
    ),
    loads: await loadsOf(store, today, timezone),
    failing: await failingFiles(store, now),
    longest: await longestLoad(store),
    followed: await latelyFollowed(store),
    // When events were last newly counted; empty: never.
    last_events: lastEvents ? new Date(lastEvents * 1000).toISOString() : '',
    // Counts of the last complete day that are far below those of the same weekdays before, of the network or of an account.
    low_day: judged.filter(({ low, accounts }) => low || accounts > 0),
    open,
    unconfirmed: { oldest_day: unconfirmed.oldest_day, oldest_account: unconfirmed.oldest_account },
    damaged: await damagedParts(store),
    interruptedUnloads: await interruptedUnloads(store),
    interruptedRewrites: (await interruptedRewrites(store)).map(monthName),
  };
}
