import { expect } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import type { EventLine } from './events.ts';
import { useLoader } from './loader.ts';
import type { Input } from './process.ts';
import type { TestStore } from './store.ts';

export const csvColumns = [
  'event_id',
  'event_time',
  'event_type',
  'advertiser_id',
  'campaign_id',
  'quantity',
] as const;

export function csv(lines: readonly EventLine[], end = '\n'): string {
  const rows = lines.map((line) => csvColumns.map((name) => line[name] ?? '').join(','));
  return [csvColumns.join(','), ...rows].map((row) => `${row}${end}`).join('');
}

/** Events of an account that the store counts, in the raw table and in its reports alike. */
async function countedInReports(db: TestStore, account: string): Promise<number> {
  const [row] = await select<{ raw: number; reported: number }>(
    db.store,
    `SELECT (SELECT toUInt32(count()) FROM events WHERE advertiser_id = {account:String}) AS raw,
            (SELECT toUInt32(sum(impressions)) FROM campaigns_date WHERE account_id = {account:String}) AS reported`,
    { account },
  );
  expect(row?.reported).toBe(row?.raw);
  return row?.raw ?? 0;
}

/** Events handed to `adtally ingest` in some way, of an account of each test's own. */
export function useHandedOver(db: TestStore) {
  const { own, events, file, run, loaded } = useLoader(db);
  const ingest = (args: readonly string[], input?: Input) => run(['ingest', ...args], input);
  return {
    ...{ own, events, file, ingest, loaded },
    counted: () => countedInReports(db, own.account),
  };
}
