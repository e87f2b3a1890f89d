import { catalog } from '../../catalog/catalog.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { rewriting } from '../../clickhouse/consistency/rewrites.ts';
import { type DayRange, verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { monthsWithin } from '../../clickhouse/months.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { storeBatch } from '../delivery/batches.ts';
import { stateOf } from '../delivery/chunk-claims.ts';
import {
  countEvents,
  type DeliveredChunk,
  markLoaded,
  markWithdrawn,
  recordDaysChanged,
  storedRows,
} from '../delivery/chunk-outcome.ts';
import { mendTable, nextStep } from '../delivery/chunk-states.ts';
import { heldBy } from '../delivery/staging.ts';
import { forgetPast, putInDoubt, withdrawChunks } from '../delivery/withdraw-chunks.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { Load, type LoadOptions } from '../ledger/load.ts';
import { monthsOf, namedChunks } from './chunk-months.ts';

/** ClickHouse can die in each of them. */
const mostAttempts = 5;

interface MendOptions extends LoadOptions {
  readonly now: () => Date;
  /** Events whose id is present are left out. */
  readonly dedupe?: boolean;
}

/**
 * Mends chunks of which an unknown part has arrived, and marks them as loaded. A load has held them back, and has ended: loads
 * that wait for one of them have to end first. Where everything is there, in the events and in the rollups, that is all.
 * Otherwise what has arrived leaves the events, then, by exchange, the rollups, and the chunk is stored as a new one: reports have
 * it once or not, and never twice. Killed at any point, the next load of the chunk does all of it again.
 * @throws when another load has taken over a chunk, which may be incomplete now
 */
export async function mendChunks(
  ledger: Ledger,
  load: Load,
  held: readonly DeliveredChunk[],
  options: MendOptions,
): Promise<void> {
  const turn = await Load.begin(
    ledger.store,
    { kind: 'rebuild', file: `chunks of load ${load.id} that were in doubt` },
    options.now(),
    options,
  );
  const since = performance.now();
  let own: readonly DeliveredChunk[] = [];
  try {
    own = await ownChunks(ledger, load, held);
    if (own.length > 0) await mend(ledger, load, turn, own, options);
    await turn.finish();
  } catch (error) {
    const forgetIfLapsed = async () => {
      if (await turn.requeueIfLapsed(ledger, since)) await putInDoubt(ledger, turn, idsOf(own));
    };
    // Others may have loaded a chunk while this one slept, and it has deleted some of that, or stored it once more.
    const forgotten = own.length > 0 ? forgetIfLapsed() : Promise.resolve();
    await forgotten.finally(() => turn.fail(error));
    throw error;
  }
}

const idsOf = (chunks: readonly DeliveredChunk[]): string[] => chunks.map(({ chunk }) => chunk.id);

async function mend(
  ledger: Ledger,
  load: Load,
  turn: Load,
  own: readonly DeliveredChunk[],
  { dedupe = false }: MendOptions,
): Promise<void> {
  const { store, retries } = ledger;
  const ids = idsOf(own);
  const beforeExchange = () => turn.assertTurnHeld();
  const before = async () => turn.assertTurnHeld();
  let broken = await notWhole(ledger, own, 'with a look at revenue');
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
      if (differing.length > 0)
        await rebuildRollups(store, catalog, differing, { allowUnsettledChunks: true, beforeExchange });
      if (broken.length === 0) break;
      for (const id of broken) {
        const token = `${id} ${turn.id} ${attempt}`;
        const staged = { batch: heldBy(id, load.id), chunks: [id], token, loads: [load.id], isAnew: true };
        await storeBatch(store, staged, { before, retries, dedupe: dedupe ? id : undefined });
      }
      broken = await notWhole(ledger, own);
      if (broken.length > 0 && attempt === mostAttempts)
        throw new Error('ClickHouse does not have all of a chunk: run the same command again');
      await markWithdrawn(ledger, turn, broken);
    }
    await recordDaysChanged(ledger, ids);
    for (const delivered of own) {
      // While it was silent another may have taken the chunk over, and would find it loaded by this one.
      turn.assertTurnHeld();
      await markLoaded(ledger, load, delivered);
    }
  });
}

/** Those with other events or rejected rows than what is held back, or with revenue that would pass for confirmed. */
async function notWhole(
  ledger: Ledger,
  own: readonly DeliveredChunk[],
  how?: 'with a look at revenue',
): Promise<string[]> {
  const broken: string[] = [];
  for (const { chunk, rows, rejectedRows } of own) {
    const { events, listed, confirmed } = await countEvents(ledger, chunk);
    const stored = await retrying(() => storedRows(ledger.store, chunk.id), ledger.retries);
    const isWhole = events === rows && listed === rows && stored.rejectedRows === rejectedRows;
    if (!isWhole || (how && confirmed)) broken.push(chunk.id);
  }
  return broken;
}

/** The chunks that no other load has completed meanwhile. @throws when another load has taken over one of them */
async function ownChunks(
  ledger: Ledger,
  load: Load,
  held: readonly DeliveredChunk[],
): Promise<DeliveredChunk[]> {
  const own: DeliveredChunk[] = [];
  for (const each of held) {
    const { loaded, last } = await stateOf(ledger, each.chunk);
    const next = nextStep(mendTable, { loaded, lastClaimIsOwn: last === load.id });
    if (next === 'mend') own.push(each);
    if (next === 'fail') {
      throw new Error(
        'another load has taken over a chunk of this file and did not complete it: run the same command again to complete it',
      );
    }
  }
  return own;
}
