import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { replay } from '../../ingest/replay/replay.ts';
import { correctedExport } from './corrections.ts';
import {
  type duckDbTypes,
  type Packing,
  packed,
  parquetByClickHouse,
  parquetByDuckDb,
  type TextFormat,
  textFile,
} from './event-files.ts';
import { useLoader } from './loader.ts';
import { testSeed as seed } from './random.ts';
import { differences } from './recount.ts';
import type { TestStore } from './store.ts';
import { type WrittenEvent, writtenEvents } from './written-events.ts';

export type MatrixCase =
  | readonly [format: TextFormat, packing: Packing, source: 'file' | 'stdin']
  | readonly [format: 'parquet', types: keyof typeof duckDbTypes | 'ClickHouse', source: 'file'];

/** Every format in every packing from every source. */
export const wholeMatrix: readonly MatrixCase[] = [
  ...(['ndjson', 'csv', 'tsv'] as const).flatMap((format) =>
    (['none', 'gz', 'zst', 'br'] as const).flatMap((packing) =>
      // Nothing but its name tells brotli, and standard input has none.
      (packing === 'br' ? (['file'] as const) : (['file', 'stdin'] as const)).map(
        (source) => [format, packing, source] as const,
      ),
    ),
  ),
  ...(['text', 'whole', 'floating', 'days', 'ClickHouse'] as const).map(
    (types) => ['parquet', types, 'file'] as const,
  ),
];

/** The same events in each of these forms come to what a recount of them says: clean, with bad rows, and replayed. */
export function loadsAlike(db: TestStore, cases: readonly MatrixCase[], count: number): void {
  const { own, run } = useLoader(db);

  /** Loads records; returns the load and how many rows were rejected. */
  async function loaded([format, kind, source]: MatrixCase, name: string, events: readonly WrittenEvent[]) {
    const endings: Readonly<Record<string, string>> = { gz: '.gz', zst: '.zst', br: '.br' };
    const file = join(own.home, `${name}.${format}${endings[kind] ?? ''}`);
    if (format !== 'parquet') {
      await writeFile(file, await packed(db.address, kind, textFile(format, events, seed)));
    } else if (kind === 'ClickHouse') await writeFile(file, await parquetByClickHouse(db.store, events));
    else await parquetByDuckDb(file, events, kind);
    const loadFile = async () => {
      const options = { chunkBytes: 1 << 20, now: () => new Date() };
      const result = await loadEvents({ store: db.store, input: new LocalFile(file), ...options });
      return { load: result.loadId ?? '', ...result };
    };
    const loadInput = async () => {
      const input = await readFile(file);
      const { stdout, stderr } = await run(['ingest', 'events', '--json', '--format', format, '-'], input);
      expect(stdout, stderr).not.toBe('');
      const { loads, rows, rejected_rows, repeated_rows } = JSON.parse(stdout);
      return { load: String(loads[0]), rows, rejectedRows: rejected_rows, repeatedRows: repeated_rows };
    };
    return { ...(await (source === 'file' ? loadFile() : loadInput())), again: loadFile };
  }

  test.each(cases.map((each) => [each.join(' '), each] as const))(`%s (seed ${seed})`, async (what, each) => {
    const tag = `${what}/`;
    const options = { seed, count, daysOnly: each[1] === 'days' };
    const clean = writtenEvents({ ...options, prefix: `clean ${tag}`, bad: 0 });
    const { rows, rejectedRows, load, again } = await loaded(each, 'clean', clean);
    expect(await rejected(load), 'of good events').toEqual([]);
    expect({ rows, rejectedRows }).toEqual({ rows: count, rejectedRows: 0 });
    const counted = clean.map((event) => event.counted);
    expect(await differences(db.store, `clean ${tag}`, counted)).toEqual([]);
    expect(await again()).toMatchObject({ rows: 0, repeatedRows: count });

    const mixed = writtenEvents({ ...options, prefix: `mixed ${tag}`, bad: 0.2 });
    const wrong = mixed.filter((event) => event.wrong);
    const withBad = await loaded(each, 'mixed', mixed);
    expect(await rejected(withBad.load)).toEqual(
      wrong.map(({ counted: { event_id }, wrong: at }) => `${event_id} ${at?.field}`).sort(),
    );
    expect(withBad).toMatchObject({ rows: count - wrong.length, rejectedRows: wrong.length });
    const good = mixed.filter((event) => !event.wrong).map((event) => event.counted);
    expect(await differences(db.store, `mixed ${tag}`, good)).toEqual([]);

    const corrected = await correctedExport(
      db.store,
      withBad.load,
      wrong,
      own.home,
      seed % 2 ? 'csv' : 'ndjson',
    );
    const replayed = await replay(db.store, withBad.load, new LocalFile(corrected), () => new Date());
    expect(replayed).toMatchObject({ replayed: wrong.length, faulty: [], skipped: 0 });
    const all = mixed.map((event) => event.counted);
    expect(await differences(db.store, `mixed ${tag}`, all)).toEqual([]);
  });

  async function rejected(load: string): Promise<string[]> {
    const rows = await select<{ row: string }>(
      db.store,
      `SELECT concat(fields['event_id'], ' ', arrayStringConcat(arrayMap(fault -> fault.field, faults), ' ')) AS row
       FROM rejected_rows FINAL WHERE load_id = {load:String}`,
      { load },
    );
    return rows.map(({ row }) => row).sort();
  }
}
