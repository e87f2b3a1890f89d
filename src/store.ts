import type { Address } from '../clickhouse/client.ts';
import { acquireEmbedded } from '../clickhouse/embedded/embedded.ts';
import { migrateEmbedded } from '../clickhouse/migrate/migrate-embedded.ts';
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
 * The server at `CLICKHOUSE_URL` as it is, or else the embedded ClickHouse in `DATA_DIR`, started if it is not running
 * and migrated to this version.
 */
export async function openStore(config: Config): Promise<OpenStore> {
  const { url, user, password, database } = config.clickhouse;
  if (url) {
    const address = { url, user, password, database };
    return { address, reporter: address, lost: new Promise(() => {}), close: async () => {} };
  }
  const lease = await acquireEmbedded(config.dataDir, { database });
  try {
    const address = { ...lease.address, database };
    await migrateEmbedded(config.dataDir, address, config.reportTimezone);
    return {
      address,
      reporter: { ...lease.reporter, database },
      lost: lease.lost,
      close: () => lease.release(),
    };
  } catch (error) {
    await lease.release();
    throw error;
  }
}

/** The ClickHouse of a command that brings the database itself: as it is, whether or not the database is there. */
export async function openServer(config: Config): Promise<Pick<OpenStore, 'address' | 'close'>> {
  const { url, user, password, database } = config.clickhouse;
  if (url) return { address: { url, user, password, database: 'default' }, close: async () => {} };
  const lease = await acquireEmbedded(config.dataDir, { database });
  return { address: { ...lease.address, database: 'default' }, close: () => lease.release() };
}
