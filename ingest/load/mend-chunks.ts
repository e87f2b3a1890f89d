import { catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { rewriting } from '../../clickhouse/consistency/rewrites.ts';
import { type DayRange, verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { monthsWithin } from '../../clickhouse/months.ts';
import { storeBatch } from '../delivery/batches.ts';
import { mayBeTakenBack, stateOf } from '../delivery/chunk-claims.ts';
import {
  countEvents,
  type DeliveredChunk,
  markLoaded,
  markWithdrawn,
  recordDaysChanged,
  rejectedAmong,
  storedRows,
} from '../delivery/chunk-outcome.ts';
import { mendTable, nextStep } from '../delivery/chunk-states.ts';
import { heldBy, stagedCounts } from '../delivery/staging.ts';
import { forgetPast, putInDoubt, withdrawChunks } from '../delivery/withdraw-chunks.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { Load, type WaitOptions } from '../ledger/load.ts';
import { isRefusal, LoadError } from '../ledger/load-error.ts';
import { mendOf } from '../ledger/load-records.ts';
import { monthsOf, namedChunks } from './chunk-months.ts';

/** ClickHouse can die in each of them. */
const mostAttempts = 5;

interface MendOptions extends WaitOptions {
  readonly now: () => Date;
  /** Events whose id is present are left out. */
  readonly dedupe?: boolean;
}

/** What a load has held back. */
interface HeldBack extends MendOptions {
  readonly ledger: Ledger;
  readonly load: Load;
  readonly held: readonly DeliveredChunk[];
}

/** A chunk of a load, as it was when it was held back, and as it would be stored now. */
interface OwnChunk {
  readonly load: Load;
  readonly dedupe: boolean;
  readonly held: DeliveredChunk;
  readonly now: DeliveredChunk;
}

/**
 * Mends chunks that may have arrived in part, and marks them as loaded. A load has held them back, and has ended: loads
 * that wait for one of them have to end first. What the load tells of them is what was stored then. Where everything is there, in
 * the events and in the rollups, that is all. Otherwise what has arrived leaves the events, then, by exchange, the rollups, and the
 * chunk is stored as a new one: reports have it once or not, and never twice. Killed at any point, the next load of the chunk does all of it again.
 * @throws when another load has taken over a chunk, or the load was unloaded or replaced meanwhile
 */
export async function mendChunks(
  ledger: Ledger,
  load: Load,
  held: readonly DeliveredChunk[],
  options: MendOptions,
): Promise<void> {
  const { store } = ledger;
  let group = groups.get(store);
  if (!group) {
    group = startGroup(store, load, options);
    groups.set(store, group);
  }
  group.loads.push({ ...options, ledger, load, held });
  if (group.waitsFor !== undefined) options.onWait?.(group.waitsFor);
  const failures = await group.failures;
  if (failures.has(load)) throw failures.get(load);
}

/** Loads that are mended in one turn. */
interface MendGroup {
  readonly loads: HeldBack[];
  /** The load that its turn waits for. */
  waitsFor: string | undefined;
  /** Why loads could not be mended. */
  readonly failures: Promise<Failures>;
}

type Failures = ReadonlyMap<Load, unknown>;

/**
 * The loads that wait to be mended: all that end before the turn has come are mended in it. When ClickHouse has restarted, they
 * are most loads of a command, and in each turn rollups of whole months are compared.
 */
const groups = new WeakMap<Store, MendGroup>();

/** @param first ends the waiting for all of them */
function startGroup(store: Store, { id }: Load, first: MendOptions): MendGroup {
  const loads: HeldBack[] = [];
  const onWait = (other: string) => {
    group.waitsFor = other;
    for (const load of loads) load.onWait?.(other);
  };
  const turn = Load.begin(store, { kind: 'rebuild', file: mendOf(id) }, first.now(), { ...first, onWait });
  const taken = turn.finally(() => groups.delete(store));
  const failures = taken.then((turn) => mendInTurn(turn, loads));
  const group: MendGroup = { loads, waitsFor: undefined, failures };
  return group;
}

async function mendInTurn(turn: Load, loads: readonly HeldBack[]): Promise<Failures> {
  const [{ ledger }] = loads as readonly [HeldBack, ...HeldBack[]];
  const since = performance.now();
  const own: OwnChunk[] = [];
  const failures = new Map<Load, unknown>();
  try {
    const found = await Promise.allSettled(loads.map(ownChunks));
    for (const [n, chunks] of found.entries()) {
      if (chunks.status === 'fulfilled') own.push(...chunks.value);
      else failures.set(loads[n]?.load as Load, chunks.reason);
    }
    if (own.length > 0) await mend(ledger, turn, own, failures);
    await turn.finish();
  } catch (error) {
    const forgetIfLapsed = async () => {
      if (await turn.requeueIfLapsed(ledger, since)) await putInDoubt(ledger, turn, idsOf(own));
    };
    // Others may have loaded a chunk while this one slept, and it has deleted some of that, or stored it once more.
    if (own.length > 0) await forgetIfLapsed().catch(() => {});
    await turn.fail(error);
    for (const { load } of loads) if (!failures.has(load)) failures.set(load, error);
  }
  return failures;
}

const idOf = ({ now }: OwnChunk): string => now.chunk.id;
const idsOf = (chunks: readonly OwnChunk[]): string[] => chunks.map(idOf);

/** @param failures gets the loads that could not be mended while others were */
async function mend(
  ledger: Ledger,
  turn: Load,
  chunks: readonly OwnChunk[],
  failures: Map<Load, unknown>,
): Promise<void> {
  const { store } = ledger;
  const ids = idsOf(chunks);
  const beforeExchange = () => turn.assertTurnHeld();
  const before = async () => turn.assertTurnHeld();
  let own = chunks;
  let broken = await notWhole(ledger, own);
  await markWithdrawn(ledger, turn, broken);
  const months = await monthsOf(store, namedChunks(ids));
  await rewriting(store, monthsWithin(months), async () => {
    for (let attempt = 1; ; attempt++) {
      if (broken.length > 0) {
        await forgetPast(store, broken);
        turn.assertTurnHeld();
        await withdrawChunks(store, broken);
      }
      const differing: DayRange[] = [];
      for (const month of months)
        if ((await verifyRollups(store, catalog, month)).differences.length > 0) differing.push(month);
      if (differing.length > 0) {
        turn.assertTurnHeld();
        await rebuildRollups(store, catalog, differing, { allowUnsettledChunks: true, beforeExchange });
      }
      if (broken.length === 0) {
        // What the rollups lacked would pass for confirmed if revenue was confirmed meanwhile.
        if (differing.length > 0) broken = await notWhole(ledger, own);
        if (broken.length === 0) break;
      } else {
        const stored: OwnChunk[] = [];
        const refused: string[] = [];
        for (const chunk of own) {
          const id = idOf(chunk);
          if (!broken.includes(id)) {
            stored.push(chunk);
            continue;
          }
          const { load, dedupe, held } = chunk;
          stored.push({ ...chunk, now: await countedAnew(ledger, load, held, dedupe) });
          const token = `${id} ${turn.id} ${attempt}`;
          const staged = { batch: heldBy(id, load.id), chunks: [id], token, loads: [load.id], isAnew: true };
          await storeBatch(ledger, staged, before, dedupe ? id : undefined).catch((error: unknown) => {
            if (!isRefusal(error)) throw error;
            failures.set(load, error);
            refused.push(id);
          });
        }
        own = stored.filter(({ load }) => !failures.has(load));
        // What may have arrived of those that were refused is taken out.
        broken = [...(await notWhole(ledger, own)), ...refused];
      }
      await markWithdrawn(ledger, turn, broken);
      if (broken.length === 0 || attempt < mostAttempts) continue;
      for (const { load } of own.filter((chunk) => broken.includes(idOf(chunk))))
        failures.set(
          load,
          new LoadError('ClickHouse does not have all of a chunk: run the same command again'),
        );
      own = own.filter(({ load }) => !failures.has(load));
    }
    await recordDaysChanged(ledger, ids);
    // While it was silent another may have taken a chunk over, and would find it loaded by this one.
    turn.assertTurnHeld();
    await Promise.all(own.map(({ load, now }) => markLoaded(ledger, load, now)));
  });
  for (const { load, held, now } of own) {
    load.counts.rows += now.rows - held.rows;
    load.counts.duplicateRows += now.duplicates - held.duplicates;
  }
}

/**
 * What would be stored of a chunk now: with `dedupe` others may have stored some of its ids since.
 * @throws when some of it is not held back any more
 */
async function countedAnew(
  ledger: Ledger,
  load: Load,
  { chunk }: DeliveredChunk,
  dedupe: boolean,
): Promise<DeliveredChunk> {
  const { id, rows: records } = chunk;
  const counting = { batch: heldBy(id, load.id), records, dedupe: dedupe ? id : undefined };
  const counts = await stagedCounts(ledger, counting);
  const { rows, rejectedRows, duplicates, leftOut } = counts;
  if (rows + rejectedRows + duplicates + leftOut !== chunk.rows)
    throw new LoadError('what was held back of a chunk has expired: run the same command again');
  return { chunk, rows, rejectedRows, duplicates, leftOut };
}

/** Those with other events or rejected rows than what is held back, or with revenue that would pass for confirmed. */
async function notWhole(ledger: Ledger, chunks: readonly OwnChunk[]): Promise<string[]> {
  const isBroken = async ({ now: { chunk, rows, rejectedRows } }: OwnChunk) => {
    const { events, listed, confirmed } = await countEvents(ledger, chunk.id);
    const stored = await storedRows(ledger, chunk.id);
    const isWhole =
      events === rows && listed === rows && rejectedAmong(stored, rejectedRows) === rejectedRows;
    return !isWhole || confirmed === 1;
  };
  const broken = await Promise.all(chunks.map(isBroken));
  return idsOf(chunks.filter((_, n) => broken[n]));
}

/**
 * The chunks of a load that no other load has completed meanwhile. All of them are counted before anything is deleted: what was
 * held back for long may have expired.
 * @throws when they are not those of the load any more
 */
async function ownChunks({ ledger, load, held, dedupe = false }: HeldBack): Promise<OwnChunk[]> {
  const own: OwnChunk[] = [];
  for (const each of held) {
    const { loaded, last } = await stateOf(ledger, each.chunk);
    const lastClaimIsOwn = last?.loadId === load.id;
    const takenBack = lastClaimIsOwn && (await mayBeTakenBack(ledger, last));
    const next = nextStep(mendTable, { loaded, lastClaimIsOwn, takenBack });
    if (next === 'fail') {
      throw new LoadError(
        takenBack
          ? 'the load was unloaded or replaced before it could be mended: to load it all the same, run the same command again'
          : 'another load has taken over a chunk of this file, and mends it: if that one has failed, too, run the same command again',
      );
    }
    if (next === 'mend')
      own.push({ load, dedupe, held: each, now: await countedAnew(ledger, load, each, dedupe) });
  }
  return own;
}
