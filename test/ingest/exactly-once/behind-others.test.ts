import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { catalog } from '../../../catalog/catalog.ts';
import { type Store, select } from '../../../clickhouse/client.ts';
import { verifyRollups } from '../../../clickhouse/consistency/verify-rollups.ts';
import { plainReading } from '../../../ingest/event/reading.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { Load } from '../../../ingest/ledger/load.ts';
import { loadFiles } from '../../../ingest/load/load-files.ts';
import { event, ndjson } from '../../support/events.ts';
import { signal } from '../../support/held.ts';
import { useLoader } from '../../support/loader.ts';
import { parquetFile } from '../../support/parquet.ts';
import { useStore } from '../../support/store.ts';

// Files of one command share places: two of them store chunks at a time, and small chunks are stored by one statement.
// Here some of their loads were silent and go behind a rebuild, which waits for a load that needs the place.
const db = useStore();
const { own, counted, file } = useLoader(db);
afterEach(() => void vi.restoreAllMocks());

/** The load of each file. */
const loadsOf = async (paths: readonly string[]) => {
  const query = 'SELECT load_id AS id FROM loads WHERE file = {path:String} LIMIT 1';
  const ids = await Promise.all(paths.map((path) => select<{ id: string }>(db.store, query, { path })));
  return ids.map(([load]) => load?.id as string);
};

/** Lets loads be as after a silence that ends now. */
function silence(ids: readonly string[]): void {
  const now = performance.now();
  const asked = Load.prototype.heartbeatLapsedSince;
  vi.spyOn(Load.prototype, 'heartbeatLapsedSince').mockImplementation(function (this: Load, time) {
    return asked.call(this, time) || (ids.includes(this.id) && now > time);
  });
}

/** A rebuild that waits for what began before it; it ends as soon as it need not. */
async function waitingRebuild(): Promise<{ readonly id: string; readonly ended: Promise<void> }> {
  const [onWait, waiting] = signal();
  const begun = Load.begin(db.store, { kind: 'rebuild', file: 'all' }, new Date(), { onWait });
  const ended = begun.then((load) => load.finish());
  await Promise.race([waiting, ended]);
  const query = "SELECT load_id AS id FROM loads WHERE kind = 'rebuild' ORDER BY version DESC LIMIT 1";
  const [load] = await select<{ id: string }>(db.store, query);
  return { id: load?.id as string, ended };
}

/** The store, where the first of some statements is held up. */
function storeThatHolds(which: RegExp, hold: () => Promise<void>): Store {
  let held: Promise<void> | undefined;
  const holding =
    <Asked extends { readonly query: string }, Answer>(send: (asked: Asked) => Promise<Answer>) =>
    async (asked: Asked): Promise<Answer> => {
      if (!held && which.test(asked.query)) {
        held = hold();
        await held;
      }
      return send(asked);
    };
  const store: Store = Object.create(db.store);
  store.query = holding(db.store.query.bind(db.store)) as Store['query'];
  store.exec = holding(db.store.exec.bind(db.store)) as Store['exec'];
  return store;
}

test.each([
  {
    what: 'chunks that are stored by one statement',
    name: 'ndjson',
    content: async (n: number) => ndjson([event({ advertiser_id: own.account, campaign_id: `${n}` })]),
    held: /^INSERT INTO incoming_staging/,
  },
  {
    what: 'chunks that are stored one by one',
    name: 'parquet',
    content: (n: number) => parquetFile(db.store, own.account, 1, { quantity: `${n + 1}` }),
    held: /FROM load_chunks AS c WHERE head IN .*GROUP BY head, chunk, load_id/s,
  },
])(
  '$what: loads that go behind a rebuild let the others go on',
  async ({ name, content, held }) => {
    const numbers = Array.from({ length: 4 }, (_, n) => n);
    const paths = await Promise.all(numbers.map(async (n) => file(`${n}.${name}`, await content(n))));
    const silent = paths.slice(0, -1);
    let rebuild: Awaited<ReturnType<typeof waitingRebuild>> | undefined;
    const store = storeThatHolds(held, async () => {
      // The others claim their chunks meanwhile.
      await delay(500);
      rebuild = await waitingRebuild();
      silence(await loadsOf(silent));
    });
    const inputs = paths.map((path) => new LocalFile(path));
    const results = await loadFiles(inputs, { store, readingOf: plainReading, now: () => new Date() });
    await rebuild?.ended;
    expect(results.map(({ rows }) => rows)).toEqual(paths.map(() => 1));
    expect(await counted()).toBe(paths.length);
    expect((await verifyRollups(db.store, catalog)).differences).toEqual([]);
    const wentBehind = `SELECT load_id AS id FROM loads GROUP BY load_id
    HAVING max(turn) > (SELECT max(turn) FROM loads WHERE load_id = {id:String})`;
    const behind = await select<{ id: string }>(db.store, wentBehind, { id: rebuild?.id });
    const ids = behind.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(await loadsOf(silent)));
    expect(ids).not.toContain((await loadsOf(paths.slice(-1)))[0]);
  },
  60_000,
);
