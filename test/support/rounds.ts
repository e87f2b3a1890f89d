import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { cliFor } from './chunk-options.ts';
import { startOf } from './compiled.ts';
import { correctedExport } from './corrections.ts';
import { type KillableStore, refuseCrash, send, startKillable } from './killable-store.ts';
import { type Command, type Ended, environmentOf, startProcess } from './process.ts';
import { differences } from './recount.ts';
import { Dice, type RoundFile, roundMapping, writeRoundFile } from './round-files.ts';
import type { WrittenEvent } from './written-events.ts';

export interface Rounds {
  readonly rounds: number;
  readonly seed: number;
  /** More than one: a cluster. */
  readonly shards?: number;
  readonly onRound?: (text: string) => void;
}

const faults = ['none', 'SIGKILL', 'SIGKILL', 'SIGINT', 'SIGTERM', 'SIGSTOP', 'engine', 'engine'] as const;

/** What all rounds share. */
interface Ground {
  readonly store: Store;
  readonly folder: string;
  readonly killEngine: KillableStore['killEngine'];
  /** Raw events from this day on have never been pruned. */
  rawSince: string;
}

/**
 * Does rounds one after the other, each on accounts whose names begin with a text of its own.
 * @throws at the first that fails, naming seed and round
 */
export async function inTurn(
  { rounds, seed, onRound }: Rounds,
  oneRound: (prefix: string, seed: number) => Promise<string>,
): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    const startedAt = performance.now();
    const told = await oneRound(`s${seed}r${round}/`, seed * 7919 + round).catch((cause: unknown) => {
      throw new Error(`seed ${seed}, round ${round}: ${cause instanceof Error ? cause.message : cause}`, {
        cause,
      });
    });
    onRound?.(`round ${round}: ${told}, ${Math.round((performance.now() - startedAt) / 1000)} s, equal`);
  }
}

/**
 * Each round writes files of random formats, packings and records, loads them under random flags while loaders and
 * engine are killed or held up, two loaders at once, files growing, with prunes in between, then once more in peace. It
 * then prunes, takes a file back and loads it again, and replays what was rejected; and compares events, all rollups and
 * rejected rows with a recount, key by key, after each of these.
 * @throws at the first round that differs, naming seed, round and difference
 */
export async function randomRounds(options: Rounds): Promise<void> {
  const { shards = 1 } = options;
  const folder = await mkdtemp(join(tmpdir(), 'adtally-rounds-'));
  const { address, killEngine, stop } = await startKillable(shards, join(folder, 'data'));
  const store = connect(address);
  const ground: Ground = { store, folder, killEngine, rawSince: '1970-01-01' };
  try {
    await inTurn(options, async (prefix, seed) => {
      const own = join(folder, prefix);
      await mkdir(own);
      const told = await oneRound(Object.assign(ground, { folder: own }), prefix, new Dice(seed));
      await rm(own, { recursive: true, force: true });
      return told;
    });
  } finally {
    await store.close();
    await stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function oneRound(ground: Ground, prefix: string, dice: Dice): Promise<string> {
  // The engine may still be on its way back.
  await retrying(() => select(ground.store, 'SELECT 1'));
  const dedupe = dice.below(5) === 0;
  const mapped = dice.below(3) === 0;
  const mapping = mapped ? join(ground.folder, 'mapping.json') : undefined;
  if (mapping) await writeFile(mapping, JSON.stringify(roundMapping));
  const files: RoundFile[] = [];
  for (let n = 0; n <= dice.below(3); n++)
    files.push(await writeRoundFile({ ...ground, ids: dedupe, mapped }, `${prefix}${n}/`, dice));
  const load = () => startLoader(ground, files, dice, { dedupe, mapping });
  const what: string[] = files.map(({ path }) => path.slice(path.lastIndexOf('/') + 1));
  if (dedupe) what.push('--dedupe');
  if (mapped) what.push('--mapping');

  for (let attempt = dice.below(4); attempt > 0; attempt--) {
    const fault = dice.one(faults);
    const loaders = Array.from({ length: dice.one([1, 1, 2]) }, load);
    await disturb(ground, loaders, fault, dice);
    const ended = await Promise.all(loaders.map((loader) => loader.ended));
    for (const each of ended) refuseCrash(each);
    what.push(loaders.length > 1 ? `${fault} beside another` : fault);
    for (const { path, whole } of files) if (dice.below(2)) await writeFile(path, whole);
    if (dice.below(4) === 0) what.push(await pruneOld(ground, dice));
  }

  for (const { path, whole } of files) await writeFile(path, whole);
  const events = files.flatMap((file) => file.events);
  const wrong = events.filter((event) => event.wrong);
  const wanted = wrong.length > 0 ? 4 : 0;
  await untilDone(load, wanted);
  const again = await untilDone(load, wanted);
  const { rows, rejected_rows } = JSON.parse(again.stdout);
  if (rows !== 0 || rejected_rows !== 0) throw new Error(`a repeated run loads again: ${again.stdout}`);
  const good = events.filter((event) => !event.wrong);
  const equal = (loaded: readonly WrittenEvent[]) => requireEqual(ground, prefix, loaded, wrong);
  await equal(good);
  if (dice.below(3) === 0) {
    what.push(await pruneOld(ground, dice));
    await equal(good);
  }
  const file = files[dice.below(files.length)];
  if (file && dice.below(3) === 0) {
    if (await takeBack(ground, file)) {
      const others = (of: readonly WrittenEvent[]) => of.filter((event) => !file.events.includes(event));
      await requireEqual(ground, prefix, others(good), others(wrong));
      what.push('taken back and loaded again');
    } else what.push('not taken back: pruned');
    await untilDone(load, wanted);
    await equal(good);
  }
  if (wrong.length > 0 && dice.below(3) === 0) {
    await replayAll(ground, prefix, wrong, dice);
    await equal(events);
    what.push('replayed');
    if (dice.below(3) === 0) what.push(await pruneOld(ground, dice));
    await equal(events);
  }
  return `${events.length} records, ${wrong.length} bad, ${what.join(', ')}`;
}

function startLoader(
  ground: Ground,
  files: readonly RoundFile[],
  dice: Dice,
  { dedupe, mapping }: { readonly dedupe: boolean; readonly mapping: string | undefined },
): Command {
  const paths = files.map(({ path }) => path);
  return adtally(ground, [
    ...['ingest', 'events', '--json', '--quiet'],
    ...['--chunk-bytes', `${dice.one([20_000, 50_000, 200_000, 1 << 20, 128 << 20])}`],
    ...(dedupe ? ['--dedupe'] : []),
    ...(mapping ? ['--mapping', mapping] : []),
    ...(dice.below(4) === 0 ? ['--max-rejects', '100%'] : []),
    ...(dice.below(2) ? paths : paths.toReversed()),
  ]);
}

function adtally({ store }: Ground, args: readonly string[]): Command {
  return startProcess(process.execPath, [...startOf(cliFor(args)), ...args], environmentOf(store.address));
}

async function disturb(
  ground: Ground,
  [loader]: readonly Command[],
  fault: (typeof faults)[number],
  dice: Dice,
): Promise<void> {
  if (!loader || fault === 'none') return;
  await Promise.race([delay(300 + dice.below(dice.one([1_500, 4_000]))), loader.ended]);
  if (fault === 'engine') return ground.killEngine(dice);
  send(loader, fault);
  if (fault !== 'SIGSTOP') return;
  await delay(dice.below(3_000));
  send(loader, 'SIGCONT');
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
  { store, rawSince }: Ground,
  prefix: string,
  events: readonly WrittenEvent[],
  wrong: readonly WrittenEvent[],
): Promise<void> {
  const counted = events.map((event) => event.counted);
  const found = await retrying(() => differences(store, prefix, counted, rawSince));
  const query = `SELECT fields['event_id'] AS id FROM rejected_rows FINAL WHERE startsWith(id, {prefix:String})`;
  const rejected = (await select<{ id: string }>(store, query, { prefix })).map(({ id }) => id).sort();
  const expected = wrong.map((event) => event.counted.event_id).sort();
  if (JSON.stringify(rejected) !== JSON.stringify(expected)) {
    found.push(`rejected rows: ${rejected.length}, not ${expected.length}`);
  }
  if (found.length > 0) throw new Error(found.join('\n'));
}

/** Prunes everything before a month that has events, sometimes killed first; refused where a chunk is in doubt. */
async function pruneOld(ground: Ground, dice: Dice): Promise<string> {
  const month = 1 + dice.below(3);
  const day = new Date(Date.UTC(2026, month, 1)).toISOString().slice(0, 10);
  const now = new Date();
  const keep = (now.getUTCFullYear() - 2026) * 12 + now.getUTCMonth() - month;
  if (day > ground.rawSince) ground.rawSince = day;
  const start = () => adtally(ground, ['prune', '--keep', `${keep}mo`, '--anyway']);
  const fault = dice.one(['none', 'SIGKILL', 'engine']);
  if (fault !== 'none') {
    const pruning = start();
    await delay(300 + dice.below(2_500));
    if (fault === 'engine') await ground.killEngine(dice);
    else send(pruning, 'SIGKILL');
    refuseCrash(await pruning.ended);
  }
  // The engine may be away: it was killed here or beside the loads before.
  await retrying(() => select(ground.store, 'SELECT 1'));
  const ended = await start().ended;
  refuseCrash(ended);
  if (ended.code === 0) return `pruned before ${day}${fault === 'none' ? '' : ` (${fault})`}`;
  if (!/which completes the chunk/.test(ended.stderr)) throw new Error(`prune failed: ${ended.stderr}`);
  return 'not pruned: a chunk is in doubt';
}

/** Whether the whole file was taken back: loads whose events were pruned stay. */
async function takeBack(ground: Ground, { path }: RoundFile): Promise<boolean> {
  const query = `SELECT load_id AS load FROM loads FINAL WHERE kind = 'events' AND file = {path:String} ORDER BY load`;
  let whole = true;
  for (const { load } of await select<{ load: string }>(ground.store, query, { path })) {
    const ended = await adtally(ground, ['unload', load]).ended;
    refuseCrash(ended);
    if (ended.code !== 0 && !/prune has folded/.test(ended.stderr))
      throw new Error(`unload failed: ${ended.stderr}`);
    whole &&= ended.code === 0;
  }
  return whole;
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
