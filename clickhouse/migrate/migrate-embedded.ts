import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Address } from '../client.ts';
import { readIfExists, replaceFile } from '../embedded/state.ts';
import { migrate } from './migrate.ts';

/**
 * Migrates a database of the embedded ClickHouse in `dataDir` as `migrate` does. Its dictionaries contain the password
 * they read with, and each start has another one: those of an earlier start are created again. A file tells which
 * start they are of, because ClickHouse shows no password.
 */
export async function migrateEmbedded(
  dataDir: string,
  address: Address,
  reportTimezone?: string,
): Promise<string[]> {
  const file = join(dataDir, `clickhouse.dictionaries.${address.database}`);
  const start = createHash('sha256').update(address.password).digest('hex');
  const renewDictionaries = readIfExists(file) !== start;
  const applied = await migrate(address, reportTimezone, { renewDictionaries });
  if (renewDictionaries) replaceFile(file, start);
  return applied;
}
