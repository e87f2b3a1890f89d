import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { acquireEmbedded } from '../clickhouse/embedded/embedded.ts';
import { migrate } from '../clickhouse/migrate.ts';
import { edge } from './edge.ts';
import { ingest } from './ingest.ts';
import { type Comparison, median } from './measure.ts';

const scenarios = {
  edge: { about: 'the largest report against ClickHouse asked directly', run: edge },
  ingest: { about: 'the loader against one plain INSERT', run: ingest },
};

const program = new Command('bench')
  .description('Runs on a ClickHouse of its own and prints ratios; below 1 adtally is faster.')
  .argument(
    '[scenario...]',
    Object.entries(scenarios)
      .map(([name, { about }]) => `${name}: ${about}`)
      .join('; '),
  )
  .option('--events <n>', 'events to load', Number, 2_000_000)
  .option('--runs <n>', 'counted runs of each side', Number, 5)
  .option('--json <file>', 'write all samples')
  .parse();
const { events, runs, json } = program.opts<{ events: number; runs: number; json?: string }>();
const wanted = program.args.length > 0 ? program.args : Object.keys(scenarios);

const dataDir = await mkdtemp(join(tmpdir(), 'adtally-bench-store-'));
const lease = await acquireEmbedded(dataDir);
const results: Comparison[] = [];
try {
  const address = { url: lease.url, user: 'default', password: '', database: 'bench' };
  await migrate(address);
  if (wanted.includes('edge')) results.push(...(await edge(address, runs)));
  if (wanted.includes('ingest')) results.push(...(await ingest(address, events, runs)));
} finally {
  await lease.release();
  await rm(dataDir, { recursive: true, force: true });
}
console.table(
  results.map(({ name, ours, theirs, ratio }) => ({
    what: name,
    'adtally, s': median(ours).toFixed(3),
    'directly, s': median(theirs).toFixed(3),
    'time ratio': ratio.toFixed(2),
    'times as fast': (1 / ratio).toFixed(2),
  })),
);
if (json !== undefined) await writeFile(json, `${JSON.stringify(results, null, 2)}\n`);
