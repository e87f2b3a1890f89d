import { join } from 'node:path';
import { connect } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { formats } from '../../ingest/input/file-format.ts';
import { maxFileEvents, writeEventFile } from '../data/files.ts';
import { transfer } from '../harness/http-client.ts';
import { runLoader } from '../harness/loader.ts';
import { median } from '../harness/measure.ts';
import { type Bench, largest, type Outcome, openService, type Scenario } from '../harness/scenario.ts';

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

async function loader(bench: Bench): Promise<Outcome> {
  const { server, seed, runs, quick, compiled, scratch } = bench;
  const events = Math.min(bench.events, maxFileEvents);
  bench.progress('loader on a large file');
  const address = { ...server, database: 'bench_memory' };
  const root = connect({ ...server, database: 'default' });
  const drop = () => root.command({ query: `DROP DATABASE IF EXISTS ${address.database} SYNC` });
  const sides: Outcome['sides'][number][] = [];
  try {
    for (const format of quick ? [formats.parquet] : [formats.ndjson, formats.csv, formats.parquet]) {
      const file = join(scratch, `large.${format.name}`);
      await writeEventFile(root, file, format, { events, seed });
      const samples: number[] = [];
      for (let run = 0; run < Math.max(1, Math.min(runs, 3)); run++) {
        await drop();
        await migrate(address);
        samples.push((await runLoader(compiled, address, file)).peakMemoryMb);
      }
      sides.push({ name: `adtally ingest, ${format.name}`, samples });
    }
    return { what: `loader, ${events / 1e6} million events`, unit: 'MB', sides };
  } finally {
    await drop();
    await root.close();
  }
}
