import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect, type Store, select } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import type { Side } from './measure.ts';

/** A database for each side of a comparison of loads, created again before each run. */
export class Targets {
  readonly root: Store;
  readonly #server: Address;
  readonly #databases = new Map<string, Address>();

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
      run: () => load(address),
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
