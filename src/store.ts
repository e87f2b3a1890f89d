import type { Address } from '../clickhouse/client.ts';
import { acquireEmbedded } from '../clickhouse/embedded/embedded.ts';
import { migrate } from '../clickhouse/migrate/migrate.ts';
import type { Config } from './config.ts';

/** The store a command works on. Whoever opens it closes it. */
export interface OpenStore {
  /** May change everything. */
  readonly address: Address;
  /** May only read: what reports are asked through. */
  readonly reporter: Address;
  /** Resolves when an embedded server is gone for good; never for a server of its own. */
  readonly lost: Promise<void>;
  close(): Promise<void>;
}

/**
 * The server of `CLICKHOUSE_URL` as it is, or else the embedded one of `DATA_DIR`, started if it does not run
 * yet and brought up to this version.
 */
export async function openStore(config: Config): Promise<OpenStore> {
  const { url, user, password, database } = config.clickhouse;
  if (url) {
    const address = { url, user, password, database };
    return { address, reporter: address, lost: new Promise(() => {}), close: async () => {} };
  }
  const lease = await acquireEmbedded(config.dataDir);
  try {
    const address = { url: lease.url, user: 'default', password: '', database };
    await migrate(address, config.reportTimezone);
    return {
      address,
      reporter: { ...address, user: 'reporter' },
      lost: lease.lost,
      close: () => lease.release(),
    };
  } catch (error) {
    await lease.release();
    throw error;
  }
}
