import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import type { Input } from './input.ts';
import { fileError, InputError } from './input-error.ts';
import { LocalFile } from './local-file.ts';
import { standardInput } from './standard-input.ts';

/**
 * The inputs that arguments stand for: a file itself, `-` for standard input, every file of a folder (without hidden
 * files and folders in it), every match of a pattern. Each file once; those of a folder or pattern in the order of
 * their names.
 * @throws {InputError} for an argument that stands for nothing
 */
export async function expandFiles(args: readonly string[]): Promise<Input[]> {
  const files = await Promise.all(args.map(expand));
  return [...new Set(files.flat())].map((file) => (file === '-' ? standardInput : new LocalFile(file)));
}

async function expand(arg: string): Promise<string[]> {
  if (arg === '-') return [arg];
  const found = await stat(arg).catch((cause: unknown) => {
    if (isDynamicPattern(arg)) return undefined;
    throw fileError(arg, cause);
  });
  if (found?.isFile() || found?.isFIFO()) return [arg];
  const files = found
    ? await filesIn(arg)
    : await glob(arg, { expandDirectories: false, absolute: isAbsolute(arg) });
  if (files.length === 0) throw new InputError(`${arg}: no file there`);
  return files.sort();
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((cause: unknown) => {
    throw fileError(folder, cause);
  });
  const visible = entries.filter(({ name }) => !name.startsWith('.'));
  const areFolders = await Promise.all(visible.map((entry) => isFolder(folder, entry)));
  return visible.filter((_, n) => !areFolders[n]).map(({ name }) => join(folder, name));
}

/** Follows links: one to a folder is not a file, one to nothing is an error. */
async function isFolder(folder: string, entry: Dirent): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  const path = join(folder, entry.name);
  const found = await stat(path).catch((cause: unknown) => {
    throw fileError(path, cause);
  });
  return found.isDirectory();
}
