import { catalog } from '../../catalog/catalog.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { rewriting } from '../../clickhouse/consistency/rewrites.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { monthsWithin } from '../../clickhouse/months.ts';
import { stateOf } from '../delivery/chunk-claims.ts';
import { type DeliveredChunk, markLoaded, recordDaysChanged } from '../delivery/chunk-outcome.ts';
import { nextStep, repairTable } from '../delivery/chunk-states.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { Load, type LoadOptions } from '../ledger/load.ts';
import { monthsOf, namedChunks } from './chunk-months.ts';

/**
 * A chunk whose events are complete but whose rollups may miss it or count it twice, because deduplication could not be
 * relied on (see `DedupState`), or because its events were withdrawn and sent again. It counts as loaded only when its
 * rollups have been checked; until then, wherever a load is interrupted, the next one has to send the chunk again.
 */

/**
 * Compares the rollups with the events on the days of these chunks, rebuilds the months that differ, and marks the
 * chunks as loaded. The load that sent them must have ended: loads that wait for one of its chunks have to end before
 * the comparison.
 * @throws when such a load has taken over a chunk, which may be incomplete now
 */
export async function repairRollupsOf(
  ledger: Ledger,
  load: Load,
  unsettled: readonly DeliveredChunk[],
  now: () => Date,
  options: LoadOptions = {},
): Promise<void> {
  const { store } = ledger;
  const chunks = namedChunks(unsettled.map(({ chunk }) => chunk.id));
  const months = await monthsOf(store, chunks);
  const file = `rollups of ${months.map(({ from }) => from.slice(0, 7)).join(', ')}, for load ${load.id}`;
  const repair = await Load.begin(store, { kind: 'rebuild', file }, now(), options);
  try {
    const own = await ownChunks(ledger, load, unsettled);
    await rewriting(store, own.length > 0 ? monthsWithin(months) : [], async () => {
      for (const month of own.length > 0 ? months : []) {
        if ((await verifyRollups(store, catalog, month)).differences.length === 0) continue;
        await rebuildRollups(store, catalog, month, {
          allowUnsettledChunks: true,
          beforeExchange: () => repair.assertTurnHeld(),
        });
      }
      if (own.length > 0) {
        await recordDaysChanged(
          ledger,
          own.map(({ chunk }) => chunk.id),
        );
      }
      for (const delivered of own) {
        // While it was silent another may have taken the chunk over, and would find it loaded by this one.
        repair.assertTurnHeld();
        await markLoaded(ledger, load, delivered);
      }
    });
    await repair.finish();
  } catch (error) {
    await repair.fail(error);
    throw error;
  }
}

/** The chunks that no other load has completed meanwhile. @throws when another load has taken over one of them */
async function ownChunks(
  ledger: Ledger,
  load: Load,
  unsettled: readonly DeliveredChunk[],
): Promise<DeliveredChunk[]> {
  const own: DeliveredChunk[] = [];
  for (const each of unsettled) {
    const { loaded, last } = await stateOf(ledger, each.chunk);
    const next = nextStep(repairTable, { loaded, lastClaimIsOwn: last === load.id });
    if (next === 'repair') own.push(each);
    if (next === 'fail') {
      throw new Error(
        'another load has taken over a chunk of this file and did not complete it: run the same command again to complete it',
      );
    }
  }
  return own;
}
