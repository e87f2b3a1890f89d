import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { copyFile, link, lstat, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { isDynamicPattern } from 'tinyglobby';
import { type Input, versionOf } from '../../../ingest/input/input.ts';
import { InputError } from '../../../ingest/input/input-error.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { usage } from '../command/arguments.ts';
import { synced } from '../command/synced.ts';

/**
 * Checks where loaded files are to be moved.
 * @throws wrong usage for a folder that is not there or would be read again, and for what cannot be moved
 */
export async function requireMoveTarget(
  folder: string,
  args: readonly string[],
  files: readonly Input[],
): Promise<void> {
  const target = await realpath(folder).catch(() => undefined);
  if (target === undefined || !(await stat(target)).isDirectory())
    throw usage(`--move-to ${folder}: there is no such folder; make it first`);
  for (const { name } of files.filter((file) => !(file instanceof LocalFile)))
    throw usage(`--move-to: ${name === '-' ? 'standard input (-)' : name} cannot be moved`);
  const again = (arg: string) =>
    usage(
      `--move-to ${folder}: ${arg} reads that folder, so its files would be read again; name another folder`,
    );
  for (const arg of args.filter((arg) => isDynamicPattern(arg))) {
    if (await readsFolder(arg, target)) throw again(arg);
  }
  for (const arg of args) {
    if ((await stat(arg).catch(() => undefined))?.isFIFO())
      throw usage(`--move-to: ${arg} is a pipe and cannot be moved`);
  }
  const folders = new Map<string, string>();
  for (const input of files) {
    const file = input.name;
    folders.set(dirname(resolve(file)), file);
  }
  for (const [place, file] of folders) {
    if ((await realpath(place)) === target) throw again(args.includes(file) ? file : place);
  }
}

/** Whether a pattern can match a file of a folder: of patterns that lead through several folders anything below. */
async function readsFolder(pattern: string, target: string): Promise<boolean> {
  const pieces = pattern.split('/');
  const first = pieces.findIndex((piece) => isDynamicPattern(piece));
  const base = await realpath(
    resolve(pieces.slice(0, first).join('/') || (pattern.startsWith('/') ? '/' : '.')),
  ).catch(() => undefined);
  if (base === undefined) return false;
  const below = first < pieces.length - 1 || pattern.includes('**');
  return target === base || (below && target.startsWith(base.endsWith(sep) ? base : `${base}${sep}`));
}

/**
 * Moves a file into a folder and overwrites nothing. Where the same file is there already, also after a move that was
 * interrupted, the one here is removed; another file of that name makes `events.csv` come as `events.2.csv`.
 * @param version what it was before it was read
 * @returns false when it has changed since, and stays
 * @throws {InputError} that names the file
 */
export async function moveInto(folder: string, input: Input, version: string | undefined): Promise<boolean> {
  try {
    return await moved(folder, input, version);
  } catch (cause) {
    if (!(cause instanceof Error)) throw cause;
    throw new InputError(`${input.name}: is loaded, but cannot be moved: ${cause.message}`, { cause });
  }
}

async function moved(folder: string, input: Input, version: string | undefined): Promise<boolean> {
  if (versionOf(input) !== version) return false;
  const { name: file } = input;
  const name = basename(file);
  for (let n = 1; ; n++) {
    const target = join(folder, n === 1 ? name : numbered(name, n));
    const how = await place(file, target);
    if (how === 'renamed') return true;
    if (how === undefined && !(await sameContent(file, target))) continue;
    // Meanwhile somebody may have written to it, or put another file there. A link to it gives it another version, too.
    const isSame = how === 'linked' ? await isSameFile(file, target) : versionOf(input) === version;
    if (isSame) await rm(file);
    else if (how === 'copied') await rm(target);
    return isSame;
  }
}

function numbered(name: string, n: number): string {
  const dot = name.indexOf('.', 1);
  return dot < 0 ? `${name}.${n}` : `${name.slice(0, dot)}.${n}${name.slice(dot)}`;
}

/** Gives a file another name, if nothing has it. @returns how; undefined: something has it */
async function place(file: string, target: string): Promise<'linked' | 'copied' | 'renamed' | undefined> {
  try {
    // Unlike a rename it fails where the name is taken.
    await link(file, target);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST') return undefined;
    if (code === 'EXDEV') return copyTo(file, target);
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP' && code !== 'ENOSYS') throw error;
    // There are disks without links.
    if (!(await reserved(target))) return undefined;
    try {
      await rename(file, target);
    } catch (error) {
      await rm(target);
      throw error;
    }
    return 'renamed';
  }
  await synced(dirname(target));
  return 'linked';
}

/** Takes a name with an empty file, which is then replaced. @returns false where the name is taken */
async function reserved(target: string): Promise<boolean> {
  try {
    await (await open(target, 'wx')).close();
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** To another disk: the name is there when all of the file is. */
async function copyTo(file: string, target: string): Promise<'copied' | undefined> {
  if (await lstat(target).catch(() => undefined)) return undefined;
  const copy = join(dirname(target), `.${basename(target)}.${randomBytes(4).toString('hex')}`);
  try {
    await copyFile(file, copy);
    await synced(copy);
    return (await place(copy, target)) && 'copied';
  } finally {
    await rm(copy, { force: true });
  }
}

/** Whether two names are of one file. */
async function isSameFile(file: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([lstat(file), lstat(other)]);
  return a.dev === b.dev && a.ino === b.ino;
}

async function sameContent(file: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([stat(file), stat(other)]);
  if (!b.isFile() || a.size !== b.size) return false;
  if (a.dev === b.dev && a.ino === b.ino) return true;
  const theirs = createReadStream(other, { highWaterMark: 1 << 20 })[Symbol.asyncIterator]();
  try {
    for await (const ours of createReadStream(file, { highWaterMark: 1 << 20 })) {
      const { value, done } = await theirs.next();
      if (done || !ours.equals(value)) return false;
    }
    return true;
  } finally {
    await theirs.return?.();
  }
}
