import type { Store } from '../clickhouse/client.ts';
import { select } from '../clickhouse/client.ts';
import { onShards } from '../clickhouse/cluster.ts';
import { rebuild } from '../clickhouse/rebuild.ts';
import { type DayRange, verify } from '../clickhouse/verify.ts';
import { catalog } from '../src/catalog.ts';
import type { Ledger, SentChunk } from './ledger.ts';
import { Load, type WaitOptions } from './loads.ts';

/**
 * A chunk that is whole in the events while each rollup may lack it or have it twice, because its name no longer
 * tells the engine all that arrived (see `Memory`). Where even its events could not be relied on, they were
 * withdrawn and sent anew under another name. Only when its rollups are seen to is it loaded; interrupted anywhere,
 * it is still in doubt.
 */
export interface DoubtfulChunk {
  readonly chunk: SentChunk;
  readonly rows: number;
  readonly rejectedRows: number;
}

/** Removes what of a chunk has arrived in the events. */
export async function withdrawChunk(store: Store, chunk: string): Promise<void> {
  await onShards(store, async (shard) => {
    for (const table of ['events', 'chunk_days']) {
      await shard.store.command({
        query: `ALTER TABLE ${table} DELETE WHERE chunk = {chunk:String}`,
        query_params: { chunk },
        clickhouse_settings: { mutations_sync: '2' },
      });
    }
  });
}

/**
 * Compares the rollups with the events on the days of these chunks, recomputes the months that differ, and marks
 * the chunks as loaded. The load that sent them has ended, so that loads which wait for a chunk of it can end
 * before the comparison.
 * @throws when such a load has taken over a chunk: what it left of it must not pass for whole
 */
export async function settleChunks(
  store: Store,
  ledger: Ledger,
  load: Load,
  doubtful: readonly DoubtfulChunk[],
  now: () => Date,
  options: WaitOptions = {},
): Promise<void> {
  const [range] = await select<{ from: string; to: string }>(
    store,
    'SELECT toString(min(day)) AS from, toString(max(day)) AS to FROM chunk_days WHERE chunk IN {chunks:Array(String)}',
    { chunks: doubtful.map(({ chunk }) => chunk.chunk) },
  );
  if (!range) throw new Error('the store did not tell the days of the chunks');
  const file = `rollups ${range.from} to ${range.to}, for load ${load.id}`;
  const rebuilding = await Load.begin(store, { kind: 'rebuild', file }, now(), options);
  try {
    const own = await ownChunks(ledger, load, doubtful);
    const settled = own.map(({ chunk }) => chunk.chunk);
    const wrong = own.length > 0 ? await wrongDays(store, range) : undefined;
    if (wrong) await rebuild(store, catalog, wrong, undefined, settled);
    for (const { chunk, rows, rejectedRows } of own) await ledger.markLoaded(load, chunk, rows, rejectedRows);
    await rebuilding.finish();
  } catch (error) {
    await rebuilding.fail(error);
    throw error;
  }
}

/** From the first to the last day on which a rollup differs from the events; undefined if none does. */
async function wrongDays(store: Store, range: DayRange): Promise<DayRange | undefined> {
  const { differences, more } = await verify(store, catalog, range);
  if (more) return range;
  const days = differences.map(({ day }) => day).sort();
  const [from] = days;
  const to = days.at(-1);
  return from && to ? { from, to } : undefined;
}

/** Those that no other load has completed meanwhile. */
async function ownChunks(
  ledger: Ledger,
  load: Load,
  doubtful: readonly DoubtfulChunk[],
): Promise<DoubtfulChunk[]> {
  const own: DoubtfulChunk[] = [];
  for (const each of doubtful) {
    const outcome = await ledger.outcome(load, each.chunk);
    if (outcome === 'own') own.push(each);
    if (outcome === 'taken over') {
      throw new Error(
        'another load has taken over a chunk that an earlier one left in doubt: run the same command again, which sees to it that the chunk is whole',
      );
    }
  }
  return own;
}
