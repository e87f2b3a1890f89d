import { catalog } from '../../catalog/catalog.ts';
import type { Address, Store } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { type DayRange, everyDay, verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { Load } from '../../ingest/load/load.ts';
import type { Config } from '../config.ts';

export interface MaintenanceFlags {
  readonly from?: string;
  readonly to?: string;
  readonly json?: boolean;
}

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** `migrate` of a server: returns the names of the migrations applied now. */
export function migrateServer(address: Address, { clickhouse, reportTimezone }: Config): Promise<string[]> {
  const options = { renewDictionaries: true };
  return clickhouse.cluster
    ? migrateCluster(address, clickhouse.cluster, reportTimezone, options)
    : migrate(address, reportTimezone, options);
}

/** `verify`: one line for each difference. Returns the exit code: 1 where rollups and events disagree. */
export async function runVerify(store: Store, flags: MaintenanceFlags): Promise<number> {
  const { differences, more } = await verifyRollups(store, catalog, rangeOf(flags));
  if (flags.json) process.stdout.write(`${JSON.stringify(differences)}\n`);
  else {
    for (const { table, account, day, measure, events, rollup } of differences) {
      process.stdout.write(
        `${table}\t${account}\t${day}\t${measure}: ${events} in events, ${rollup} in the rollup\n`,
      );
    }
  }
  say(
    differences.length === 0
      ? 'every rollup agrees with the raw events'
      : `${differences.length}${more ? ' and more' : ''} differences; adtally rebuild --from DAY --to DAY mends them`,
  );
  return differences.length === 0 ? 0 : 1;
}

/** `rebuild`: waits for loads that run, and loads that begin meanwhile wait for it. Returns the exit code. */
export async function runRebuild(store: Store, flags: MaintenanceFlags): Promise<number> {
  const { from, to } = rangeOf(flags);
  const built = await exclusively(store, `rollups ${from} to ${to}`, (load) =>
    rebuildRollups(
      store,
      catalog,
      { from, to },
      {
        onStep: ({ table, month, done, total }) => {
          if (process.stderr.isTTY) say(`${done}/${total} ${table} ${month}`);
        },
        beforeExchange: () => load.assertTurnHeld(),
      },
    ),
  );
  if (flags.json) process.stdout.write(`${JSON.stringify(built)}\n`);
  say(`${built.rollups} rollups rebuilt for ${built.months} ${built.months === 1 ? 'month' : 'months'}`);
  return 0;
}

/** Waits for loads that run; loads that begin meanwhile wait for it. It is in the load history as a rebuild. */
export async function exclusively<T>(
  store: Store,
  file: string,
  work: (load: Load) => Promise<T>,
): Promise<T> {
  const description = { kind: 'rebuild', file } as const;
  const load = await Load.begin(store, description, new Date(), {
    onWait: (other) => say(`waiting for load ${other}`),
  });
  try {
    const result = await work(load);
    await load.finish();
    return result;
  } catch (error) {
    await load.fail(error);
    throw error;
  }
}

function rangeOf({ from = everyDay.from, to = everyDay.to }: MaintenanceFlags): DayRange {
  return { from, to };
}
