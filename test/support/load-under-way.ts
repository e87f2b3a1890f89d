import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { event, ndjson } from './events.ts';

/** A file of so many events of an account. */
export function eventsFile(folder: string, account: string, count: number): string {
  const path = join(folder, `${account}.ndjson`);
  writeFileSync(path, ndjson(Array.from({ length: count }, () => event({ advertiser_id: account }))));
  return path;
}

export async function counted(store: Store, account: string): Promise<number> {
  expect(await verifyRollups(store, catalog)).toEqual({ differences: [], more: false });
  const query = 'SELECT toUInt32(count()) AS events FROM events WHERE advertiser_id = {account:String}';
  const [row] = await select<{ events: number }>(store, query, { account });
  return row?.events ?? -1;
}

/** Waits for a chunk to be loaded and another to come. */
export const underWay = (store: Store): Promise<void> =>
  vi.waitFor(
    async () => {
      const query = 'SELECT uniqExactIf(chunk, toUInt64(loaded_at) > 0) > 1 AS under_way FROM load_chunks';
      expect(await select(store, query)).toEqual([{ under_way: 1 }]);
    },
    { timeout: 60_000, interval: 20 },
  );
