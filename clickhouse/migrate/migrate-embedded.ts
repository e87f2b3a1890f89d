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
  const renewDictionaries = !dictionariesCanRead(dataDir, address);
  const applied = await migrate(address, reportTimezone, { renewDictionaries });
  if (renewDictionaries) replaceFile(fileOf(dataDir, address), startOf(address));
  return applied;
}

/** Whether dictionaries were made since the engine was started. */
export function dictionariesCanRead(dataDir: string, address: Address): boolean {
  return readIfExists(fileOf(dataDir, address)) === startOf(address);
}

const fileOf = (dataDir: string, { database }: Address): string =>
  join(dataDir, `clickhouse.dictionaries.${database}`);

const startOf = ({ password }: Address): string => createHash('sha256').update(password).digest('hex');
