import { buffer } from 'node:stream/consumers';
import { select } from '../../clickhouse/client.ts';
import { event } from './events.ts';
import { useLoader } from './loader.ts';
import type { TestStore } from './store.ts';

const columns = [
  'event_id',
  'event_time',
  'event_type',
  'advertiser_id',
  'campaign_id',
  'device',
  'quantity',
  'spend',
  'confirmed',
] as const;
export type Line = Partial<Record<(typeof columns)[number], string>>;

/** Loads lines of an account of each test's own, in every format, and tells which of them were rejected. */
export function useLines(db: TestStore) {
  const { own, ...loader } = useLoader(db);

  const line = (wrong: Line = {}): Line => {
    const { event_id, event_time, event_type, campaign_id = '' } = event();
    const good = { event_id, event_time, event_type, advertiser_id: own.account, campaign_id, device: 'tv' };
    return { ...good, quantity: '1', spend: '0.5', ...wrong };
  };

  const writers = {
    ndjson: (lines: readonly Line[]) => lines.map((each) => `${JSON.stringify(each)}\n`).join(''),
    csv: (lines: readonly Line[], separator = ',') =>
      [
        columns.join(separator),
        ...lines.map((each) => columns.map((name) => each[name] ?? '').join(separator)),
      ]
        .map((row) => `${row}\n`)
        .join(''),
    tsv: (lines: readonly Line[]): string => writers.csv(lines, '\t'),
    parquet: async (lines: readonly Line[]): Promise<Buffer> => {
      const { stream } = await db.store.exec({
        query: `SELECT * FROM format(JSONEachRow, '${columns.map((name) => `${name} ${name === 'confirmed' ? 'Bool' : 'String'}`).join(', ')}', {lines:String}) FORMAT Parquet`,
        query_params: { lines: writers.ndjson(lines) },
      });
      return buffer(stream);
    },
  };

  /** Rejected rows of a load: where, and the fields at fault. */
  const rejects = async (load: string): Promise<{ line: number; fields: string[] }[]> =>
    select(
      db.store,
      `SELECT toUInt32(line) AS line, arrayMap(f -> f.field, faults) AS fields
       FROM rejected_rows FINAL WHERE load_id = {load:String} ORDER BY line`,
      { load },
    );
  return {
    ...loader,
    get account() {
      return own.account;
    },
    line,
    writers,
    rejects,
  };
}
