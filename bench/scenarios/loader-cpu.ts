import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { formats } from '../../ingest/formats/formats.ts';
import { writeEventFile } from '../data/files.ts';
import { clickhouseMs } from '../harness/cpu.ts';
import { plainInsert, runLoader } from '../harness/loader.ts';
import { ratio, runInTurn, type Side } from '../harness/measure.ts';
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts';
import { Targets } from '../harness/targets.ts';
import type { GoalName } from '../report/goals.ts';
import { typedColumns } from './ingest.ts';

const maxEvents = 2_000_000;

/** CPU of the loader and of ClickHouse for each event, against ClickHouse reading the same file and storing nothing. */
export const loaderCpu: Scenario = async (bench) => {
  const targets = new Targets(bench.server);
  try {
    return [
      await againstParsing(bench, targets, 'ndjson', 'loaderCpuNdjson'),
      await againstParsing(bench, targets, 'csv', 'loaderCpuCsv'),
    ];
  } finally {
    await targets.close();
  }
};

async function againstParsing(
  { events: all, seed, runs, compiled, scratch, server, progress }: Bench,
  targets: Targets,
  kind: 'ndjson' | 'csv',
  goal: GoalName,
): Promise<Outcome> {
  const events = Math.min(all, maxEvents);
  progress(`${events} events, ${kind}`);
  const format = formats[kind];
  const file = join(scratch, `cpu.${kind}`);
  await writeEventFile(targets.root, file, format, { events, seed });
  const engine = () => clickhouseMs(targets.root);
  const perEvent = (ms: number) => (ms * 1000) / events;
  const ours = targets.side('adtally ingest', async (address) => {
    const before = await engine();
    const { cpuMs } = await runLoader(compiled, address, file);
    return perEvent((await engine()) - before + cpuMs);
  });
  const parsing: Side = {
    name: 'ClickHouse, into Null',
    run: async () => {
      const before = await engine();
      await plainInsert(
        server,
        file,
        `INSERT INTO FUNCTION null('${typedColumns}') FORMAT ${format.clickhouse}`,
      );
      return perEvent((await engine()) - before);
    },
  };
  const sides = await runInTurn([ours, parsing], runs, async () => {
    assert.equal((await targets.totals(ours.name)).events, events);
  });
  await Promise.all([rm(file), targets.drop()]);
  const value = ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median;
  return {
    what: `CPU of ${events / 1e6} million events, ${kind}`,
    unit: 'µs/event',
    sides,
    goals: [{ goal, value }],
  };
}
