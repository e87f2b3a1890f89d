import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import type { Address } from '../clickhouse/client.ts';
import { acquireEmbedded } from '../clickhouse/embedded/embedded.ts';
import { loadConfig } from '../src/config.ts';
import { dropStore, type Filled, filledStore } from './data/store.ts';
import { closeAll, opened } from './harness/cleanup.ts';
import { surroundings } from './harness/machine.ts';
import { compile } from './harness/processes.ts';
import { type Bench, type ChartName, charts, type Scenario } from './harness/scenario.ts';
import { barChart } from './report/chart.ts';
import {
  aligned,
  collect,
  goalTable,
  markdown,
  type Results,
  type ScenarioResult,
  table,
} from './report/tables.ts';
import { edge } from './scenarios/edge.ts';
import { ingest } from './scenarios/ingest.ts';
import { memory } from './scenarios/memory.ts';
import { comparePeers } from './scenarios/peers.ts';
import { reports } from './scenarios/reports.ts';
import { rollups } from './scenarios/rollups.ts';
import { scale } from './scenarios/scale.ts';

const scenarios: Readonly<Record<string, { about: string; run: Scenario }>> = {
  edge: { about: 'the largest and the smallest report against ClickHouse asked directly', run: edge },
  peers: { about: 'a hand-written Node API, hypequery, DuckDB, PostgreSQL', run: comparePeers },
  reports: { about: 'every endpoint, 1, 30 and 365 days, small and large account', run: reports },
  rollups: { about: 'rollups against raw events', run: rollups },
  scale: { about: 'the same reports at a hundredth, a tenth and all of the events', run: scale },
  ingest: { about: 'the loader against one plain INSERT, and what its settings cost', run: ingest },
  memory: { about: 'of the service and of the loader', run: memory },
};

const count = (text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('not a whole number above 0');
  return value;
};

interface Flags {
  events?: number;
  seed: number;
  runs?: number;
  quick?: boolean;
  json?: string;
  data?: string;
  record?: boolean;
}

const program = new Command('bench')
  .description(
    'Measures on the ClickHouse of CLICKHOUSE_URL, or on one of its own, and prints medians, spreads and ratios of the same runs.',
  )
  .argument(
    '[scenario...]',
    Object.entries(scenarios)
      .map(([name, { about }]) => `${name}: ${about}`)
      .join('\n'),
  )
  .option('--events <n>', 'events of the network (default: 1000000; with --quick 50000)', count)
  .option('--seed <n>', 'another seed is another network of the same shape', count, 1)
  .option(
    '--runs <n>',
    'counted runs of each side, after one that does not count (default: 5; with --quick none)',
    count,
  )
  .option('--quick', 'as few and as small runs as possible: shows that it works, not how fast')
  .option('--data <folder>', 'keep the generated events there and find them again')
  .option('--json <file>', 'write everything that was measured')
  .option('--record', 'write results.json, results.md and the charts to bench/results')
  .parse();
const { seed, quick = false, json, data, record = false, ...flags } = program.opts<Flags>();
const options = {
  events: flags.events ?? (quick ? 50_000 : 1_000_000),
  seed,
  runs: flags.runs ?? (quick ? 0 : 5),
};
const wanted = program.args.length > 0 ? program.args : Object.keys(scenarios);
for (const name of wanted)
  if (!scenarios[name]) program.error(`there is no scenario ${name}`, { exitCode: 2 });

const scratch = await mkdtemp(join(tmpdir(), 'adtally-bench-'));
const say = (what: string) => process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${what}` : `${what}\n`);
const results: ScenarioResult[] = [];
opened(() => rm(scratch, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void closeAll().finally(() => process.exit(1)));
}
try {
  say('compiling');
  const compiled = await compile();
  say('starting ClickHouse');
  const server = await openServer();
  const around = await surroundings(server);
  const stores = new Map<number, Promise<Filled>>();
  for (const name of wanted) {
    const missing: string[] = [];
    const bench: Bench = {
      ...options,
      server,
      compiled,
      scratch,
      quick,
      loadSeconds: quick ? 0.1 : 2,
      store: (events) => {
        const known = stores.get(events);
        const filled =
          known ??
          filledStore(server, { events, seed }, (done) => say(`generated ${done} of ${events} events`));
        stores.set(events, filled);
        if (!known && data === undefined) opened(async () => dropStore((await filled).address));
        return filled;
      },
      say: (what) => say(`${name}: ${what}`),
      miss: (why) => missing.push(`not run: ${why}`),
      fail: (what, error) => {
        process.exitCode = 1;
        missing.push(`failed: ${what}: ${error instanceof Error ? error.message : error}`);
      },
    };
    const outcomes = await scenarios[name]?.run(bench).catch((error: unknown) => bench.fail(name, error));
    const result = { scenario: name, outcomes: outcomes ?? [], missing };
    results.push(result);
    if (process.stderr.isTTY) say('');
    console.log(`\n${name}`);
    console.log(aligned(table(result)));
    for (const why of missing) console.log(why);
    // After each: the next may take an hour.
    const all = collect(around, options, results);
    if (json !== undefined) await writeFile(json, `${JSON.stringify(all, null, 2)}\n`);
    if (record) await writeRecord(all);
  }
  const { goals } = collect(around, options, results);
  if (goals.length > 0) {
    console.log(`\ngoals, set for 10 million events or more; here ${options.events / 1e6} million`);
    console.log(aligned(goalTable(goals)));
  }
} finally {
  await closeAll();
}

/** The server of CLICKHOUSE_URL, or an embedded one of its own. */
async function openServer(): Promise<Address> {
  const { url, user, password } = loadConfig(process.env).clickhouse;
  if (url) return { url, user, password, database: 'default' };
  const lease = await acquireEmbedded(data ?? join(scratch, 'store'));
  opened(() => lease.release());
  return { url: lease.url, user: 'default', password: '', database: 'default' };
}

async function writeRecord(all: Results): Promise<void> {
  const folder = fileURLToPath(new URL('results/', import.meta.url));
  await mkdir(folder, { recursive: true });
  await writeFile(`${folder}results.json`, `${JSON.stringify(all)}\n`);
  const { machine, versions, commit, at } = all;
  const facts = Object.entries({ ...machine, ...versions, ...options, commit, at });
  const lines = [
    '# Results',
    facts.map(([name, value]) => `${name}: ${value}`).join('; '),
    markdown(goalTable(all.goals)),
    ...all.scenarios.flatMap((result) => [
      `## ${result.scenario}`,
      markdown(table(result)),
      ...result.missing,
    ]),
  ];
  await writeFile(`${folder}results.md`, `${lines.join('\n\n')}\n`);
  const outcomes = all.scenarios.flatMap((result) => result.outcomes);
  for (const [name, title] of Object.entries(charts) as [ChartName, string][]) {
    const shown = outcomes.filter(({ chart }) => chart === name);
    if (shown.length > 0) await writeFile(`${folder}${name}.svg`, barChart(title, shown));
  }
}
