import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeCountFiles } from '../data/files.ts';
import { runLoader } from '../harness/loader.ts';
import { median, runInTurn } from '../harness/measure.ts';
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts';
import { Targets } from '../harness/targets.ts';

/** What the loader makes of events that are already counted, and of many small files. */
export const shapes: Scenario = async (bench) => {
  const targets = new Targets(bench.server);
  try {
    return [await countedRows(bench, targets), await smallFiles(bench, targets)];
  } finally {
    await targets.close();
  }
};

/** The same events as counts of a day, as most exports have them, and one by one. */
async function countedRows(bench: Bench, targets: Targets): Promise<Outcome> {
  const { compiled, scratch, seed, runs } = bench;
  const events = Math.min(bench.events, 1_000_000);
  bench.progress('counts');
  const [counts, singles] = [join(scratch, 'counts.csv'), join(scratch, 'singles.csv')];
  await writeCountFiles(targets.root, { counts, singles }, { events, seed });
  const side = (name: string, file: string) =>
    targets.side(name, async (address) => events / (await runLoader(compiled, address, file)).seconds);
  const counted = side('adtally ingest, counts of a day', counts);
  const single = side('adtally ingest, single events', singles);
  let rows = 0;
  const sides = await runInTurn([counted, single], runs, async () => {
    const [a, b] = [await targets.totals(counted.name), await targets.totals(single.name)];
    assert.deepEqual(a.sums, b.sums);
    assert.equal(b.events, events);
    rows = a.events;
  });
  await Promise.all([rm(counts), rm(singles)]);
  return {
    what: `${events / 1e6} million events of publishers, csv: counts`,
    unit: 'events/s',
    sides,
    facts: { rows_of_counts: rows },
  };
}

/** A folder of files with an event each: what a file costs. */
async function smallFiles(bench: Bench, targets: Targets): Promise<Outcome> {
  const { compiled, scratch, quick, runs } = bench;
  const files = quick ? 20 : 1000;
  bench.progress(`${files} files`);
  const folder = join(scratch, 'small');
  await mkdir(folder);
  for (let n = 0; n < files; n++) {
    const time = new Date(Date.UTC(2026, 2, 1 + (n % 30), 12)).toISOString();
    const event = {
      event_id: `small-${n}`,
      event_time: time,
      advertiser_id: 'small',
      campaign_id: `c-${n % 7}`,
    };
    await writeFile(
      join(folder, `${n}.ndjson`),
      `${JSON.stringify({ ...event, event_type: 'impression' })}\n`,
    );
  }
  const side = targets.side(
    'adtally ingest FOLDER',
    async (address) => (await runLoader(compiled, address, folder)).seconds,
  );
  const sides = await runInTurn([side], Math.min(runs, 3), async () =>
    assert.equal((await targets.totals(side.name)).events, files),
  );
  await rm(folder, { recursive: true });
  return {
    what: `${files} files of one line`,
    unit: 's',
    sides,
    goals: quick ? [] : [{ goal: 'smallFiles', value: median(sides[0]?.samples ?? []) }],
  };
}
