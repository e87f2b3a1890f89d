import { type Store, select } from '../../clickhouse/client.ts';
import { askFigure, openWork, type StoreSize, storeSize } from '../../ingest/history/figures.ts';
import { Refreshed } from '../http/refreshed.ts';
import type { Metrics } from './metrics.ts';

/** Statements over all accounts: often enough for an alert, too seldom to be felt. */
const everyMs = 60_000;

/** A metric, what it is, and how it is read. */
type Figure = readonly [name: string, help: string, read: (store: Store) => Promise<number>];

const sizeOf = (key: keyof StoreSize) => async (store: Store) => {
  const [size] = await select<StoreSize>(store, storeSize);
  return size?.[key] ?? Number.NaN;
};
const diskOf = (column: 'free_space' | 'total_space') => (store: Store) =>
  askFigure(store, `SELECT toFloat64(${column}) AS figure FROM system.disks WHERE name = 'default'`);

const figures: readonly Figure[] = [
  [
    'adtally_rejected_rows_open',
    'Rejected rows that are neither replayed nor dismissed.',
    (store) => askFigure(store, openWork.rejectedRows),
  ],
  [
    'adtally_chunks_in_doubt',
    'Chunks of interrupted loads, to be completed by loading their files again.',
    (store) => askFigure(store, openWork.chunksInDoubt),
  ],
  [
    'adtally_unconfirmed_days',
    'Days with unconfirmed money, each counted once for an account and family.',
    (store) => askFigure(store, openWork.unconfirmedDays),
  ],
  [
    'adtally_store_bytes',
    'What the tables take on the disk of the ClickHouse that is asked.',
    sizeOf('bytes'),
  ],
  ['adtally_store_parts', 'Parts of all tables there.', sizeOf('parts')],
  [
    'adtally_store_partition_parts_max',
    'Parts of the partition that has most; ClickHouse slows inserts down from 1,000 on.',
    sizeOf('most_parts'),
  ],
  [
    'adtally_store_disk_free_bytes',
    'Free space on the disk of the ClickHouse that is asked.',
    diskOf('free_space'),
  ],
  ['adtally_store_disk_bytes', 'The size of that disk.', diskOf('total_space')],
  [
    'adtally_clickhouse_memory_bytes',
    'Memory of the ClickHouse that is asked.',
    (store) =>
      askFigure(
        store,
        "SELECT toFloat64(value) AS figure FROM system.metrics WHERE metric = 'MemoryTracking'",
      ),
  ],
];

/** What the store as a whole has, asked once a minute. What ClickHouse does not tell is NaN and never a number. */
export class StoreFigures {
  readonly #values = new Map<string, number>();
  readonly #refreshed: Refreshed<void>;
  #stopped = false;

  constructor({ store, onError }: { readonly store: Store; readonly onError: (error: unknown) => void }) {
    const read = async () => {
      for (const [name, , ask] of figures) {
        if (this.#stopped) return;
        // Each by itself: an older user of ClickHouse may lack the grant for one of them.
        const value = await ask(store).catch((error: unknown) => {
          onError(error);
          return Number.NaN;
        });
        this.#values.set(name, value);
      }
    };
    this.#refreshed = new Refreshed(read, { everyMs, onError });
  }

  /** Asks for the first time; nobody waits for it. */
  start(): void {
    void this.#refreshed.start();
  }

  stop(): void {
    this.#stopped = true;
    this.#refreshed.stop();
  }

  addTo(metrics: Metrics): void {
    for (const [name, help] of figures) {
      metrics.gauge(name, help, () => this.#values.get(name) ?? Number.NaN);
    }
  }
}
