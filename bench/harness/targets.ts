import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect, type Store, select } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import type { Side } from './measure.ts';

/**
 * A new database for each run of each side of a comparison of loads. Those of earlier runs stay until `drop()`: for
 * minutes after thousands of files were deleted, ext4 looks at each of their inodes before it gives a file a new one,
 * which took up to a fifth of the CPU of the load that came next.
 */
export class Targets {
  readonly root: Store;
  readonly #server: Address;
  /** The latest of each side. */
  readonly #latest = new Map<string, Address>();
  readonly #created: Address[] = [];
  #runs = 0;

  constructor(server: Address) {
    this.#server = server;
    this.root = connect({ ...server, database: 'default' });
  }

  /** @param load returns the measurement */
  side(
    name: string,
    load: (address: Address) => Promise<number>,
    change?: (store: Store) => Promise<void>,
  ): Side {
    return {
      name,
      prepare: async () => {
        const address = this.#create(name);
        // Left there by a bench that was killed.
        await this.#drop(address);
        await migrate(address);
        if (!change) return;
        const store = connect(address);
        await change(store).finally(() => store.close());
      },
      run: () => load(this.#address(name)),
    };
  }

  /** The totals of every table, of rejected rows too. A load that is fast but loses a row must not be timed. */
  async totals(name: string): Promise<{ events: number; rejected: number; sums: unknown[] }> {
    const store = connect(this.#address(name));
    try {
      const [rows] = await select<{ events: number; rejected: number }>(
        store,
        'SELECT (SELECT count() FROM events) AS events, (SELECT count() FROM rejected_rows FINAL) AS rejected',
      );
      const sums: unknown[] = await select(
        store,
        `SELECT sum(ad_requests), sum(impressions), sum(referrals), sum(conversions), sum(spend), sum(revenue) FROM events`,
      );
      for (const { table, columns } of rollups(catalog)) {
        const summed = columns.filter(({ type }) => type.startsWith('SimpleAggregateFunction(sum'));
        sums.push(
          ...(await select(store, `SELECT ${summed.map(({ name }) => `sum(${name})`)} FROM ${table}`)),
        );
      }
      if (!rows) throw new Error('ClickHouse returned no counts');
      return { ...rows, sums };
    } finally {
      await store.close();
    }
  }

  /** Deletes the databases of all runs so far. */
  async drop(): Promise<void> {
    for (const address of this.#created.splice(0)) await this.#drop(address);
  }

  async close(): Promise<void> {
    await this.drop();
    await this.root.close();
  }

  #create(name: string): Address {
    const address = { ...this.#server, database: `bench_load_${this.#runs++}` };
    this.#latest.set(name, address);
    this.#created.push(address);
    return address;
  }

  #address(name: string): Address {
    const address = this.#latest.get(name);
    if (!address) throw new Error(`${name} has not been prepared`);
    return address;
  }

  async #drop({ database }: Address): Promise<void> {
    await this.root.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` });
  }
}
