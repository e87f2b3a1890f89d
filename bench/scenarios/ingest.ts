import assert from 'node:assert/strict';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../clickhouse/client.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import type { Format } from '../../ingest/formats/format.ts';
import { formats } from '../../ingest/formats/formats.ts';
import { insertSingles } from '../data/events.ts';
import { writeEventFile } from '../data/files.ts';
import { plainInsert, runLoader } from '../harness/loader.ts';
import { ratio, runInTurn, type Side } from '../harness/measure.ts';
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts';
import { Targets } from '../harness/targets.ts';
import type { GoalName } from '../report/goals.ts';

/** The largest number of events in a file. What begins and ends a load takes a second, a tenth of one of 2 million. */
const maxEvents = 10_000_000;
/** The same in files that compare settings of the loader. */
const maxSettingsEvents = 1_000_000;
/** Five lines of a hundred. */
const badEvery = 20;

/** The loader as a command against one plain INSERT of the same file, and what bad lines and its settings cost. */
export const ingest: Scenario = async (bench) => {
  const targets = new Targets(bench.server);
  try {
    const outcomes: Outcome[] = [];
    for (const [format, goal] of [
      [formats.ndjson, 'ingestNdjson'],
      [formats.csv, 'ingestCsv'],
      [formats.parquet, 'ingestParquet'],
    ] as const) {
      outcomes.push(await againstInsert(bench, targets, format, goal));
    }
    outcomes.push(...(await settings(bench, targets)));
    return outcomes;
  } finally {
    await targets.close();
  }
};

/** Times of epoch and milliseconds are not for this: typed columns, and ClickHouse's settings as they come. */
export const typedColumns = `event_id String, event_time DateTime64(3, \\'UTC\\'), event_type LowCardinality(String),
  quantity UInt32, advertiser_id String, campaign_id String, creative_id String, publisher_id String, ad_unit_id String,
  site_id String, device LowCardinality(String), spend Decimal(18, 6), revenue Decimal(18, 6), confirmed Bool`;

async function againstInsert(
  bench: Bench,
  targets: Targets,
  format: Format,
  goal: GoalName,
): Promise<Outcome> {
  const { seed, compiled, scratch } = bench;
  const events = Math.min(bench.events, maxEvents);
  bench.progress(`${events} events, ${format.name}`);
  const [clean, faulty] = ['clean', 'faulty'].map((name) => join(scratch, `${name}.${format.name}`));
  assert(clean && faulty);
  await writeEventFile(targets.root, clean, format, { events, seed });
  await writeEventFile(targets.root, faulty, format, { events, seed, badEvery });
  const side = (name: string, file: string) =>
    targets.side(name, async (address) => events / (await runLoader(compiled, address, file)).seconds);
  const ours = side('adtally ingest', clean);
  const bad = side('adtally ingest, 5 % bad', faulty);
  const insert = `${insertSingles(`input('${typedColumns}')`)} FORMAT ${format.clickhouse}`;
  const theirs = targets.side(
    'one plain INSERT',
    async (address) => events / (await plainInsert(address, clean, insert)),
  );
  const sides = await runInTurn([ours, theirs, bad], bench.runs, async () => {
    const stored = await targets.totals(ours.name);
    assert.deepEqual(stored, await targets.totals(theirs.name));
    assert.deepEqual([stored.events, stored.rejected], [events, 0]);
    const rest = await targets.totals(bad.name);
    const wrong = Math.ceil(events / badEvery);
    assert.deepEqual([rest.events, rest.rejected], [events - wrong, wrong]);
  });
  const [own = [], plain = [], withBad = []] = sides.map(({ samples }) => samples);
  const { size } = await stat(clean);
  await Promise.all([rm(clean), rm(faulty), targets.drop()]);
  return {
    what: `${events / 1e6} million events, ${format.name}`,
    unit: 'events/s',
    sides,
    facts: { megabytes: size / 1e6 },
    goals: [
      { goal, value: ratio(own, plain).median },
      { goal: 'ingestBad', value: ratio(withBad, own).median },
    ],
    chart: 'ingest',
  };
}

/** The cost of rollups, of exactly-once and of --dedupe. */
async function settings(bench: Bench, targets: Targets): Promise<Outcome[]> {
  const { compiled, seed } = bench;
  const events = Math.min(bench.events, maxSettingsEvents);
  const file = join(bench.scratch, 'settings.ndjson');
  await writeEventFile(targets.root, file, formats.ndjson, { events, seed });
  const side = (name: string, flags: string[] = [], change?: (store: Store) => Promise<void>) =>
    targets.side(
      name,
      async (address) => events / (await runLoader(compiled, address, file, flags)).seconds,
      change,
    );
  const tables = ['events', ...rollups(catalog).map(({ table }) => table)];
  const groups: Record<string, Side[]> = {
    'what costs what': [
      side('adtally ingest, as it is'),
      side('without rollups', [], async (store) => {
        for (const { view } of rollups(catalog).toReversed())
          await store.command({ query: `DROP VIEW ${view} SYNC` });
      }),
      side('without deduplication', [], async (store) => {
        for (const table of tables) {
          const query = `ALTER TABLE ${table} MODIFY SETTING non_replicated_deduplication_window = 0`;
          await store.command({ query });
        }
      }),
      side('with --dedupe', ['--dedupe']),
    ],
  };
  const outcomes: Outcome[] = [];
  for (const [what, sides] of Object.entries(groups)) {
    bench.progress(what);
    outcomes.push({
      what: `${events / 1e6} million events, ndjson: ${what}`,
      unit: 'events/s',
      sides: await runInTurn(sides, bench.runs),
    });
    await targets.drop();
  }
  await rm(file);
  return outcomes;
}
