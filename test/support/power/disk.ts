import { execFileSync, spawnSync } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DataType, load, open } from 'ffi-rs';
import { pollFor } from '../../../clickhouse/poll.ts';

/**
 * File systems whose power can be cut: each has an ioctl for it, which tests of file systems use. Without data=ordered the
 * size of a file may be on the disk before what is in it.
 */
const kinds = {
  ext4: { make: ['mkfs.ext4', '-q', '-E', 'lazy_itable_init=1'], mount: 'loop' },
  'ext4 without order': {
    make: ['mkfs.ext4', '-q', '-E', 'lazy_itable_init=1'],
    mount: 'loop,data=writeback,noauto_da_alloc',
  },
  xfs: { make: ['mkfs.xfs', '-q'], mount: 'loop' },
} as const;
export type DiskKind = keyof typeof kinds;
export const diskKinds = Object.keys(kinds) as DiskKind[];

// Of Linux, on x64 and arm64 alike.
const shutdownRequest = 0x8004587d;
/** What the journal holds in memory gets to the disk before, or is lost, too. */
const shutdowns = { 'the journal is written': 1, 'the journal is lost': 2 } as const;
export type Journal = keyof typeof shutdowns;
export const journals = Object.keys(shutdowns) as Journal[];
/** SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE and _WAIT_AFTER: pages are written, and nothing that would keep them is. */
const writePages = 7;

/** A real file system in a file, which loses what was not synced when its power is cut. Only root can make one. */
export class Disk {
  readonly root: string;
  readonly #image: string;
  readonly #kind: DiskKind;

  constructor(folder: string, kind: DiskKind) {
    open({ library: 'libc', path: '' });
    this.#image = join(folder, 'disk.img');
    this.root = join(folder, 'disk');
    this.#kind = kind;
    mkdirSync(this.root, { recursive: true });
    writeFileSync(this.#image, '');
    truncateSync(this.#image, 2 ** 30);
    const [program, ...args] = kinds[kind].make;
    execFileSync(program, [...args, this.#image]);
    this.#mount();
  }

  /** All that was written is on the disk. */
  sync(): void {
    execFileSync('sync', ['-f', this.root]);
  }

  /**
   * Cuts the power: what was not synced is lost, but for some pages of some files that the system had written by chance. Then
   * it kills whoever has a file open, and mounts the disk again.
   */
  async cut(random: () => number, journal: Journal): Promise<void> {
    if (random() < 0.5) this.#writeSome(random, random());
    this.fail(journal);
    await this.mountAgain();
  }

  /** Whatever is read or written fails (EIO) until the disk is mounted again. What was not synced is lost. */
  fail(journal: Journal): void {
    const folder = openSync(this.root, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      const flag = Buffer.alloc(4);
      flag.writeUInt32LE(shutdowns[journal]);
      const { I32, I64, U8Array } = DataType;
      const paramsType = [I32, I64, U8Array];
      const paramsValue = [folder, shutdownRequest, flag];
      const done = load({ library: 'libc', funcName: 'ioctl', retType: I32, paramsType, paramsValue });
      if (done !== 0) throw new Error('the disk cannot be made to fail');
    } finally {
      closeSync(folder);
    }
  }

  /** Kills whoever has a file open, and mounts the disk again. */
  async mountAgain(): Promise<void> {
    await this.#unmount();
    this.#mount();
  }

  async remove(): Promise<void> {
    await this.#unmount();
    rmSync(this.#image);
    rmSync(this.root, { recursive: true });
  }

  #mount(): void {
    execFileSync('mount', ['-o', kinds[this.#kind].mount, this.#image, this.root]);
  }

  /** Files are written by the system in any order, and not as a whole. */
  #writeSome(random: () => number, share: number): void {
    const { I32, I64 } = DataType;
    for (const path of filesIn(this.root)) {
      if (random() > share) continue;
      const file = ifThere(() => openSync(path, 'r'));
      if (file === undefined) continue;
      const from = random() < 0.3 ? 4096 * Math.floor(random() * 16) : 0;
      const paramsType = [I32, I64, I64, I32];
      const paramsValue = [file, from, random() < 0.3 ? 4096 : 0, writePages];
      load({ library: 'libc', funcName: 'sync_file_range', retType: I32, paramsType, paramsValue });
      closeSync(file);
    }
  }

  /** Kills whoever uses it. */
  async #unmount(): Promise<void> {
    const unmounted = () => {
      for (const pid of usersOf(this.root)) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It has ended.
        }
      }
      // Threads of a killed process keep it busy for a moment.
      return spawnSync('umount', [this.root]).status === 0 || undefined;
    };
    await pollFor(unmounted, { pollMs: 20, signal: AbortSignal.timeout(20_000) });
  }
}

function filesIn(folder: string): string[] {
  return (ifThere(() => readdirSync(folder, { withFileTypes: true })) ?? []).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return entry.isFile() ? [path] : [];
  });
}

/** The engine removes parts all the time. */
function ifThere<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The processes that have a file of a folder open. */
function usersOf(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => openFiles(pid).some((file) => file.startsWith(`${folder}/`)))
    .map(Number);
}

function openFiles(pid: string): string[] {
  try {
    const files = `/proc/${pid}/fd`;
    return readdirSync(files).map((file) => readlinkSync(join(files, file)));
  } catch {
    // It has ended since, or closes the file.
    return [];
  }
}
