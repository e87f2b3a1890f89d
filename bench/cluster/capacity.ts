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
import { plainReading } from '../../ingest/event/reading.ts';
import { formats } from '../../ingest/formats/formats.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { loadFiles } from '../../ingest/load/load-files.ts';
import { compileReport } from '../../src/report/compile.ts';
import { planReport } from '../../src/report/plan.ts';
import { account, fillRollup, range, reportRows, writeEvents } from './input.ts';

/** The numbers of the capacity model in docs/scaling.md, which says with how many events. */
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
    planReport(
      catalog,
      { family: 'campaigns', dimensions: ['device', 'creative'], day: true },
      account,
      range,
    ),
    { lastUpdateTime: '', unconfirmedDates: [] },
  );
  for (let n = 0; n < 5; n++) await text(await reader.stream(report, { queryId: `capacity-${n}` }));
  const reports = await cpuSeconds(store, "startsWith(query_id, 'capacity-')");
  const small = await loadSmallFiles();
  console.table({
    'CPU of ClickHouse, s per million events': (inserts / millions).toFixed(2),
    'CPU of the loader, s per million events': ((user + system) / 1e6 / millions).toFixed(2),
    'CPU of ClickHouse, ms more per file of 5,000 lines': (
      (small.clickhouse - (inserts / millions) * small.millions) *
      (1e3 / small.files)
    ).toFixed(1),
    'CPU of the loader, ms more per file of 5,000 lines': (
      (small.loader - ((user + system) / 1e6 / millions) * small.millions) *
      (1e3 / small.files)
    ).toFixed(1),
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

/** A million other events in files of 5,000 lines, loaded at once: the CPU seconds of all statements, and of the loader. */
async function loadSmallFiles() {
  const [files, lines] = [200, 5_000];
  const database = 'capacity_small';
  await migrate({ ...lease.address, database });
  const own = connect({ ...lease.address, database });
  const inputs: LocalFile[] = [];
  for (let n = 0; n < files; n++) {
    const file = join(folder, `small-${n}.ndjson`);
    await writeEvents(own, file, formats.ndjson.clickhouse, lines, n * lines);
    inputs.push(new LocalFile(file));
  }
  const statements = `current_database = '${database}' AND query_kind != 'Create'`;
  const earlier = await cpuSeconds(own, statements);
  const before = process.cpuUsage();
  await loadFiles(inputs, {
    store: own,
    readingOf: plainReading,
    now: () => new Date(),
  });
  const { user, system } = process.cpuUsage(before);
  const clickhouse = (await cpuSeconds(own, statements)) - earlier;
  await own.close();
  return { files, millions: (files * lines) / 1e6, clickhouse, loader: (user + system) / 1e6 };
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
