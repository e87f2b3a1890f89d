import { randomUUID } from 'node:crypto';
import { insertData, type Store } from '../../clickhouse/client.ts';
import { requireTimezone } from '../../clickhouse/migrate/migrate.ts';
import { dropStaged, stagedRejects } from '../delivery/staging.ts';
import { insertSettings } from '../event/insert-settings.ts';
import { type JudgeOptions, judgedColumns, judgeRecords } from '../event/judge.ts';
import { sameNames } from '../event/mapping.ts';
import { jsonSource } from '../formats/ndjson.ts';
import type { Fault } from '../rejects/rejected-rows.ts';

/** How the fields of corrected rows are written: NDJSON, a row on each line. */
export function linesOf(rows: readonly Readonly<Record<string, string>>[]): string {
  const line = (fields: Readonly<Record<string, string>>) =>
    JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== '')));
  return rows.map(line).join('\n');
}

/** What is wrong with corrected rows, by their number from 0; by the judge that will load them. Stores nothing. */
export async function faultsOfRows(
  store: Store,
  rows: readonly Readonly<Record<string, string>>[],
  how: Pick<JudgeOptions, 'requireEventId' | 'roundMoney'>,
): Promise<Map<number, readonly Fault[]>> {
  const batch = `corrections ${randomUUID()}`;
  const source = jsonSource('lines', sameNames(), false);
  const options = { ...how, timezone: 'UTC', reportTimezone: await requireTimezone(store) };
  await insertData(store, {
    into: `incoming_staging (${judgedColumns.join(', ')}, batch)`,
    select: `SELECT *, chunk AS batch FROM (${judgeRecords(source, options)})`,
    format: source.format,
    data: [linesOf(rows)],
    params: { chunk: batch, loadId: '', loadTime: '1971-01-01 00:00:00', file: '', firstLine: 0 },
    settings: insertSettings(batch),
  });
  try {
    const faulty = await stagedRejects({ store }, batch, rows.length);
    return new Map(faulty.map(({ line, faults }) => [line, faults]));
  } finally {
    // What stays expires.
    await dropStaged(store, [batch]).catch(() => {});
  }
}
