import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { type EventLine, event, ndjson } from './events.ts';
import { useLoader } from './loader.ts';
import type { Command } from './process.ts';
import { testSeed as seed, seededRandom } from './random.ts';
import type { TestStore } from './store.ts';

interface Loaded {
  readonly loads: readonly string[];
  readonly rows: number;
  readonly repeated_rows: number;
  readonly duplicate_rows: number;
}

export interface DedupedLoads {
  /** Events with the ids `from` up to `to`; `fields` tell otherwise equal lines apart, as a second export would. */
  lines(from: number, to: number, fields?: Partial<EventLine>): EventLine[];
  file(name: string, events: readonly EventLine[]): Promise<string>;
  start(...args: string[]): Command;
  ingest(...args: string[]): Promise<Loaded>;
  /** Events and ids of the current account; the rollups must agree with all that is stored. */
  counted(): Promise<{ events: number; ids: number } | undefined>;
}

export function useDedupedLoads(db: TestStore): DedupedLoads {
  let account: string;
  const {
    file,
    start: begin,
    run,
  } = useLoader(db, (own) => {
    ({ account } = own);
  });
  function lines(from: number, to: number, fields: Partial<EventLine> = {}): EventLine[] {
    return Array.from({ length: to - from }, (_, n) =>
      event({ event_id: `${account}-${from + n}`, advertiser_id: account, ...fields }),
    );
  }

  const start = (...args: string[]): Command => begin(args);
  async function ingest(...args: string[]): Promise<Loaded> {
    const { code, stdout, stderr } = await run(['ingest', 'events', '--json', ...args]);
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout);
  }

  async function counted(): Promise<{ events: number; ids: number } | undefined> {
    expect(await verifyRollups(db.store, catalog)).toEqual({ differences: [], more: false });
    const [row] = await select<{ events: number; ids: number }>(
      db.store,
      `SELECT toUInt32(count()) AS events, toUInt32(uniqExact(event_id)) AS ids
     FROM events WHERE advertiser_id = {account:String}`,
      { account },
    );
    return row;
  }
  return { lines, file: (name, events) => file(name, ndjson(events)), start, ingest, counted };
}

/** Kills a load with --dedupe so many times before it may go through. */
export function killedAndRepeated(
  { lines, file, start, ingest, counted }: DedupedLoads,
  kills: number,
  size: number,
): void {
  test(`killed ${kills} times and repeated, each event_id is counted once (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const repeated = (n: number) => lines(n * size, n * size + 1.5 * size, { device: `device-${n}` });
    const paths = await Promise.all([0, 1, 2, 3].map((n) => file(`${n}.ndjson`, repeated(n))));
    const args = ['--dedupe', '--chunk-bytes', '60000', ...paths];
    for (let kill = 0; kill < kills; kill++) {
      const load = start('ingest', 'events', ...args);
      await delay(300 + 2 * size * random());
      await load.kill('SIGKILL');
    }
    const { rows, repeated_rows, duplicate_rows } = await ingest(...args);
    expect(rows + repeated_rows + duplicate_rows).toBeLessThanOrEqual(6 * size);
    expect(await counted(), `seed ${seed}`).toEqual({ events: 4.5 * size, ids: 4.5 * size });
  });
}
