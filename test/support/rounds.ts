import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { embedded, startOf } from './compiled.ts';
import { correctedExport } from './corrections.ts';
import { type Command, type Ended, environmentOf, startProcess } from './process.ts';
import { differences } from './recount.ts';
import { Dice, type RoundFile, writeRoundFile } from './round-files.ts';
import type { WrittenEvent } from './written-events.ts';

export interface Rounds {
  readonly rounds: number;
  readonly seed: number;
  readonly onRound?: (text: string) => void;
}

const faults = ['none', 'SIGKILL', 'SIGKILL', 'SIGINT', 'SIGTERM', 'SIGSTOP', 'engine', 'engine'] as const;

/** What all rounds share. */
interface Ground {
  readonly store: Store;
  readonly dataDir: string;
  readonly folder: string;
}

/**
 * Each round writes files of random formats, packings and records, loads them under random flags while loaders and
 * engine are killed or held up, two loaders at once, files growing, then once more in peace; and compares events, all
 * rollups and rejected rows with a recount, key by key, also after a replay of what was rejected.
 * @throws at the first round that differs, naming seed, round and difference
 */
export async function randomRounds({ rounds, seed, onRound }: Rounds): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'adtally-rounds-'));
  const dataDir = join(folder, 'data');
  const { acquireEmbedded } = await embedded();
  const lease = await acquireEmbedded(dataDir);
  const address = { ...lease.address, database: `rounds_${randomBytes(4).toString('hex')}` };
  const store = connect(address);
  try {
    await migrate(address);
    for (let round = 1; round <= rounds; round++) {
      const startedAt = performance.now();
      const own = join(folder, `${round}`);
      await mkdir(own);
      const told = await oneRound(
        { store, dataDir, folder: own },
        `s${seed}r${round}/`,
        new Dice(seed * 7919 + round),
      ).catch((cause: unknown) => {
        throw new Error(`seed ${seed}, round ${round}: ${cause instanceof Error ? cause.message : cause}`, {
          cause,
        });
      });
      await rm(own, { recursive: true, force: true });
      onRound?.(`round ${round}: ${told}, ${Math.round((performance.now() - startedAt) / 1000)} s, equal`);
    }
  } finally {
    await store.close();
    await lease.release();
    await rm(folder, { recursive: true, force: true });
  }
}

async function oneRound(ground: Ground, prefix: string, dice: Dice): Promise<string> {
  // The engine may still be on its way back.
  await retrying(() => select(ground.store, 'SELECT 1'));
  const dedupe = dice.below(5) === 0;
  const files: RoundFile[] = [];
  for (let n = 0; n <= dice.below(3); n++)
    files.push(await writeRoundFile(ground, `${prefix}${n}/`, dice, dedupe));
  const what: string[] = files.map(({ path }) => path.slice(path.lastIndexOf('/') + 1));
  if (dedupe) what.push('--dedupe');

  for (let attempt = dice.below(4); attempt > 0; attempt--) {
    const fault = dice.one(faults);
    const loaders = Array.from({ length: dice.one([1, 1, 2]) }, () =>
      startLoader(ground, files, dice, dedupe),
    );
    await disturb(ground, loaders, fault, dice);
    const ended = await Promise.all(loaders.map((loader) => loader.ended));
    for (const each of ended) refuseCrash(each);
    what.push(loaders.length > 1 ? `${fault} beside another` : fault);
    for (const { path, whole } of files) if (dice.below(2)) await writeFile(path, whole);
  }

  for (const { path, whole } of files) await writeFile(path, whole);
  const events = files.flatMap((file) => file.events);
  const wrong = events.filter((event) => event.wrong);
  const wanted = wrong.length > 0 ? 4 : 0;
  await untilDone(() => startLoader(ground, files, dice, dedupe), wanted);
  const again = await untilDone(() => startLoader(ground, files, dice, dedupe), wanted);
  const { rows, rejected_rows } = JSON.parse(again.stdout);
  if (rows !== 0 || rejected_rows !== 0) throw new Error(`a repeated run loads again: ${again.stdout}`);
  const good = events.filter((event) => !event.wrong);
  await requireEqual(ground, prefix, good, wrong);
  if (wrong.length > 0 && dice.below(3) === 0) {
    await replayAll(ground, prefix, wrong, dice);
    await requireEqual(ground, prefix, events, wrong);
    what.push('replayed');
  }
  return `${events.length} records, ${wrong.length} bad, ${what.join(', ')}`;
}

function startLoader(ground: Ground, files: readonly RoundFile[], dice: Dice, dedupe: boolean): Command {
  const paths = files.map(({ path }) => path);
  return adtally(ground, [
    ...['ingest', 'events', '--json', '--quiet'],
    ...['--chunk-bytes', `${dice.one([20_000, 50_000, 200_000, 1 << 20, 128 << 20])}`],
    ...['--parallel', `${1 + dice.below(3)}`],
    ...(dedupe ? ['--dedupe'] : []),
    ...(dice.below(4) === 0 ? ['--max-rejects', '100%'] : []),
    ...(dice.below(2) ? paths : paths.toReversed()),
  ]);
}

function adtally({ store }: Ground, args: readonly string[]): Command {
  return startProcess(process.execPath, [...startOf('src/cli'), ...args], environmentOf(store.address));
}

async function disturb(
  { dataDir }: Ground,
  [loader]: readonly Command[],
  fault: (typeof faults)[number],
  dice: Dice,
): Promise<void> {
  if (!loader || fault === 'none') return;
  await Promise.race([delay(300 + dice.below(dice.one([1_500, 4_000]))), loader.ended]);
  if (fault === 'engine') {
    // The engine of the file may be gone: it is just restarting.
    send(JSON.parse(await readFile(join(dataDir, 'clickhouse.json'), 'utf8')), 'SIGKILL');
    return;
  }
  send(loader, fault);
  if (fault !== 'SIGSTOP') return;
  await delay(dice.below(3_000));
  send(loader, 'SIGCONT');
}

/** It may have ended. */
function send({ pid }: Pick<Command, 'pid'>, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function refuseCrash({ stderr }: Ended): void {
  if (/^ {4}at /m.test(stderr)) throw new Error(`a stack trace: ${stderr}`);
}

/** A run in peace; after a kill of the engine the first may still fail. */
async function untilDone(start: () => Command, wanted: number): Promise<Ended> {
  for (let attempt = 1; ; attempt++) {
    const ended = await start().ended;
    refuseCrash(ended);
    if (ended.code === wanted) return ended;
    if (ended.code !== 1 || attempt === 3) throw new Error(`ended with ${ended.code}: ${ended.stderr}`);
  }
}

async function requireEqual(
  { store }: Ground,
  prefix: string,
  events: readonly WrittenEvent[],
  wrong: readonly WrittenEvent[],
): Promise<void> {
  const counted = events.map((event) => event.counted);
  const found = await retrying(() => differences(store, prefix, counted));
  const query = `SELECT fields['event_id'] AS id FROM rejected_rows FINAL WHERE startsWith(id, {prefix:String})`;
  const rejected = (await select<{ id: string }>(store, query, { prefix })).map(({ id }) => id).sort();
  const expected = wrong.map((event) => event.counted.event_id).sort();
  if (JSON.stringify(rejected) !== JSON.stringify(expected)) {
    found.push(`rejected rows: ${rejected.length}, not ${expected.length}`);
  }
  if (found.length > 0) throw new Error(found.join('\n'));
}

/** Replays what each load has rejected, some of them killed first. */
async function replayAll(
  ground: Ground,
  prefix: string,
  wrong: readonly WrittenEvent[],
  dice: Dice,
): Promise<void> {
  const query = `SELECT DISTINCT load_id AS load FROM rejected_rows FINAL WHERE startsWith(fields['event_id'], {prefix:String}) ORDER BY load`;
  for (const { load } of await select<{ load: string }>(ground.store, query, { prefix })) {
    const kind = dice.one(['csv', 'ndjson'] as const);
    const file = await correctedExport(ground.store, load, wrong, ground.folder, kind);
    if (dice.below(2)) {
      const killed = adtally(ground, ['replay', load, file]);
      await delay(dice.below(3_000));
      send(killed, 'SIGKILL');
      await killed.ended;
    }
    await untilDone(() => adtally(ground, ['replay', load, file]), 0);
  }
}
