import type { Store } from '../clickhouse/client.ts';
import { select } from '../clickhouse/client.ts';
import { onShards } from '../clickhouse/cluster.ts';
import { rebuild } from '../clickhouse/rebuild.ts';
import { catalog } from '../src/catalog.ts';
import type { Ledger, SentChunk } from './ledger.ts';
import { Load, type WaitOptions } from './loads.ts';

/**
 * A chunk in doubt that the engine has forgotten: its name no longer keeps it from being counted twice, and each
 * rollup may have counted it or not. It is withdrawn from the events, sent anew under another name, and the
 * rollups of its months are recomputed; only then is it loaded. Interrupted anywhere, it is still in doubt.
 */
export interface ForgottenChunk {
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
 * Recomputes the rollups of the months of these chunks, which have been sent anew, and marks them as loaded. The
 * load that sent them has ended, so that loads which wait for a chunk of it can end before the rebuild.
 * @throws when such a load has taken over a chunk: what it left of it must not pass for whole
 */
export async function settleChunks(
  store: Store,
  ledger: Ledger,
  load: Load,
  forgotten: readonly ForgottenChunk[],
  now: () => Date,
  options: WaitOptions = {},
): Promise<void> {
  const [range] = await select<{ from: string; to: string }>(
    store,
    'SELECT toString(min(day)) AS from, toString(max(day)) AS to FROM chunk_days WHERE chunk IN {chunks:Array(String)}',
    { chunks: forgotten.map(({ chunk }) => chunk.chunk) },
  );
  if (!range) throw new Error('the store did not tell the days of the chunks');
  const file = `rollups ${range.from} to ${range.to}, for load ${load.id}`;
  const rebuilding = await Load.begin(store, { kind: 'rebuild', file }, now(), options);
  try {
    const own = await ownChunks(ledger, load, forgotten);
    const settled = own.map(({ chunk }) => chunk.chunk);
    if (own.length > 0) await rebuild(store, catalog, range, undefined, settled);
    for (const { chunk, rows, rejectedRows } of own) await ledger.markLoaded(load, chunk, rows, rejectedRows);
    await rebuilding.finish();
  } catch (error) {
    await rebuilding.fail(error);
    throw error;
  }
}

/** Those that no other load has completed meanwhile. */
async function ownChunks(
  ledger: Ledger,
  load: Load,
  forgotten: readonly ForgottenChunk[],
): Promise<ForgottenChunk[]> {
  const own: ForgottenChunk[] = [];
  for (const each of forgotten) {
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
