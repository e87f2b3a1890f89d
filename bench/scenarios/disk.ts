import { catalog } from '../../catalog/catalog.ts';
import { countFields, eventColumns } from '../../catalog/events.ts';
import { connect, select } from '../../clickhouse/client.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import type { Scenario } from '../harness/scenario.ts';

/** Parquet at this level takes 55 µs of CPU an event. */
const maxPacked = 1_000_000;

/** What an event takes on disk, with all rollups, against a Parquet file of the same events in the same order. */
export const disk: Scenario = async (bench) => {
  const { address, events } = await bench.store(bench.events);
  const store = connect(address);
  try {
    bench.progress('merging events');
    // Files that were kept may be of an earlier version; this packs them as a merge does.
    await store.command({ query: 'OPTIMIZE TABLE events FINAL', clickhouse_settings: { alter_sync: '2' } });
    const sizes = await select<{ name: string; bytes: string }>(
      store,
      `SELECT table AS name, sum(bytes_on_disk) AS bytes FROM system.parts
       WHERE database = currentDatabase() AND active GROUP BY table`,
    );
    const bytesOf = (tables: readonly string[]) =>
      sizes.filter(({ name }) => tables.includes(name)).reduce((sum, { bytes }) => sum + Number(bytes), 0) /
      events;
    bench.progress('writing Parquet');
    const columns = eventColumns.map((name) =>
      countFields.some((count) => count === name) ? `toUInt64(${name}) AS ${name}` : name,
    );
    const packed = Math.min(events, maxPacked);
    const { stream } = await store.exec({
      query: `SELECT ${columns.join(', ')} FROM events ORDER BY day, advertiser_id LIMIT ${packed} FORMAT Parquet`,
      clickhouse_settings: {
        output_format_parquet_compression_method: 'zstd',
        output_format_compression_level: '19',
      },
    });
    let parquet = 0;
    for await (const piece of stream) parquet += piece.length;
    const own = bytesOf(['events']);
    const all = own + bytesOf(rollups(catalog).map(({ table }) => table));
    return [
      {
        what: `${events / 1e6} million events on disk`,
        unit: 'bytes/event',
        sides: [
          { name: 'adtally, with rollups', samples: [all] },
          { name: 'adtally, events', samples: [own] },
          { name: 'Parquet, zstd -19', samples: [parquet / packed] },
        ],
        goals: [{ goal: 'disk', value: all / (parquet / packed) }],
      },
    ];
  } finally {
    await store.close();
  }
};
