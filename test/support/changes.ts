import { expect } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select, storeTime } from '../../clickhouse/client.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { type ChangesAnswer, changesSince } from '../../src/report/changes/changes.ts';
import type { TestService } from './service.ts';
import type { TestStore } from './store.ts';

export function useChanges(service: TestService, db: TestStore) {
  /** Over HTTP; with `holdBackMs` not over HTTP, so that nothing else holds the answer back. */
  async function changes(
    family: string,
    account: string,
    since: string,
    holdBackMs?: number,
  ): Promise<ChangesAnswer> {
    if (holdBackMs === undefined) {
      const response = await service.post(`/v1/${family}/changes`, account, { changed_since: since });
      const text = await response.text();
      expect(response.status, text).toBe(200);
      return JSON.parse(text).result;
    }
    const reader = new Reader(db.address, 30_000);
    const routing = undefined;
    try {
      return await changesSince(
        { reader, store: db.store, catalog, holdBackMs },
        { family, account, since, routing },
        new AbortController().signal,
      );
    } finally {
      reader.close();
    }
  }
  return {
    changes,
    /** The days alone. */
    listed: async (...asked: Parameters<typeof changes>) =>
      (await changes(...asked)).days.map(({ day }) => day),
    /** As a caller writes a time. */
    storeTime: async () => `${(await storeTime(db.store)).replace(' ', 'T')}Z`,
    /** The ids of the loads of events, in their order. */
    loadsOf: async () => {
      const query = "SELECT load_id AS id FROM loads FINAL WHERE kind = 'events' ORDER BY turn";
      return (await select<{ id: string }>(db.store, query)).map(({ id }) => id);
    },
  };
}
