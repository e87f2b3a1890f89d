import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { largeFileKinds, writeLargeFile } from '../data/large-files.ts';
import { transfer } from '../harness/http-client.ts';
import { runLoader } from '../harness/loader.ts';
import { median, runInTurn, type Samples } from '../harness/measure.ts';
import { type Bench, largest, type Outcome, openService, type Scenario } from '../harness/scenario.ts';
import { Targets } from '../harness/targets.ts';

const callers = 8;

/** Peak resident memory of the service with eight callers of the largest report, and of the loader on a large file. */
export const memory: Scenario = async (bench) => [await service(bench), await loader(bench)];

async function service(bench: Bench): Promise<Outcome> {
  bench.progress(`${callers} callers of the largest report`);
  const { address } = await bench.store(bench.events);
  const samples: { identity: number[]; zstd: number[]; idle: number[] } = {
    identity: [],
    zstd: [],
    idle: [],
  };
  for (let run = 0; run < Math.max(1, bench.runs); run++) {
    for (const encoding of ['identity', 'zstd'] as const) {
      const started = await openService(bench, address);
      try {
        if (encoding === 'identity') samples.idle.push(started.peakMemoryMb());
        for (let round = 0; round < 3; round++) {
          await Promise.all(
            Array.from({ length: callers }, () => transfer(started.request(largest, encoding))),
          );
        }
        samples[encoding].push(started.peakMemoryMb());
      } finally {
        await started.stop();
      }
    }
  }
  return {
    what: `service, ${callers} callers of the largest report, three times`,
    unit: 'MB',
    sides: [
      { name: 'adtally', samples: samples.identity },
      { name: 'adtally, zstd', samples: samples.zstd },
      { name: 'adtally, just started', samples: samples.idle },
    ],
    chart: 'memory',
    goals: [{ goal: 'memory', value: median(samples.identity) }],
  };
}

/** Of packed files, the size is that of the text. */
async function loader(bench: Bench): Promise<Outcome> {
  const { server, runs, quick, compiled, scratch, bytes } = bench;
  const targets = new Targets(server);
  const sides: Samples[] = [];
  const facts: Record<string, number> = {};
  try {
    for (const kind of quick ? (['parquet'] as const) : largeFileKinds) {
      bench.progress(`loader on a large file, ${kind}`);
      const file = join(scratch, `large.${kind}`);
      const { events, textBytes } = await writeLargeFile(targets.root, file, kind, bench);
      const name = `adtally ingest, ${kind}`;
      let seconds = 0;
      const side = targets.side(name, async (address) => {
        const run = await runLoader(compiled, address, file);
        ({ seconds } = run);
        return run.peakMemoryMb;
      });
      sides.push(...(await runInTurn([side], bytes === undefined ? Math.min(runs, 3) : 0)));
      assert.equal((await targets.totals(name)).events, events);
      Object.assign(facts, { [`${kind}_gigabytes`]: textBytes / 1e9, [`${kind}_seconds`]: seconds });
      await Promise.all([rm(file), targets.drop()]);
    }
  } finally {
    await targets.close();
  }
  return {
    what: 'loader on a large file',
    unit: 'MB',
    sides,
    facts,
    goals: [{ goal: 'loaderMemory', value: Math.max(...sides.flatMap(({ samples }) => samples)) }],
  };
}
