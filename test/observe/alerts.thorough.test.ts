import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { type EventLine, event, load, ndjson } from '../support/events.ts';
import { useFolder } from '../support/folder.ts';
import { type Held, heldAt } from '../support/held.ts';
import { useLoader } from '../support/loader.ts';
import { type Prometheus, rulesFile, startPrometheus } from '../support/prometheus.ts';
import { useService } from '../support/service.ts';
import { onEveryShard, useStore } from '../support/store.ts';

/**
 * What nobody sees at night is made to happen, and a real Prometheus has to tell of it: by the rules of deploy/, without
 * their waits, which alerts.test.yml has.
 */
const db = useStore();
const service = useService(db, { ALERT_LOW_DAY_AFTER_HOURS: '0' }, undefined, {
  figureTimes: { everyMs: 2_000, partOfTime: 1 },
});
const loader = useLoader(db);
const folder = useFolder();
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const begunAt = Date.now();
let prometheus: Prometheus;

const ofDay = (days: number, fields: Partial<EventLine>) =>
  event({ event_time: new Date(begunAt - days * dayMs).toISOString(), ...fields });

const impressions = (days: number, account: string, quantity: number) =>
  ofDay(days, { advertiser_id: account, publisher_id: '', ad_unit_id: '', quantity });
const usualDay = (days: number) => [impressions(days, 'large', 9_000), impressions(days, 'small', 1_000)];

/** What is told of, by alert and severity. */
const firing = async () => {
  const rules = await prometheus.rules();
  return rules
    .filter(({ name, state }) => state === 'firing' && !/DiskFull$/.test(name))
    .map(({ name, labels }) => `${name.replace(/^Adtally/, '')} ${labels.severity}`)
    .sort();
};
const told = (names: readonly string[]) =>
  expect.poll(firing, { timeout: 200_000, interval: 1_000 }).toEqual(names);

beforeAll(async () => {
  // Four weeks in order, of a large account and a small one.
  await load(db.store, Array.from({ length: 28 }, (_, n) => usualDay(n + 2)).flat());
  await loader.ingest(await loader.file('yesterday.ndjson', ndjson(usualDay(1))));
  const metrics = async () => (await fetch(`${service.url}/metrics`)).text();
  const free = await vi.waitFor(
    async () => {
      const [, bytes] = /^adtally_store_disk_free_bytes (\d\S+)$/m.exec(await metrics()) ?? [];
      if (bytes === undefined) throw new Error('the disk is not known yet');
      return Number(bytes);
    },
    { timeout: 60_000 },
  );
  const rules = join(folder, 'alerts.yml');
  writeFileSync(rules, readFileSync(rulesFile, 'utf8').replace(/^ +for: .*\n/gm, ''));
  prometheus = await startPrometheus(service.url, {
    rules,
    history: disk(new URL(service.url).host, free),
  });
});
afterAll(async () => {
  await prometheus?.stop();
});

/**
 * A disk that had more space: yesterday twice as much as now, three times the day before. Other tests fill and empty it
 * meanwhile: by this it still fills when half as much again gets free.
 */
function disk(instance: string, free: number): string {
  const lines = [2, 1].flatMap((days) =>
    Array.from({ length: 30 }, (_, minutes) => {
      const seconds = Math.round((begunAt - days * dayMs) / 1000) + minutes * 60;
      return `adtally_store_disk_free_bytes{instance="${instance}",job="adtally"} ${free * (1 + days)} ${seconds}`;
    }),
  );
  return ['# TYPE adtally_store_disk_free_bytes gauge', ...lines, '# EOF\n'].join('\n');
}

test('a store in order raises nothing but what its disk has done before', async () => {
  await told(['DiskFullSoon warn']);
});

const troubles = [
  'ChunksInDoubt warn',
  'DiskFullSoon warn',
  'LoadTakesLong warn',
  'LoadsFail warn',
  'LowAccounts info',
  'LowAccounts warn',
  'LowDay warn',
  'NothingLoaded warn',
  'UnconfirmedDays info',
];
const little = [impressions(1, 'large', 3_000)];
let daily = '';
let held: Held;
let hangs: Promise<unknown>;

test('each thing that goes wrong at night is told of', async () => {
  // Yesterday has nothing of the small account, and of the large one a third.
  const [yesterday] =
    (await loader.run(['loads', '--json'])).stdout.match(
      /\d+-\w+(?=","kind":"events","state":"loaded","file":"[^"]*yesterday)/,
    ) ?? [];
  expect((await loader.run(['unload', yesterday ?? ''])).code).toBe(0);
  await load(db.store, little);
  // A file that fails each time, one that hangs since long ago, and old money that nobody has confirmed.
  daily = await loader.file('daily.ndjson', ndjson([event({ campaign_id: '' })]));
  for (const _ of [1, 2]) expect((await loader.ingest(daily, '--max-rejects', '0')).code).toBe(1);
  const hanging = join(folder, 'hanging.ndjson');
  writeFileSync(hanging, ndjson([ofDay(1, { advertiser_id: 'large', spend: '1' })]));
  held = heldAt(db.store, /INSERT INTO incoming/);
  hangs = loadEvents({
    store: held.store,
    input: new LocalFile(hanging),
    chunkBytes: 1 << 20,
    dedupe: false,
    now: () => new Date(begunAt - 7 * hourMs),
  });
  await held.reached;
  await load(db.store, [ofDay(90, { advertiser_id: 'large', spend: '1' })]);
  // All that came was 27 hours ago.
  for (const table of ['campaigns_date', 'ad_units_date']) {
    await onEveryShard(db, `ALTER TABLE ${table} UPDATE changed_at = now64(6) - INTERVAL 27 HOUR WHERE true`);
  }
  await told(troubles);
});

test('a repeat, an empty file and rejected rows do not pass for events', async () => {
  const before = await prometheus.ask('adtally_last_events_timestamp_seconds');
  await load(db.store, little);
  await loader.ingest(await loader.file('empty.ndjson', ''));
  await loader.ingest(await loader.file('rejected.ndjson', ndjson([event({ campaign_id: '' })])));
  await expect
    .poll(() => prometheus.ask('adtally_rejected_rows_open > 0'), { timeout: 200_000, interval: 1_000 })
    .toHaveLength(1);
  await told([...troubles, 'RejectedRowsOpen info'].sort());
  expect(
    (await prometheus.ask('adtally_last_events_timestamp_seconds')).map(({ value }) => value[1]),
  ).toEqual(before.map(({ value }) => value[1]));
});

test('what is mended is told of no more', async () => {
  held.release();
  await hangs;
  writeFileSync(daily, ndjson([impressions(1, 'small', 1_000)]));
  expect((await loader.ingest(daily)).code).toBe(0);
  await load(db.store, [impressions(1, 'large', 5_900)]);
  // What the file had before is in doubt until its loads are given up.
  for (const line of (await loader.run(['loads', '--json'])).stdout.matchAll(
    /"load":"([^"]+)"[^}]*"state":"failed"/g,
  )) {
    expect((await loader.run(['unload', line[1] ?? ''])).code).toBe(0);
  }
  const day = new Date(begunAt - 90 * dayMs).toISOString().slice(0, 10);
  expect((await loader.run(['confirm', 'large', '--from', day, '--to', day])).code).toBe(0);
  await told(['DiskFullSoon warn', 'RejectedRowsOpen info']);
});
