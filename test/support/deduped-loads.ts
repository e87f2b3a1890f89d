import { expect } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { type EventLine, event, ndjson } from './events.ts';
import { useLoader } from './loader.ts';
import type { Command } from './process.ts';
import type { TestStore } from './store.ts';

interface Loaded {
  readonly loads: readonly string[];
  readonly rows: number;
  readonly repeated_rows: number;
  readonly duplicate_rows: number;
}

export function useDedupedLoads(db: TestStore) {
  const { own, file, start: begin, run } = useLoader(db);
  /** Events with the ids `from` up to `to`; `fields` tell otherwise equal lines apart, as a second export would. */
  function lines(from: number, to: number, fields: Partial<EventLine> = {}): EventLine[] {
    return Array.from({ length: to - from }, (_, n) =>
      event({ event_id: `${own.account}-${from + n}`, advertiser_id: own.account, ...fields }),
    );
  }

  const start = (...args: string[]): Command => begin(args);
  async function ingest(...args: string[]): Promise<Loaded> {
    const { code, stdout, stderr } = await run(['ingest', 'events', '--json', ...args]);
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout);
  }

  /** Events and ids of the current account; the rollups must agree with all that is stored. */
  async function counted(): Promise<{ events: number; ids: number } | undefined> {
    expect(await verifyRollups(db.store, catalog)).toEqual({ differences: [], more: false });
    const [row] = await select<{ events: number; ids: number }>(
      db.store,
      `SELECT toUInt32(count()) AS events, toUInt32(uniqExact(event_id)) AS ids
     FROM events WHERE advertiser_id = {account:String}`,
      { account: own.account },
    );
    return row;
  }
  return {
    ...{ lines, start, ingest, counted },
    file: (name: string, events: readonly EventLine[]) => file(name, ndjson(events)),
  };
}
