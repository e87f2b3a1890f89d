import { type Store, select } from '../../clickhouse/client.ts';
import { askFigure, openWork, type StoreSize, storeSize } from '../../ingest/history/figures.ts';
import { Refreshed } from '../http/refreshed.ts';
import type { Metrics } from './metrics.ts';

/** Statements over all accounts: often enough for an alert, too seldom to be felt. */
const everyMs = 60_000;

/** Metrics with what each is, and how they are read: together, so that they are of one moment. */
interface Figures {
  readonly metrics: readonly (readonly [name: string, help: string])[];
  /** Their values, in the same order. */
  readonly read: (store: Store) => Promise<readonly number[]>;
}

const asked = (statement: string) => async (store: Store) => [await askFigure(store, statement)];

async function sizes(store: Store): Promise<readonly number[]> {
  const [size] = await select<StoreSize>(store, storeSize);
  return size ? [size.bytes, size.parts, size.most_parts] : [];
}

async function disk(store: Store): Promise<readonly number[]> {
  const [found] = await select<{ free: number; total: number }>(
    store,
    "SELECT toFloat64(free_space) AS free, toFloat64(total_space) AS total FROM system.disks WHERE name = 'default'",
  );
  return found ? [found.free, found.total] : [];
}

const figures: readonly Figures[] = [
  {
    metrics: [['adtally_rejected_rows_open', 'Rejected rows that are neither replayed nor dismissed.']],
    read: asked(openWork.rejectedRows),
  },
  {
    metrics: [
      [
        'adtally_chunks_in_doubt',
        'Chunks of interrupted loads, to be completed by loading their files again.',
      ],
    ],
    read: asked(openWork.chunksInDoubt),
  },
  {
    metrics: [
      [
        'adtally_unconfirmed_days',
        'Days with unconfirmed money, each counted once for an account and family.',
      ],
    ],
    read: asked(openWork.unconfirmedDays),
  },
  {
    metrics: [
      ['adtally_store_bytes', 'What the tables take on the disk of the ClickHouse that is asked.'],
      ['adtally_store_parts', 'Parts of all tables there.'],
      [
        'adtally_store_partition_parts_max',
        'Parts of the partition that has most; ClickHouse slows inserts down from 1,000 on.',
      ],
    ],
    read: sizes,
  },
  {
    metrics: [
      ['adtally_store_disk_free_bytes', 'Free space on the disk of the ClickHouse that is asked.'],
      ['adtally_store_disk_bytes', 'The size of that disk.'],
    ],
    read: disk,
  },
  {
    metrics: [['adtally_clickhouse_memory_bytes', 'Memory of the ClickHouse that is asked.']],
    read: asked("SELECT toFloat64(value) AS figure FROM system.metrics WHERE metric = 'MemoryTracking'"),
  },
];

/** What the store as a whole has, asked once a minute. What ClickHouse does not tell is NaN and never a number. */
export class StoreFigures {
  readonly #values = new Map<string, number>();
  readonly #refreshed: Refreshed<void>;
  #stopped = false;

  constructor({ store, onError }: { readonly store: Store; readonly onError: (error: unknown) => void }) {
    const read = async () => {
      for (const { metrics, read: readTogether } of figures) {
        if (this.#stopped) return;
        // Each by itself: an older user of ClickHouse may lack the grant for one of them.
        const values = await readTogether(store).catch((error: unknown) => {
          onError(error);
          return [];
        });
        for (const [n, [name]] of metrics.entries()) this.#values.set(name, values[n] ?? Number.NaN);
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
    for (const [name, help] of figures.flatMap((group) => group.metrics)) {
      metrics.gauge(name, help, () => this.#values.get(name) ?? Number.NaN);
    }
  }
}
