import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { catalog } from '../../catalog/catalog.ts';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { formats } from '../../ingest/formats/formats.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { compileReport } from '../../src/report/compile.ts';
import { planReport } from '../../src/report/plan.ts';
import { account, fillRollup, range, reportRows, writeEvents } from './input.ts';

/** The numbers of the capacity model in docs/scaling.md: `node --import tsx bench/cluster/capacity.ts --events 4000000` */
const { events } = new Command('capacity')
  .option('--events <n>', 'events to load', Number, 4_000_000)
  .parse()
  .opts<{ events: number }>();

const folder = await mkdtemp(join(tmpdir(), 'adtally-capacity-'));
const lease = await acquireEmbedded(join(folder, 'data'));
const address = { ...lease.address, database: 'capacity' };
const store = connect(address);
const reader = new Reader(address, 60_000);
try {
  await migrate(address);
  const file = join(folder, 'events.ndjson');
  await writeEvents(store, file, formats.ndjson.clickhouse, events);
  const before = process.cpuUsage();
  await loadEvents({
    store,
    input: new LocalFile(file),
    now: () => new Date(),
  });
  const { user, system } = process.cpuUsage(before);
  const inserts = await cpuSeconds(store, "query_kind = 'Insert' AND has(tables, 'capacity.events')");
  const sizes = await sizesAfterMerge(store);
  const millions = events / 1e6;
  await fillRollup(store);
  await sizesAfterMerge(store);
  const report = compileReport(
    catalog,
    planReport({ family: 'campaigns', dimensions: ['device', 'creative'], day: true }, account, range),
    { lastUpdateTime: '', unconfirmedDates: [] },
  );
  for (let n = 0; n < 5; n++) await text(await reader.stream(report, { queryId: `capacity-${n}` }));
  const reports = await cpuSeconds(store, "startsWith(query_id, 'capacity-')");
  console.table({
    'CPU of ClickHouse, s per million events': (inserts / millions).toFixed(2),
    'CPU of the loader, s per million events': ((user + system) / 1e6 / millions).toFixed(2),
    'events on disk, MB per million': (sizes.events / 1e6 / millions).toFixed(1),
    'rows of all rollups': sizes.rows,
    'rollups on disk, bytes per row': (sizes.rollups / sizes.rows).toFixed(1),
    'CPU of ClickHouse, s per million report rows': ((reports / 5 / reportRows) * 1e6).toFixed(2),
  });
} finally {
  reader.close();
  await store.close();
  await lease.release();
  await rm(folder, { recursive: true, force: true });
}

/** The CPU time of finished statements. */
async function cpuSeconds(on: Store, condition: string): Promise<number> {
  await on.command({ query: 'SYSTEM FLUSH LOGS' });
  const [row] = await select<{ seconds: number }>(
    on,
    `SELECT sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']) / 1e6 AS seconds
     FROM system.query_log WHERE type = 'QueryFinish' AND ${condition}`,
  );
  return row?.seconds ?? Number.NaN;
}

/** Bytes and rows after everything is merged, as on disk a day later. */
async function sizesAfterMerge(on: Store): Promise<{ events: number; rollups: number; rows: number }> {
  for (const table of ['events', ...rollups(catalog).map((rollup) => rollup.table)]) {
    await on.command({ query: `OPTIMIZE TABLE ${table} FINAL` });
  }
  const [row] = await select<{ events: number; rollups: number; rows: number }>(
    on,
    `SELECT toFloat64(sumIf(bytes_on_disk, table = 'events')) AS events,
            toFloat64(sumIf(bytes_on_disk, endsWith(table, '_date'))) AS rollups,
            toUInt32(sumIf(rows, endsWith(table, '_date'))) AS rows
     FROM system.parts WHERE active AND database = currentDatabase()`,
  );
  if (!row) throw new Error('ClickHouse returned no sizes');
  return row;
}
