import { Command, InvalidArgumentError } from 'commander';

export interface Options {
  /** Names of the scenarios to run, in this order. */
  readonly scenarios: readonly string[];
  readonly events: number;
  readonly seed: number;
  readonly runs: number;
  readonly quick: boolean;
  /** The size of files for the peak memory of the loader. */
  readonly bytes?: number;
  /** A folder in which the generated events are kept. */
  readonly data?: string;
  /** A file for all results. */
  readonly json?: string;
  readonly record: boolean;
}

/** The options of the command line. Ends the process with exit code 2 for a scenario that does not exist. */
export function parseOptions(scenarios: Readonly<Record<string, { readonly about: string }>>): Options {
  const program = new Command('bench')
    .description(
      'Measures on the ClickHouse of CLICKHOUSE_URL, or on an embedded one, and prints medians, spreads and ratios of the same runs.',
    )
    .argument(
      '[scenario...]',
      Object.entries(scenarios)
        .map(([name, { about }]) => `${name}: ${about}`)
        .join('\n'),
    )
    .option('--events <n>', 'events of the network (default: 1000000; with --quick 50000)', count)
    .option('--seed <n>', 'another seed gives another network of the same shape', count, 1)
    .option(
      '--runs <n>',
      'counted runs of each side, after one that does not count (default: 5; with --quick none)',
      count,
    )
    .option('--quick', 'as few and as small runs as possible: shows that it works, not how fast')
    .option('--bytes <n>', 'memory measures the loader on files of this size', count)
    .option('--data <folder>', 'keep the generated events there and reuse them')
    .option('--json <file>', 'write every measurement to this file')
    .option('--record', 'write results.json, results.md and the charts to bench/results')
    .parse();
  const { quick = false, record = false, ...flags } = program.opts<Flags>();
  const unknown = program.args.find((name) => !scenarios[name]);
  if (unknown !== undefined) program.error(`there is no scenario ${unknown}`, { exitCode: 2 });
  return {
    ...flags,
    scenarios: program.args.length > 0 ? program.args : Object.keys(scenarios),
    events: flags.events ?? (quick ? 50_000 : 1_000_000),
    runs: flags.runs ?? (quick ? 0 : 5),
    quick,
    record,
  };
}

interface Flags {
  events?: number;
  seed: number;
  runs?: number;
  bytes?: number;
  quick?: boolean;
  json?: string;
  data?: string;
  record?: boolean;
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('not a whole number above 0');
  return value;
}
