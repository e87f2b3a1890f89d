import { gzipSync } from 'node:zlib';
import { afterEach, expect, test, vi } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { type EventLine, event, ndjson } from './events.ts';
import { done, useLoader } from './loader.ts';
import type { Command } from './process.ts';
import type { TestStore } from './store.ts';

export function useMeetingLoaders(db: TestStore) {
  const { own, file, start: begin, counted: countedEvents, killAll } = useLoader(db);
  afterEach(killAll);

  function events(count: number): EventLine[] {
    return Array.from({ length: count }, (_, n) =>
      event({
        advertiser_id: own.account,
        spend: `0.${n % 10}`,
        event_time: `2026-0${1 + (n % 3)}-1${n % 9}T12:00:00Z`,
      }),
    );
  }

  const start = (...args: string[]): Command => begin(args);

  /** Events of the current account; what the rollups say must agree with all that is stored. */
  async function counted(): Promise<number> {
    expect(await verifyRollups(db.store, catalog)).toEqual({ differences: [], more: false });
    return countedEvents();
  }

  /** Chunks of the newest load: how many it has claimed, how many are loaded. */
  async function chunks(): Promise<{ claimed: number; loaded: number }> {
    const [row] = await select<{ claimed: number; loaded: number }>(
      db.store,
      `SELECT toUInt32(uniqExact(chunk)) AS claimed, toUInt32(uniqExactIf(chunk, toUInt64(loaded_at) > 0)) AS loaded
     FROM load_chunks WHERE load_id = (SELECT max(load_id) FROM loads WHERE startsWith(file, {home:String}))`,
      { home: own.home },
    );
    return row ?? { claimed: 0, loaded: 0 };
  }

  return { file, start, events, counted, chunks };
}

type MeetingLoaders = ReturnType<typeof useMeetingLoaders>;

export const until = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { timeout: 60_000, interval: 20 });

/** Two loaders of the same files at once. */
export function sameFilesAtOnce(
  { file, start, events, counted }: MeetingLoaders,
  orders: readonly string[],
  count: number,
): void {
  test.each(orders)(`two loaders of the same ${count} files, in %s, count each event once`, async (order) => {
    const files = await Promise.all(
      Array.from({ length: count }, (_, n) =>
        n % 2
          ? file(`${n}.ndjson`, ndjson(events(600)))
          : file(`${n}.ndjson.gz`, gzipSync(ndjson(events(600)))),
      ),
    );
    const others = order === 'the same order' ? files : files.toReversed();
    const options = ['ingest', 'events', '--json', '--chunk-bytes', '60000'];
    const loads = await Promise.all([done(start(...options, ...files)), done(start(...options, ...others))]);
    expect(await counted()).toBe(600 * count);
    expect(loads.reduce((sum, { rows }) => sum + rows, 0)).toBe(600 * count);
    for (const { rows, repeated_rows } of loads) expect(rows + repeated_rows).toBe(600 * count);
  });
}
