import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/**
 * Makes DATA_DIR if it is missing, and returns its real path. Nobody but its owner can look into it: one that others
 * can read is closed to them, and standard error says so.
 * @throws {Error} naming DATA_DIR when it cannot be created or written, or may be somebody else's: it is a symbolic
 * link, belongs to another user, was open for others to write, or has other content than a store
 */
export function prepareDataDir(dataDir: string): string {
  const path = resolve(dataDir);
  let doubt: string | undefined;
  try {
    makeFolder(path);
    doubt = closeToOthers(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`DATA_DIR ${dataDir} cannot be created or written: ${reason}`, { cause });
  }
  if (doubt !== undefined) throw new Error(`DATA_DIR ${dataDir} ${doubt}`);
  return realpathSync(path);
}

/** Node's recursive mkdir never returns where the system allows no new folder, as in /proc (tried on 20, 22 and 24). */
function makeFolder(path: string): void {
  const isFolder = () => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (isFolder()) return;
  makeFolder(dirname(path));
  try {
    // It contains login tokens, if only as hashes.
    mkdirSync(path, { mode: 0o700 });
  } catch (cause) {
    // Another process may have made it just now.
    if (!isFolder()) throw cause;
  }
}

/** The reason why the folder cannot be trusted; undefined when it is its owner's alone, if need be from now on. */
function closeToOthers(path: string): string | undefined {
  if (lstatSync(path).isSymbolicLink()) return 'is a symbolic link: name the folder itself';
  // A folder that is put in place of this one meanwhile is not the one that is open.
  const folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const { uid, mode } = fstatSync(folder);
    if (uid !== process.geteuid?.()) return `belongs to another user (uid ${uid}): use a folder of your own`;
    if ((mode & 0o077) === 0) return undefined;
    const empty = readdirSync(path).length === 0;
    if ((mode & 0o022) !== 0 && !empty) {
      return 'could be written by other users, and what it contains may be theirs: use another one, or look at it and chmod 700 it';
    }
    if (!empty && !existsSync(join(path, 'store'))) {
      return 'can be read by other users and contains other files: use a folder of its own, or chmod 700 it';
    }
    fchmodSync(folder, 0o700);
    process.stderr.write(`DATA_DIR ${path} could be read by other users: its mode is 0700 from now on\n`);
    return undefined;
  } finally {
    closeSync(folder);
  }
}
