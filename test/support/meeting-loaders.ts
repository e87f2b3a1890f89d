import { gzipSync } from 'node:zlib';
import { afterEach, expect, test, vi } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { type EventLine, event, ndjson } from './events.ts';
import { done, type TestLoader, useLoader } from './loader.ts';
import type { Command } from './process.ts';
import type { TestStore } from './store.ts';

export interface MeetingLoaders {
  readonly file: TestLoader['file'];
  start(...args: string[]): Command;
  events(count: number): EventLine[];
  /** Events of the current account; what the rollups say must agree with all that is stored. */
  counted(): Promise<number>;
  /** Chunks of the newest load: how many it has claimed, how many are loaded. */
  chunks(): Promise<{ claimed: number; loaded: number }>;
}

export function useMeetingLoaders(db: TestStore): MeetingLoaders {
  let account: string;
  let home: string;
  const {
    file,
    start: begin,
    counted: countedEvents,
    killAll,
  } = useLoader(db, (own) => {
    ({ account, home } = own);
  });
  afterEach(killAll);

  function events(count: number): EventLine[] {
    return Array.from({ length: count }, (_, n) =>
      event({
        advertiser_id: account,
        spend: `0.${n % 10}`,
        event_time: `2026-0${1 + (n % 3)}-1${n % 9}T12:00:00Z`,
      }),
    );
  }

  const start = (...args: string[]): Command => begin(args);

  async function counted(): Promise<number> {
    expect(await verifyRollups(db.store, catalog)).toEqual({ differences: [], more: false });
    return countedEvents();
  }

  async function chunks(): Promise<{ claimed: number; loaded: number }> {
    const [row] = await select<{ claimed: number; loaded: number }>(
      db.store,
      `SELECT toUInt32(uniqExact(chunk)) AS claimed, toUInt32(uniqExactIf(chunk, toUInt64(loaded_at) > 0)) AS loaded
     FROM load_chunks WHERE load_id = (SELECT max(load_id) FROM loads WHERE startsWith(file, {home:String}))`,
      { home },
    );
    return row ?? { claimed: 0, loaded: 0 };
  }

  return { file, start, events, counted, chunks };
}

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

/** A load that is stopped by a signal. */
export function stoppedBy(
  { file, start, events, counted, chunks }: MeetingLoaders,
  signals: readonly NodeJS.Signals[],
  count: number,
): void {
  test.each(signals)(
    '%s finishes the chunks in flight, says how to go on, and the same command completes',
    async (signal) => {
      const path = await file('e.ndjson', ndjson(events(count)));
      const args = ['ingest', 'events', '--json', '--chunk-bytes', '60000', path];
      const stopped = start(...args);
      await until(async () => expect((await chunks()).loaded).toBeGreaterThan(1));
      const { code, stdout, stderr } = await stopped.kill(signal);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/Rows already loaded are kept; run the same command again to continue/);
      const before = await counted();
      expect(before).toBeGreaterThan(0);
      expect(before).toBeLessThan(count);

      expect(await done(start(...args))).toMatchObject({ rows: count - before, repeated_rows: before });
      expect(await counted()).toBe(count);
    },
  );
}
