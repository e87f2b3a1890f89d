import { select } from '../../clickhouse/client.ts';
import { hasTime, type OddDays } from '../delivery/odd-days.ts';
import { type Ledger, repeated } from '../ledger/ledger.ts';

interface LoadedTimes {
  readonly file: string;
  /** IANA zone of times that name none, */
  readonly timezone: string;
  /** and of the days of reports. */
  readonly reportTimezone: string;
  /** Chunks stored now, in the order of the file; absent in a dry run, in which nothing is stored. */
  readonly chunks?: readonly string[];
}

/** Events of days that are hardly right, in words; undefined where there are none. */
export function describeOddDays(file: string, { future, early }: OddDays): string | undefined {
  const found = [
    ...(future > 0 ? [`${future} in the future`] : []),
    ...(early > 0 ? [`${early} before 2000`] : []),
  ];
  if (found.length === 0) return undefined;
  return `${file}: days of events are hardly right: ${found.join(', ')}. Is event_time the right column (--map event_time=…), or a serial date (--dates excel)?`;
}

/** Warns of days that were written as midnight of another zone, in words; undefined where some event has a time. */
export async function describeMidnights(
  ledger: Ledger,
  { file, chunks, timezone, reportTimezone }: LoadedTimes,
): Promise<string | undefined> {
  if (timezone === reportTimezone) return undefined;
  for (const chunk of chunks ?? []) if (await hasTimes(ledger, { chunk, timezone })) return undefined;
  return `${file}: all times are 00:00:00 in ${timezone}, but the days of reports are those of ${reportTimezone}, so events may count on another day. If these are days: ${chunks ? 'unload the load, and ' : ''}load the file with --timezone ${reportTimezone}`;
}

interface ChunkInZone {
  readonly chunk: string;
  readonly timezone: string;
}

/** Whether some event of a chunk is not of midnight: reading ends with the first. */
const hasTimes = repeated<ChunkInZone, boolean>(async (store, asked) => {
  const found = new Set<string>();
  for (const timezone of new Set(asked.map((each) => each.timezone))) {
    const chunks = asked.filter((each) => each.timezone === timezone).map(({ chunk }) => chunk);
    const query = `SELECT e.chunk AS chunk FROM events AS e
      WHERE day IN (SELECT day FROM chunk_days WHERE chunk IN {chunks:Array(String)}) AND e.chunk IN {chunks:Array(String)}
        AND ${hasTime}
      LIMIT 1 BY chunk LIMIT ${chunks.length}`;
    for (const row of await select<{ chunk: string }>(store, query, { chunks, timezone }))
      found.add(row.chunk);
  }
  return asked.map(({ chunk }) => found.has(chunk));
});
