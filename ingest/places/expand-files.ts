import nodeFs, { type Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, isAbsolute, join, resolve } from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import type { Input } from '../input/input.ts';
import { fileError, InputError, isOfNothing, naming } from '../input/input-error.ts';
import { LocalFile } from '../input/local-file.ts';
import { standardInput } from '../input/standard-input.ts';
import { objectAddress } from '../objects/address.ts';
import type { ObjectStores } from '../objects/object-stores.ts';

export interface ExpandOptions {
  /** Arguments that stand for nothing are no error, nor are links to nothing. */
  readonly mayBeEmpty?: boolean;
  /** Nor are names of which nothing is there: not every day that a date stands for has its file. */
  readonly mayBeMissing?: boolean;
  /** Called for each argument that fails; the others are expanded. Absent: the first such failure is thrown. */
  readonly onFailed?: ((error: Error) => void) | undefined;
  readonly signal?: AbortSignal;
}

/**
 * The inputs that arguments stand for: a file itself, `-` for standard input, every file of a folder (without hidden
 * files and folders in it), every match of a pattern; the same of objects, whose addresses begin with `s3://`, `gs://` or
 * `az://`. Each once; those of a folder or pattern in the order of their names.
 * @throws {InputError} for an argument that stands for nothing
 */
export async function expandFiles(
  args: readonly string[],
  stores: ObjectStores,
  options: ExpandOptions = {},
): Promise<Input[]> {
  const inputs = new Map<string, Input>();
  for (const arg of args) {
    try {
      const address = objectAddress(arg);
      const found = address ? await stores.expand(arg, address, options.signal) : await expand(arg, options);
      if (found.length === 0 && !options.mayBeEmpty) throw new InputError(`${arg}: no file there`);
      for (const input of found) if (!inputs.has(input.name)) inputs.set(input.name, input);
    } catch (error) {
      if (!options.onFailed || !(error instanceof InputError)) throw error;
      options.onFailed(error);
    }
  }
  return [...inputs.values()];
}

async function expand(arg: string, options: ExpandOptions): Promise<Input[]> {
  if (arg === '-') return [standardInput];
  const found = await stat(arg).catch((cause: NodeJS.ErrnoException) => {
    if (isDynamicPattern(arg) || (options.mayBeMissing && isOfNothing(cause))) return undefined;
    throw fileError(arg, cause);
  });
  if (found?.isFile() || found?.isFIFO()) return [new LocalFile(arg)];
  const files = await (found ? filesIn(arg, options) : filesLike(arg, options));
  return files.sort().map((file) => new LocalFile(file));
}

/** @throws {InputError} for a folder that cannot be read and may hold some of them; not of one that is gone */
async function filesLike(pattern: string, { onFailed }: ExpandOptions): Promise<string[]> {
  const failures: unknown[] = [];
  // What looks for files passes over such a folder without a word. Volumes have a lost+found, with files of nobody.
  const watched = (path: string, options: { withFileTypes: true }, done: Done) =>
    nodeFs.readdir(path, options, (error, entries) => {
      const mayHoldSome = error?.code !== 'ENOENT' && basename(path) !== 'lost+found';
      if (error && mayHoldSome) failures.push(fileError(resolve(path), error));
      done(error, entries);
    });
  const fs = { readdir: watched as typeof nodeFs.readdir };
  const found = await glob(pattern, { expandDirectories: false, absolute: isAbsolute(pattern), fs });
  for (const failure of failures) {
    if (!onFailed || !(failure instanceof Error)) throw failure;
    onFailed(failure);
  }
  return found;
}

type Done = (error: NodeJS.ErrnoException | null, entries: Dirent[]) => void;

async function filesIn(folder: string, options: ExpandOptions): Promise<string[]> {
  const entries = await naming(folder, () => readdir(folder, { withFileTypes: true }));
  const visible = entries.filter(({ name }) => !name.startsWith('.'));
  const areFolders = await Promise.all(visible.map((entry) => isFolder(folder, entry, options)));
  return visible.filter((_, n) => !areFolders[n]).map(({ name }) => join(folder, name));
}

/** Follows links: one to a folder is not a file, one to nothing is an error, unless files may be missing. */
async function isFolder(folder: string, entry: Dirent, { mayBeEmpty }: ExpandOptions): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  const path = join(folder, entry.name);
  const found = await stat(path).catch((cause: NodeJS.ErrnoException) => {
    if (mayBeEmpty && isOfNothing(cause)) return undefined;
    throw fileError(path, cause);
  });
  return found?.isDirectory() ?? false;
}
