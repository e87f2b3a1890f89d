import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { select } from '../../../clickhouse/client.ts';
import { send } from '../killable-store.ts';
import type { Dice } from '../round-files.ts';
import type { Session } from './session.ts';

const faults = [
  'kill a command',
  'kill a command',
  'kill a command',
  'stop a command',
  'kill the service',
  'stop the service',
  'kill the engine',
  'stop the engine',
  'flip a byte',
  'damage a part',
  'fill the disk',
  'fail the disk',
] as const;

/** One fault of chance, and what it was; comes back when it is over. */
export async function disturb(session: Session, dice: Dice, longestStopMs: number): Promise<string> {
  const fault = dice.one(faults);
  // Mostly short.
  const ms = 500 + dice.below(dice.one([1_000, 4_000, longestStopMs - 500]));
  if (fault === 'flip a byte') return flipByte(session, dice, ms);
  if (fault === 'damage a part') return damagePart(session, dice, ms);
  if (fault === 'fill the disk') return fillDisk(session, Math.min(ms, longestFullDiskMs));
  if (fault === 'fail the disk') return failDisk(session, dice, Math.min(ms, longestDiskFailureMs));
  const [verb, , whom] = fault.split(' ');
  const command = session.anyCommand((limit) => dice.below(limit));
  const victim = whom === 'command' ? command : whom === 'service' ? session.service : session.engine();
  const signal = dice.one(['SIGKILL', 'SIGKILL', 'SIGTERM', 'SIGINT'] as const);
  if (!victim) return `nothing to ${fault}`;
  if (verb === 'kill') {
    send(victim, whom === 'engine' ? 'SIGKILL' : signal);
    return fault;
  }
  send(victim, 'SIGSTOP');
  await delay(ms);
  send(victim, 'SIGCONT');
  return `${fault} for ${ms} ms`;
}

/** Some connections to ClickHouse break off, at once or after a silence. */
export function breakConnections(session: Session, dice: Dice): void {
  session.proxy.fate = () =>
    dice.below(8) > 0
      ? undefined
      : { afterBytes: dice.below(dice.one([400, 1_200, 6_000])), silentMs: dice.one([0, 0, 500, 5_000]) };
}

/** Every command of a round has a clock of its own, which jumps while it runs. Undefined where libfaketime is not installed. */
export function oddClocks(folder: string, dice: Dice): (() => Record<string, string>) | undefined {
  const library = ['x86_64', 'aarch64']
    .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
    .find((path) => existsSync(path));
  if (!library) return;
  let clocks = 0;
  const offset = () => `${dice.one(['+', '-'])}${dice.below(dice.one([5, 3_600, 86_400 * 3]))}s\n`;
  return () => {
    const file = join(folder, `clock-${++clocks}`);
    writeFileSync(file, offset());
    const jump = setTimeout(() => writeFileSync(file, offset()), dice.below(10_000));
    jump.unref();
    return {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  };
}

/** Of the latest ones. @param condition SQL, of a table */
async function anyPart({ store }: Session, dice: Dice, condition: string) {
  const query = `SELECT table, path FROM system.parts WHERE database = currentDatabase() AND active AND rows > 0
    AND (${condition}) ORDER BY modification_time DESC LIMIT 40`;
  const parts = await select<{ table: string; path: string }>(store, query).catch(() => []);
  return parts[dice.below(parts.length)];
}

/** ClickHouse starts with a damaged small file of a rollup, and goes on without the part until a rebuild. */
async function damagePart(session: Session, dice: Dice, ms: number): Promise<string> {
  const part = await anyPart(session, dice, "endsWith(table, '_date')");
  const name = dice.one(['checksums.txt', 'columns.txt', 'columns_substreams.txt']);
  const engine = session.engine();
  const at = dice.below(1e9);
  try {
    if (!part || !engine) return 'no part to damage';
    const path = join(part.path, name);
    const bytes = readFileSync(path);
    const place = at % bytes.length;
    bytes[place] = (bytes[place] ?? 0) ^ (1 << (at % 7));
    writeFileSync(path, bytes, { flag: 'r+' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return 'the part is gone that was to be damaged';
  }
  send(engine, 'SIGKILL');
  await delay(ms);
  const { code } = await session.run(['rebuild']);
  return `damage ${name} of ${part.table}, ${code === 0 ? 'mended' : 'to be mended'} after ${ms} ms`;
}

/** A byte of the rows of a part is another one for a while, whatever name its file gets meanwhile. */
async function flipByte(session: Session, dice: Dice, ms: number): Promise<string> {
  const part = await anyPart(session, dice, "table = 'events' OR endsWith(table, '_date')");
  const at = dice.below(1e9);
  if (!part) return 'no part to flip a byte of';
  const file = openRows(part.path, at);
  if (file === undefined) return 'the part is gone whose byte was to be flipped';
  try {
    const place = at % fstatSync(file).size;
    const byte = Buffer.alloc(1);
    readSync(file, byte, 0, 1, place);
    const was = byte[0] ?? 0;
    writeByte(file, place, was ^ (1 << (at % 8)));
    await delay(ms);
    writeByte(file, place, was);
  } finally {
    closeSync(file);
  }
  return `flip a byte of ${part.table} for ${ms} ms`;
}

/** A file of rows of a part. @returns undefined where ClickHouse has removed the part */
function openRows(part: string, at: number): number | undefined {
  try {
    const names = readdirSync(part).filter((name) => name.endsWith('.bin'));
    return openSync(join(part, names[at % names.length] ?? ''), 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return;
  }
}

/** So that it stays, also when the disk fails afterwards. */
function writeByte(file: number, place: number, byte: number): void {
  writeSync(file, Buffer.from([byte]), 0, 1, place);
  fsyncSync(file);
}

/**
 * A command that fails meanwhile may have stored any of its chunks, or may still do so. With more than ten of them there are more
 * possible histories than the judge follows.
 */
const longestFullDiskMs = 8_000;

/** Nothing can be written for a while. */
async function fillDisk({ disk }: Session, ms: number): Promise<string> {
  if (!disk) return 'no disk to fill';
  const filler = join(disk.root, 'filler');
  const file = openSync(filler, 'w');
  const some = Buffer.alloc(1 << 20);
  try {
    for (let size = some.length; size >= 4096; ) {
      try {
        writeSync(file, some, 0, size);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        size /= 2;
      }
    }
    await delay(ms);
    // A disk that fails afterwards may bring the file back, but not what it had.
    ftruncateSync(file);
    fsyncSync(file);
  } finally {
    closeSync(file);
    rmSync(filler);
  }
  return `fill the disk for ${ms} ms`;
}

/** The engine cannot start meanwhile, and its supervisor gives up after ten starts in a row. */
const longestDiskFailureMs = 3_000;

/** All that ClickHouse reads and writes fails for a while, and what was not synced is lost. Then it starts on what there is. */
async function failDisk(session: Session, dice: Dice, ms: number): Promise<string> {
  const { disk, supervisor } = session;
  const journal = dice.one(['the journal is written', 'the journal is lost'] as const);
  if (!disk) return 'no disk to fail';
  session.diskFailedUntil = Number.POSITIVE_INFINITY;
  disk.fail(journal);
  await delay(ms);
  // It would start the engine again beside the disk.
  send(supervisor, 'SIGSTOP');
  try {
    await disk.mountAgain();
  } finally {
    send(supervisor, 'SIGCONT');
    session.diskFailedUntil = performance.now();
  }
  return `fail the disk for ${ms} ms, ${journal}`;
}
