import assert from 'node:assert/strict';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { largeFileKinds, writeLargeFile } from '../data/large-files.ts';
import { network } from '../data/network.ts';
import { dropStore } from '../data/store.ts';
import { transfer } from '../harness/http-client.ts';
import { runLoader } from '../harness/loader.ts';
import { median, runInTurn, type Samples } from '../harness/measure.ts';
import { type Bench, largest, type Outcome, openService, type Scenario } from '../harness/scenario.ts';
import { Targets } from '../harness/targets.ts';

const callers = 8;

/** Peak resident memory of the service with eight callers of the largest report and one of a gigabyte, and of the loader on a large file. */
export const memory: Scenario = async (bench) => [
  await service(bench),
  await gigabyte(bench),
  await loader(bench),
];

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
    goals: [{ goal: 'memory', value: median(samples.identity) }],
  };
}

/** Its rows go to the rollup directly: 4.4 million events with a key each would take a minute. */
async function gigabyte(bench: Bench): Promise<Outcome> {
  bench.progress('a report of a gigabyte');
  const address = { ...bench.server, database: 'bench_gigabyte' };
  const store = connect(address);
  const creatives = bench.quick ? 1 : 134;
  try {
    await migrate(address);
    await store.command({ query: 'TRUNCATE TABLE campaigns_device_creative_date' });
    await store.command({
      query: `INSERT INTO campaigns_device_creative_date
          (account_id, day, campaign_id, device, creative_id, impressions, conversions, referrals, spent)
        SELECT '${largest.account}', toDate('${network.firstDay}') + intDiv(number, ${90 * creatives}),
          concat('campaign-0-', toString(number % 30)), concat('device-', toString(intDiv(number, 30) % 3)),
          concat('creative-0-', toString(intDiv(number, 90) % ${creatives})),
          cityHash64(number) % 5000, number % 7, number % 90, toDecimal128(number % 9000000 / 1000000, 6)
        FROM numbers(${365 * 90 * creatives})`,
      clickhouse_settings: { max_partitions_per_insert_block: '0' },
    });
    const samples: number[] = [];
    let bytes = 0;
    for (let run = 0; run < Math.max(1, Math.min(bench.runs, 3)); run++) {
      const started = await openService(bench, address);
      try {
        ({ bytes } = await transfer(started.request(largest)));
        samples.push(started.peakMemoryMb());
      } finally {
        await started.stop();
      }
    }
    return {
      what: 'service, one caller of a very large report',
      unit: 'MB',
      sides: [{ name: 'adtally', samples }],
      facts: { megabytes: bytes / 1e6 },
      goals: [{ goal: 'gigabyteMemory', value: median(samples) }],
    };
  } finally {
    await store.close();
    await dropStore(address);
  }
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
    if (!quick) sides.push(...(await packedFiles(bench, targets)));
  } finally {
    await targets.close();
  }
  return {
    what: 'loader on a large file, and on many packed ones',
    unit: 'MB',
    sides,
    facts,
    goals: [{ goal: 'loaderMemory', value: Math.max(...sides.flatMap(({ samples }) => samples)) }],
  };
}

async function packedFiles({ compiled, scratch, runs }: Bench, targets: Targets): Promise<Samples[]> {
  const files = { count: 24, events: 30_000 };
  const folder = join(scratch, 'packed');
  await mkdir(folder);
  for (let n = 0; n < files.count; n++) {
    const file = join(folder, `${n}.ndjson.gz`);
    await writeLargeFile(targets.root, file, 'ndjson.gz', { events: files.events, seed: n + 1 });
  }
  const name = `adtally ingest, ${files.count} files of ${files.events} events, ndjson.gz`;
  const side = targets.side(
    name,
    async (address) => (await runLoader(compiled, address, folder)).peakMemoryMb,
  );
  const sides = await runInTurn([side], Math.min(runs, 3));
  assert.equal((await targets.totals(name)).events, files.count * files.events);
  await Promise.all([rm(folder, { recursive: true }), targets.drop()]);
  return sides;
}
