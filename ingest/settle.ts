import type { Store } from '../clickhouse/client.ts';
import { select } from '../clickhouse/client.ts';
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
  for (const table of ['events', 'chunk_days']) {
    await store.command({
      query: `ALTER TABLE ${table} DELETE WHERE chunk = {chunk:String}`,
      query_params: { chunk },
      clickhouse_settings: { mutations_sync: '2' },
    });
  }
}

/** Recomputes the rollups of the months of these chunks, which have been sent anew, and marks them as loaded. */
export async function settleChunks(
  store: Store,
  ledger: Ledger,
  load: Load,
  forgotten: readonly ForgottenChunk[],
  now: () => Date,
  options: WaitOptions = {},
): Promise<void> {
  const chunks = forgotten.map(({ chunk }) => chunk.chunk);
  const [range] = await select<{ from: string; to: string }>(
    store,
    'SELECT toString(min(day)) AS from, toString(max(day)) AS to FROM chunk_days WHERE chunk IN {chunks:Array(String)}',
    { chunks },
  );
  if (!range) throw new Error('the store did not tell the days of the chunks');
  const file = `rollups ${range.from} to ${range.to}, for load ${load.id}`;
  const rebuilding = await Load.begin(store, { kind: 'rebuild', file }, now(), options);
  try {
    await rebuild(store, catalog, range, undefined, chunks);
    for (const { chunk, rows, rejectedRows } of forgotten)
      await ledger.markLoaded(load, chunk, rows, rejectedRows);
    await rebuilding.finish();
  } catch (error) {
    await rebuilding.fail(error);
    throw error;
  }
}
