import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { globSync } from 'tinyglobby';

/**
 * Removes the files of mutations whose text has no end, with which ClickHouse does not start. On a full disk it takes an `ALTER
 * TABLE … DELETE`, writes an empty file for it, and reports no failure (tried with 26.7.2.1). Nothing is lost: a command
 * waits until its deletion is done, and one that has not lived to see it does it again.
 * @returns their paths
 */
export function removeCutMutations(dataDir: string): string[] {
  const tables = join(dataDir, 'store/store');
  const files = globSync('*/*/mutation_*.txt', { cwd: tables, absolute: true });
  const cut = files.filter((file) => !readFileSync(file, 'utf8').endsWith('\n'));
  for (const file of cut) rmSync(file);
  return cut;
}
