import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { type EventLine, event, ndjson } from '../support/events.ts';
import { useLoader } from '../support/loader.ts';
import type { Command } from '../support/process.ts';
import { seededRandom } from '../support/random.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 180_000 });

const db = useStore();
const seed = Date.now() % 2 ** 31;
let account: string;
const { file: write, start: begin } = useLoader(db, (own) => {
  ({ account } = own);
});

/** Events with the ids `from` up to `to`; `fields` tell otherwise equal lines apart, as a second export would. */
function lines(from: number, to: number, fields: Partial<EventLine> = {}): EventLine[] {
  return Array.from({ length: to - from }, (_, n) =>
    event({ event_id: `${account}-${from + n}`, advertiser_id: account, ...fields }),
  );
}

const file = (name: string, events: readonly EventLine[]): Promise<string> => write(name, ndjson(events));

const start = (...args: string[]): Command => begin(args);

interface Loaded {
  readonly loads: readonly string[];
  readonly rows: number;
  readonly repeated_rows: number;
  readonly duplicate_rows: number;
}

async function ingest(...args: string[]): Promise<Loaded> {
  const { code, stdout, stderr } = await start('ingest', 'events', '--json', ...args).ended;
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
    { account },
  );
  return row;
}

test('an event_id in two files of the same day is counted once, in events and rollups', async () => {
  const first = await file('first.ndjson', lines(0, 100));
  const second = await file('second.ndjson', lines(50, 150, { device: 'mobile' }));
  expect(await ingest('--dedupe', first)).toMatchObject({ rows: 100, duplicate_rows: 0 });
  expect(await ingest('--dedupe', second)).toMatchObject({ rows: 50, duplicate_rows: 50 });
  expect(await counted()).toEqual({ events: 150, ids: 150 });
  expect(await ingest('--dedupe', first, second)).toMatchObject({ rows: 0, duplicate_rows: 0 });
  expect(await counted()).toEqual({ events: 150, ids: 150 });
});

test('the same event_id on another day is another event', async () => {
  await ingest('--dedupe', await file('first.ndjson', lines(0, 10)));
  const next = await file('next.ndjson', lines(0, 10, { event_time: '2026-03-02T12:00:00Z' }));
  expect(await ingest('--dedupe', next)).toMatchObject({ rows: 10, duplicate_rows: 0 });
  expect(await counted()).toEqual({ events: 20, ids: 10 });
});

test.each(['1000000', '3000'])(
  'an event_id that repeats within a file is counted once, in chunks of %s bytes',
  async (bytes) => {
    const path = await file('e.ndjson', [...lines(0, 60), ...lines(30, 90, { device: 'tablet' })]);
    expect(await ingest('--dedupe', '--chunk-bytes', bytes, path)).toMatchObject({
      rows: 90,
      duplicate_rows: 30,
    });
    expect(await counted()).toEqual({ events: 90, ids: 90 });
  },
);

test(`killed several times and repeated, each event_id is counted once (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const repeated = (n: number) => lines(n * 1_000, n * 1_000 + 1_500, { device: `device-${n}` });
  const paths = await Promise.all([0, 1, 2, 3].map((n) => file(`${n}.ndjson`, repeated(n))));
  const args = ['--dedupe', '--chunk-bytes', '60000', ...paths];
  for (let kill = 0; kill < 4; kill++) {
    const load = start('ingest', 'events', ...args);
    await delay(800 + 3_500 * random());
    await load.kill('SIGKILL');
  }
  const { rows, repeated_rows, duplicate_rows } = await ingest(...args);
  expect(rows + repeated_rows + duplicate_rows).toBeLessThanOrEqual(6_000);
  expect(await counted(), `seed ${seed}`).toEqual({ events: 4_500, ids: 4_500 });
});

test('two such loads at once count each event_id once', async () => {
  const [first, second] = await Promise.all([
    file('first.ndjson', lines(0, 3_000)),
    file('second.ndjson', lines(1_000, 4_000, { device: 'mobile' })),
  ]);
  const loads = await Promise.all(
    [first, second].map((path) => ingest('--dedupe', '--chunk-bytes', '100000', path)),
  );
  expect(loads.reduce((sum, { rows }) => sum + rows, 0)).toBe(4_000);
  expect(loads.reduce((sum, { duplicate_rows }) => sum + duplicate_rows, 0)).toBe(2_000);
  expect(await counted()).toEqual({ events: 4_000, ids: 4_000 });
});

test('without --dedupe repeated ids are counted, and the history tells how many there are', async () => {
  await ingest(await file('first.ndjson', lines(0, 100)));
  const { loads, rows } = await ingest(await file('second.ndjson', lines(70, 150, { device: 'mobile' })));
  expect(rows).toBe(80);
  expect(await counted()).toEqual({ events: 180, ids: 150 });
  const { stdout } = await start('loads', 'show', ...loads, '--json').ended;
  expect(JSON.parse(stdout)).toMatchObject([{ repeated_ids: 30, rows: 80 }]);
});
