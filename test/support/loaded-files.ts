import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { select } from '../../clickhouse/client.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { type EventLoadOptions, type LoadResult, loadEvents } from '../../ingest/load/load-events.ts';
import { useLoader } from './loader.ts';
import type { Counted } from './recount.ts';
import type { TestStore } from './store.ts';

const columns =
  'event_id event_time advertiser_id campaign_id creative_id publisher_id ad_unit_id site_id device ad_requests impressions referrals conversions spend revenue confirmed reason';

/** Files of one test, and what the store has of them. */
export function useLoadedFiles(db: TestStore) {
  const loader = useLoader(db);
  const { own } = loader;
  const path = (name: string) => join(own.home, name);
  return {
    get account() {
      return own.account;
    },
    loader,
    /** Writes a file and loads it; without content one that is there. */
    load: async (name: string, content?: string | Buffer, options?: Partial<EventLoadOptions>) => {
      if (content !== undefined) await writeFile(path(name), content);
      const now = () => new Date();
      return loadEvents({
        store: db.store,
        input: new LocalFile(path(name)),
        chunkBytes: 64 << 20,
        now,
        ...options,
      });
    },
    /** As they are stored, by event id; numbers as text. */
    events: ({ loadId }: LoadResult) => {
      const values = columns.split(' ').map((name) => `toString(e.${name}) AS ${name}`);
      return select<Readonly<Record<keyof Counted, string>>>(
        db.store,
        `SELECT ${values.join(', ')} FROM events AS e
         WHERE chunk IN (SELECT chunk FROM load_chunks WHERE load_id = {loadId:String}) ORDER BY e.event_id`,
        { loadId },
      );
    },
    /** By line. */
    rejects: ({ loadId }: LoadResult) =>
      select<{ readonly line: number; readonly fields: readonly string[]; readonly raw: string }>(
        db.store,
        `SELECT toUInt32(line) AS line, arrayMap(fault -> fault.field, r.faults) AS fields, raw
         FROM rejected_rows AS r FINAL WHERE load_id = {loadId:String} ORDER BY r.line`,
        { loadId },
      ),
    /** Writes a Parquet file by a SELECT of DuckDB. */
    writeByDuckDb: async (name: string, query: string) => {
      const instance = await DuckDBInstance.create(':memory:');
      const connection = await instance.connect();
      try {
        await connection.run(`COPY (${query}) TO '${path(name)}' (FORMAT parquet)`);
      } finally {
        connection.closeSync();
        instance.closeSync();
      }
    },
  };
}
