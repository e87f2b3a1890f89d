import { expect } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { type EventLine, event, ndjson } from './events.ts';
import { useLoader } from './loader.ts';
import type { TestStore } from './store.ts';

export function useDedupedLoads(db: TestStore) {
  const { own, file, start, loaded } = useLoader(db);
  /** Events with the ids `from` up to `to`; `fields` tell otherwise equal lines apart, as a second export would. */
  function lines(from: number, to: number, fields: Partial<EventLine> = {}): EventLine[] {
    return Array.from({ length: to - from }, (_, n) =>
      event({ event_id: `${own.account}-${from + n}`, advertiser_id: own.account, ...fields }),
    );
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
    ...{ lines, counted },
    start: (...args: string[]) => start(args),
    ingest: (...args: string[]) => loaded(args),
    file: (name: string, events: readonly EventLine[]) => file(name, ndjson(events)),
  };
}
