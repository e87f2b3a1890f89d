import assert from 'node:assert/strict';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formats } from '../../ingest/input/file-format.ts';
import { writeCountFiles, writeEventFile } from '../data/files.ts';
import { runLoader } from '../harness/loader.ts';
import { runInTurn } from '../harness/measure.ts';
import type { Bench, Outcome } from '../harness/scenario.ts';
import type { Targets } from '../harness/targets.ts';

/** The same events as counts of a day, as most exports have them, and one by one. */
export async function countedRows(bench: Bench, targets: Targets): Promise<Outcome[]> {
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
  return [
    {
      what: `${events / 1e6} million events of publishers, csv: counts`,
      unit: 'events/s',
      sides,
      facts: { rows_of_counts: rows },
    },
  ];
}

/** A folder of files with an event each: what a file costs. */
export async function smallFiles(bench: Bench, targets: Targets): Promise<Outcome[]> {
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
  return [{ what: `${files} files of one line`, unit: 's', sides }];
}

/** Peak memory of the loader for an NDJSON file of so many bytes; not measured unless --bytes asks for it. */
export async function largeFile(bench: Bench, targets: Targets): Promise<Outcome[]> {
  const { compiled, scratch, seed, bytes } = bench;
  if (bytes === undefined) return [];
  bench.progress(`a file of ${bytes / 1e9} GB`);
  const file = join(scratch, 'large.ndjson');
  const bytesOfEvent = 350;
  await writeEventFile(targets.root, file, formats.ndjson, { events: Math.ceil(bytes / bytesOfEvent), seed });
  const { size } = await stat(file);
  let seconds = 0;
  const side = targets.side('adtally ingest', async (address) => {
    const run = await runLoader(compiled, address, file);
    ({ seconds } = run);
    return run.peakMemoryMb;
  });
  const sides = await runInTurn([side], 0);
  await rm(file);
  return [
    {
      what: 'peak memory of the loader, ndjson',
      unit: 'MB',
      sides,
      facts: { gigabytes: size / 1e9, seconds },
    },
  ];
}
