import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { parse as parseCsv } from 'csv-parse/sync';
import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { writeRejects } from '../../ingest/history/load-history.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { replay } from '../../ingest/replay/replay.ts';
import { event, ndjson } from './events.ts';
import { type TestLoader, useLoader } from './loader.ts';
import type { Command, Ended } from './process.ts';
import { testSeed as seed, seededRandom } from './random.ts';
import type { TestStore } from './store.ts';

type Kind = 'csv' | 'ndjson';

interface Totals {
  readonly events: number;
  readonly ids: number;
  readonly impressions: number;
}

export interface RejectedLoads {
  /** Of the events of the current test; a test that needs more of them sets it. */
  account: string;
  readonly file: TestLoader['file'];
  start(...args: string[]): Command;
  run(...args: string[]): Promise<Ended>;
  /** Loads lines, every fifth without a quantity that counts; returns the file and the id of the load. */
  loadWithRejects(count: number): Promise<{ path: string; load: string }>;
  /** Exports the rejected rows of a load and writes them again with other quantities. */
  corrected(load: string, kind: Kind, quantity: (row: number) => number, name?: string): Promise<string>;
  /** What the store counts for the current account. */
  counted(): Promise<Totals | undefined>;
  /** The same; the rollups must agree with all that is stored. */
  totals(): Promise<Totals | undefined>;
}

export const now = (): Date => new Date();

export function useRejectedLoads(db: TestStore): RejectedLoads {
  let account: string;
  const {
    file,
    start: begin,
    run,
  } = useLoader(db, (own) => {
    ({ account } = own);
  });
  const start = (...args: string[]): Command => begin(args);

  async function loadWithRejects(count: number): Promise<{ path: string; load: string }> {
    const lines = Array.from({ length: count }, (_, n) =>
      event({
        event_id: `${account}-${n}`,
        advertiser_id: account,
        quantity: n % 5 === 4 ? 0 : 1,
        spend: '0.1',
      }),
    );
    const path = await file('e.ndjson', ndjson(lines));
    const { loadId = '' } = await loadEvents({
      store: db.store,
      input: new LocalFile(path),
      chunkBytes: 100_000,
      now,
    });
    return { path, load: loadId };
  }

  async function corrected(
    load: string,
    kind: Kind,
    quantity: (row: number) => number,
    name = 'corrected',
  ): Promise<string> {
    const out = new PassThrough();
    const [exported] = await Promise.all([
      text(out),
      writeRejects(db.store, out, [load], kind).finally(() => out.end()),
    ]);
    if (kind === 'ndjson') {
      const rows = exported
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      for (const [n, row] of rows.entries()) row.event.quantity = quantity(n);
      return file(`${name}.ndjson`, rows.map((row) => JSON.stringify(row)).join('\n'));
    }
    const rows: Record<string, string>[] = parseCsv(exported, { columns: true });
    const lines = rows.map((row, n) => Object.values({ ...row, quantity: `${quantity(n)}` }));
    const cells = [Object.keys(rows[0] ?? {}), ...lines].map((line) =>
      line.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(','),
    );
    return file(`${name}.csv`, `${cells.join('\n')}\n`);
  }

  async function counted(): Promise<Totals | undefined> {
    const [row] = await select<Totals>(
      db.store,
      `SELECT toUInt32(count()) AS events, toUInt32(uniqExact(event_id)) AS ids, toUInt32(sum(e.impressions + e.referrals + e.conversions + e.ad_requests)) AS impressions
     FROM events AS e WHERE advertiser_id = {account:String}`,
      { account },
    );
    return row;
  }

  return {
    get account() {
      return account;
    },
    set account(other) {
      account = other;
    },
    file,
    start,
    run: (...args) => run(args),
    loadWithRejects,
    corrected,
    counted,
    totals: async () => {
      expect(await verifyRollups(db.store, catalog)).toEqual({ differences: [], more: false });
      return counted();
    },
  };
}

/** Kills a replay in all rounds but the first. */
export function killedReplay(db: TestStore, loads: RejectedLoads, kind: Kind): void {
  test(`rows corrected in ${kind} count once when the replay is killed and repeated, also with other corrections (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    let fullMs = 0;
    // Round 0 is not disturbed: it shows how long a replay takes.
    for (let round = 0; round < 3; round++) {
      loads.account = `account-${kind}-killed-${round}`;
      const { load } = await loads.loadWithRejects(2_000);
      const path = await loads.corrected(load, kind, () => 3, 'first');
      const other = await loads.corrected(load, kind, () => 5, 'second');
      const startedAt = performance.now();
      const killed = loads.start('replay', load, path);
      if (round > 0) {
        await delay(fullMs * (0.3 + 0.7 * random()));
        await killed.kill('SIGKILL');
      }
      await killed.ended;
      if (round === 0) fullMs = performance.now() - startedAt;
      await replay(db.store, load, new LocalFile(other), now);
      const found = await loads.counted();
      expect(found, `seed ${seed}, round ${round}`).toMatchObject({ events: 2_000, ids: 2_000 });
      // All rows as corrected first, or all as corrected later.
      expect([1_600 + 3 * 400, 1_600 + 5 * 400], `seed ${seed}, round ${round}`).toContain(
        found?.impressions,
      );
    }
    await loads.totals();
  });
}
