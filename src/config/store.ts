import type { Address } from '../../clickhouse/client.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import type { Config } from './config.ts';

/** The ClickHouse a command works on. Whoever opens it closes it. */
export interface OpenStore {
  /** May change everything. */
  readonly address: Address;
  /** May only read: the user of reports. */
  readonly reporter: Address;
  /** Resolves when an embedded ClickHouse has ended for good; never for a separate server. */
  readonly lost: Promise<void>;
  close(): Promise<void>;
}

/**
 * The server at `CLICKHOUSE_URL`, or else the embedded ClickHouse in `DATA_DIR`, started if it is not running. Either as
 * it is: no table is made or changed, and the database may be missing.
 */
export async function openStore(config: Config): Promise<OpenStore> {
  const { url, user, password, database } = config.clickhouse;
  if (url) {
    const address = { url, user, password, database };
    return { address, reporter: address, lost: new Promise(() => {}), close: async () => {} };
  }
  const lease = await acquireEmbedded(config.dataDir, database);
  return {
    address: { ...lease.address, database },
    reporter: { ...lease.reporter, database },
    lost: lease.lost,
    close: () => lease.release(),
  };
}
