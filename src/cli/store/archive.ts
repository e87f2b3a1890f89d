import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readlinkSync, statfsSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm, symlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { quoted } from '../../../clickhouse/quoted.ts';
import { usage } from '../command/arguments.ts';
import { config } from '../command/command.ts';
import { allSynced, synced } from '../command/synced.ts';
import { formatBytes } from './describe-status.ts';
import { s3Target } from './s3-target.ts';

/**
 * Where a backup is. The embedded ClickHouse may write and read in its own folder `backups` alone; a link there leads
 * to where the caller wants the backup, so that nothing is copied. What is being written lies in a folder of its own
 * beside its place until it is whole.
 */
export interface Archive {
  /** What ClickHouse is told: `File('…')` or `S3('…', …)`. */
  readonly target: string;
  /** For people: without secrets. */
  readonly name: string;
  /** Of the embedded ClickHouse: the file or folder, and the link that leads to it. */
  readonly outside?: { readonly path: string; readonly link: string };
}

const linkOfWritten = /^adtally-to-[0-9a-f]{12}$/;
const linkOfRead = /^adtally-from-[0-9a-f]{12}/;
const linksFolder = () => resolve(config().dataDir, 'store/backups');
/** What a backup is written into, beside its place. */
const folderOf = (link: string) => `.${link}`;

/** A place as a command takes it from any folder. */
export function givenAs(place: string): string {
  return config().clickhouse.url || s3Target(place, process.env) ? place : resolve(place);
}

/** @throws wrong usage when there is something already, or nothing can be written there */
export function archiveToWrite(place: string): Archive {
  const elsewhere = onServer(place);
  if (elsewhere) return elsewhere;
  const path = resolve(place);
  if (existsSync(path)) throw usage(`${path} is there already: give another name`);
  if (!existsSync(dirname(path))) throw usage(`${path}: there is no folder ${dirname(path)}`);
  return linkedTo(path, 'adtally-to');
}

/** @throws wrong usage when there is no such backup */
export function archiveToRead(place: string): Archive {
  const elsewhere = onServer(place);
  if (elsewhere) return elsewhere;
  const path = resolve(place);
  if (!existsSync(path)) throw usage(`${path}: there is no such backup`);
  return linkedTo(path, 'adtally-from');
}

/**
 * The link leads to a folder, because the name of the file tells ClickHouse how it is packed.
 * @throws wrong usage when the embedded ClickHouse does not know how
 */
function linkedTo(path: string, use: string): Archive {
  if (/\.zipx?$/.test(path)) throw usage(`${path}: the embedded ClickHouse knows no .zip, but .tar.zst`);
  const link = `${use}-${randomBytes(6).toString('hex')}`;
  return { target: `File(${quoted(`${link}/${basename(path)}`)})`, name: path, outside: { path, link } };
}

function onServer(place: string): Archive | undefined {
  const s3 = s3Target(place, process.env);
  const { url } = config().clickhouse;
  if (s3 && !url) {
    // It has no threads for that: "BackupsIOThreadPool is not initialized".
    throw usage('the embedded ClickHouse cannot write to S3: back up to a file, and copy that');
  }
  if (s3) return s3;
  if (!url) return undefined;
  // A path would be one of the server, outside of what it may write.
  if (!/^[\w.-]+$/.test(place)) {
    throw usage(
      `${place}: give a name in the folder backups of ClickHouse, such as 2026-11-20.tar.zst, or s3://…`,
    );
  }
  return { target: `File('${place}')`, name: `${place} in the folder backups of ClickHouse` };
}

/**
 * Opens the way for ClickHouse while `work` writes the backup; then syncs it, and gives it its name in one step. On a
 * server that is all up to ClickHouse.
 * @throws wrong usage, before any work, when nothing can be written there, or not as much
 */
export async function writing(
  { outside, name }: Archive,
  bytes: number,
  work: () => Promise<void>,
): Promise<void> {
  if (!outside) return work();
  const link = join(linksFolder(), outside.link);
  const folder = join(dirname(outside.path), folderOf(outside.link));
  // The link is first, because it is what a later command finds.
  mkdirSync(linksFolder(), { recursive: true, mode: 0o700 });
  await symlink(folder, link);
  try {
    await mkdir(folder, { mode: 0o700 }).catch((cause: Error) => {
      throw usage(`${name} cannot be written: ${cause.message}`);
    });
    const { bavail, bsize } = statfsSync(folder);
    // A packed backup may be half as large as the store, and not less.
    if (bavail * bsize < bytes / 2) {
      throw usage(
        `${name} cannot be written: there are ${formatBytes(bavail * bsize)} free, and the store has ${formatBytes(bytes)}`,
      );
    }
    await work();
    const written = join(folder, basename(outside.path));
    await allSynced(written);
    if (existsSync(outside.path)) throw usage(`${name} is there already: give another name`);
    await rename(written, outside.path);
    await synced(dirname(outside.path));
  } finally {
    await removeLink(link);
  }
}

/** Opens the way for ClickHouse while `work` reads the backup. */
export async function reading({ outside, name }: Archive, work: () => Promise<void>): Promise<void> {
  if (!outside) return work();
  const link = join(linksFolder(), outside.link);
  mkdirSync(linksFolder(), { recursive: true, mode: 0o700 });
  const { bavail, bsize } = statfsSync(config().dataDir);
  const bytes = await sizeOf(outside.path);
  if (bavail * bsize < bytes) {
    throw usage(
      `${name} cannot be restored: it has ${formatBytes(bytes)}, and DATA_DIR has ${formatBytes(bavail * bsize)} free; the old data stay until the new are whole`,
    );
  }
  await symlink(dirname(outside.path), link);
  try {
    await work();
  } finally {
    await removeLink(link);
  }
}

/** Links that commands have left which were killed, or work now. */
export function leftLinks(): string[] {
  const { clickhouse } = config();
  if (clickhouse.url || !existsSync(linksFolder())) return [];
  return readdirSync(linksFolder())
    .filter((link) => linkOfWritten.test(link) || linkOfRead.test(link))
    .map((link) => join(linksFolder(), link));
}

/** Removes a link, and what was being written behind it; a backup that was read stays. */
export async function removeLink(link: string): Promise<void> {
  const name = basename(link);
  if (linkOfWritten.test(name)) {
    const folder = readlinkSync(link);
    // Whatever else the link leads to is not ours.
    if (basename(folder) === folderOf(name)) await rm(folder, { recursive: true, force: true });
  }
  await rm(link, { force: true });
}

async function sizeOf(path: string): Promise<number> {
  const found = statSync(path);
  if (!found.isDirectory()) return found.size;
  const inside = await Promise.all((await readdir(path)).map((name) => sizeOf(join(path, name))));
  return inside.reduce((sum, bytes) => sum + bytes, 0);
}
