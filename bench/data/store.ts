import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect, type Store, select } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { pollFor } from '../../clickhouse/poll.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { insertSingles, selectEvents, weekSlices } from './events.ts';
import { network } from './network.ts';

/** Events inserted at a time: about a gigabyte of memory. */
const sliceEvents = 2_000_000;

/** A store filled with generated events. */
export interface FilledStore {
  readonly address: Address;
  readonly events: number;
}

/**
 * The database with these events on that server. A complete one is reused; an incomplete one is created again.
 * Events are inserted into the events table, so the views fill the rollups.
 */
export async function openFilledStore(
  server: Address,
  { events, seed }: { events: number; seed: number },
  onProgress: (done: number) => void,
): Promise<FilledStore> {
  const address = { ...server, database: `bench_${events}_${seed}` };
  const root = connect({ ...server, database: 'default' });
  const store = connect(address);
  try {
    const marker = `SELECT count() AS complete FROM system.tables WHERE database = {database:String} AND name = 'bench_complete'`;
    const [found] = await select<{ complete: string }>(root, marker, { database: address.database });
    const complete = Number(found?.complete) > 0;
    if (!complete) await root.command({ query: `DROP DATABASE IF EXISTS ${address.database} SYNC` });
    // A database that was kept may be of an earlier version, and its dictionaries have the password of an earlier start.
    await migrate(address, undefined, { renewDictionaries: complete });
    if (!complete) {
      await writeNames(store);
      for (const { from, count } of weekSlices({ events, seed }, sliceEvents)) {
        await store.command({
          query: insertSingles(`(${selectEvents({ events, seed }, from, count)})`),
          // Few large parts, as the loader leaves them.
          clickhouse_settings: {
            max_insert_block_size: '1000000',
            min_insert_block_size_rows: '1000000',
            min_insert_block_size_bytes: '0',
            parallel_view_processing: 1,
            max_insert_threads: '1',
          },
        });
        onProgress(from + count);
      }
      await store.command({ query: 'CREATE TABLE bench_complete (n UInt8) ENGINE = Memory' });
    }
    await mergePastMonths(store);
    await untilMerged(store);
    return { address, events };
  } finally {
    await root.close();
    await store.close();
  }
}

export async function dropStore({ database, ...server }: Address): Promise<void> {
  const root = connect({ ...server, database: 'default' });
  await root.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` }).finally(() => root.close());
}

/** As a store does by itself some hours after a month was last loaded; the last month stays as the loads left it. */
async function mergePastMonths(store: Store): Promise<void> {
  const months = await select<{ table: string; month: string }>(
    store,
    `SELECT p.table AS table, p.partition AS month FROM system.parts AS p
     WHERE p.database = currentDatabase() AND p.active AND p.table IN {tables:Array(String)}
       AND p.partition < (SELECT max(partition) FROM system.parts WHERE database = currentDatabase() AND table = 'events')
     GROUP BY table, month HAVING count() > 1`,
    { tables: rollups(catalog).map(({ table }) => table) },
  );
  for (const { table, month } of months) {
    await store.command({ query: `OPTIMIZE TABLE ${table} PARTITION ${month} FINAL` });
  }
}

/** Merges would take CPU from what is measured. */
async function untilMerged(store: Store): Promise<void> {
  const idle = async () => {
    const [found] = await select<{ merges: string }>(
      store,
      'SELECT count() AS merges FROM system.merges WHERE database = currentDatabase()',
    );
    return Number(found?.merges) === 0 || undefined;
  };
  await pollFor(idle, { pollMs: 500, signal: AbortSignal.timeout(300_000) }).catch((cause: unknown) => {
    throw new Error('ClickHouse did not finish its merges within five minutes', { cause });
  });
}

/** Names that contain characters JSON has to escape and non-ASCII characters. */
async function writeNames(store: Store): Promise<void> {
  const { largeEntities, largeParts, smallAccounts, smallParts } = network;
  const all = (id: string, large: number, small: number) => `
    SELECT concat('${id}-0-', toString(number)) AS id, 0 AS account FROM numbers(${large})
    UNION ALL
    SELECT concat('${id}-', toString(1 + intDiv(number, ${small})), '-', toString(number % ${small})) AS id,
           1 + intDiv(number, ${small}) AS account FROM numbers(${smallAccounts * small})`;
  const lists = [
    [
      'campaigns',
      'campaign_id, name',
      'advertiser',
      'campaign',
      "'Campaign \"'",
      largeEntities,
      1,
      'campaign_names',
    ],
    ['ad_units', 'ad_unit_id, name', 'publisher', 'unit', "'Ad unit \"'", largeEntities, 1, 'ad_unit_names'],
    [
      'creatives',
      'creative_id, headline',
      'advertiser',
      'creative',
      "'Größer, schöner “'",
      largeEntities * largeParts,
      smallParts,
      'creative_headlines',
    ],
    [
      'sites',
      'site_id, name',
      'publisher',
      'site',
      "'Site “'",
      largeEntities * largeParts,
      smallParts,
      'site_names',
    ],
  ] as const;
  for (const [table, columns, account, id, text, large, small, dictionary] of lists) {
    await store.command({
      query: `INSERT INTO ${table} (account_id, ${columns}, version) SELECT concat('${account}-', toString(account)), id, concat(${text}, id, '"'), now64(9)
              FROM (${all(id, large, small)})`,
    });
    await store.command({ query: `SYSTEM RELOAD DICTIONARY ${dictionary}` });
  }
}
