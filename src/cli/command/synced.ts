import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Brings a file to the disk, or the names in a folder. */
export async function synced(path: string): Promise<void> {
  const file = await open(path);
  await file.sync().finally(() => file.close());
}

/** Brings a file to the disk, or a folder with all it has. What goes from the folder meanwhile, as parts that ClickHouse has merged do, is left out. */
export async function allSynced(path: string): Promise<void> {
  if ((await lstat(path)).isDirectory()) {
    for (const name of await readdir(path)) await allSynced(join(path, name)).catch(unlessGone);
  }
  await synced(path);
}

function unlessGone(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
