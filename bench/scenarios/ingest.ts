import assert from 'node:assert/strict';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect, type Store, select } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { eventFields } from '../../ingest/event/event-insert.ts';
import { type Format, formats } from '../../ingest/input/file-format.ts';
import { maxFileEvents, writeEventFile } from '../data/files.ts';
import { plainInsert, runLoader } from '../harness/loader.ts';
import { ratio, runInTurn, type Side } from '../harness/measure.ts';
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts';
import type { GoalName } from '../report/goals.ts';

/** The largest number of events in files that compare settings of the loader. */
const maxSettingsEvents = 1_000_000;

/** The loader as a command against one plain INSERT of the same file, and what its settings cost. */
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
    return [...outcomes, ...(await settings(bench, targets)), await rejectedRows(bench, targets)];
  } finally {
    await targets.close();
  }
};

async function againstInsert(
  bench: Bench,
  targets: Targets,
  format: Format,
  goal: GoalName,
): Promise<Outcome> {
  const { seed, compiled, scratch } = bench;
  const events = Math.min(bench.events, maxFileEvents);
  bench.progress(`${events} events, ${format.name}`);
  const file = join(scratch, `events.${format.name}`);
  await writeEventFile(targets.root, file, format, { events, seed });
  const ours = targets.side('adtally ingest', events, (address) => runLoader(compiled, address, file));
  const insert = `INSERT INTO events (${eventFields.join(', ')}) FORMAT ${format.clickhouse}`;
  const theirs = targets.side('one plain INSERT', events, async (address) => ({
    seconds: await plainInsert(address, file, insert),
  }));
  const sides = await runInTurn([ours, theirs], bench.runs, async () =>
    assert.deepEqual(await targets.totals(ours.name), await targets.totals(theirs.name)),
  );
  const value = ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median;
  const { size } = await stat(file);
  await rm(file);
  return {
    what: `${events / 1e6} million events, ${format.name}`,
    unit: 'events/s',
    sides,
    facts: { megabytes: size / 1e6 },
    goals: [{ goal, value }],
    chart: 'ingest',
  };
}

/** Chunk sizes, and the cost of rollups, of exactly-once and of --dedupe. */
async function settings(bench: Bench, targets: Targets): Promise<Outcome[]> {
  const { compiled, seed } = bench;
  const events = Math.min(bench.events, maxSettingsEvents);
  const file = join(bench.scratch, 'settings.ndjson');
  await writeEventFile(targets.root, file, formats.ndjson, { events, seed });
  const side = (name: string, flags: string[] = [], change?: (store: Store) => Promise<void>) =>
    targets.side(name, events, (address) => runLoader(compiled, address, file, flags), change);
  const tables = ['events', ...rollups(catalog).map(({ table }) => table)];
  const groups: Record<string, Side[]> = {
    'chunk size': (bench.quick ? [1] : [8, 32, 128, 512]).map((mb) =>
      side(`chunks of ${mb} MiB`, ['--chunk-bytes', `${mb << 20}`]),
    ),
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
  }
  await rm(file);
  return outcomes;
}

async function rejectedRows(bench: Bench, targets: Targets): Promise<Outcome> {
  const { compiled, seed } = bench;
  const events = Math.min(bench.events, maxSettingsEvents);
  bench.progress('rejected rows');
  const sides: Side[] = [];
  const shares = [
    ['none', 0],
    ['0.1 %', 1000],
    ['1 %', 100],
  ] as const;
  for (const [name, badEvery] of bench.quick ? shares.slice(-1) : shares) {
    const file = join(bench.scratch, `rejects-${badEvery}.csv`);
    await writeEventFile(targets.root, file, formats.csv, { events, seed, ...(badEvery && { badEvery }) });
    sides.push(targets.side(`rejected: ${name}`, events, (address) => runLoader(compiled, address, file)));
  }
  return {
    what: `${events / 1e6} million events, csv: rejected rows`,
    unit: 'events/s',
    sides: await runInTurn(sides, bench.runs),
  };
}

/** A database for each side, created again before each run. */
class Targets {
  readonly root: Store;
  readonly #server: Address;
  readonly #databases = new Map<string, Address>();

  constructor(server: Address) {
    this.#server = server;
    this.root = connect({ ...server, database: 'default' });
  }

  side(
    name: string,
    events: number,
    load: (address: Address) => Promise<{ readonly seconds: number }>,
    change?: (store: Store) => Promise<void>,
  ): Side {
    const address = this.#address(name);
    return {
      name,
      prepare: async () => {
        await this.#drop(address);
        await migrate(address);
        if (!change) return;
        const store = connect(address);
        await change(store).finally(() => store.close());
      },
      run: async () => events / (await load(address)).seconds,
    };
  }

  /** The totals of every table. A load that is fast but loses a row must not be timed. */
  async totals(name: string): Promise<unknown[]> {
    const store = connect(this.#address(name));
    try {
      const found = [
        await select(
          store,
          'SELECT count() AS events, sum(spend) AS spend, sum(revenue) AS revenue FROM events',
        ),
      ];
      for (const { table } of rollups(catalog)) {
        found.push(
          await select(
            store,
            `SELECT sum(impressions) AS impressions, sum(referrals) AS referrals FROM ${table}`,
          ),
        );
      }
      return found;
    } finally {
      await store.close();
    }
  }

  async close(): Promise<void> {
    for (const address of this.#databases.values()) await this.#drop(address);
    await this.root.close();
  }

  #address(name: string): Address {
    const known = this.#databases.get(name);
    const address = known ?? { ...this.#server, database: `bench_load_${this.#databases.size}` };
    this.#databases.set(name, address);
    return address;
  }

  async #drop({ database }: Address): Promise<void> {
    await this.root.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` });
  }
}
