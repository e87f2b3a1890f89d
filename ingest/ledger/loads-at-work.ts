import { type Store, select } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import { onNodes } from '../../clickhouse/cluster/on-nodes.ts';
import { isTransient } from '../../clickhouse/retry.ts';

const prefix = 'load ';

/** The setting `log_comment` of a statement that stores what a load sends. */
export function commentOf(loadId: string): string {
  return `${prefix}${loadId}`;
}

/**
 * Ids of the loads whose events a server is storing now. The statement of a loader that was killed goes on in the server
 * once its data are there. A server that does not answer stores nothing that the others would have to wait for.
 */
export async function loadsAtWork(store: Store): Promise<ReadonlySet<string>> {
  const statements = (server: Store) =>
    select<{ id: string }>(
      server,
      `SELECT DISTINCT substring(Settings['log_comment'], ${prefix.length + 1}) AS id FROM system.processes
       WHERE startsWith(Settings['log_comment'], '${prefix}')`,
    );
  const layout = await layoutOf(store);
  if (!layout) return new Set((await statements(store)).map(({ id }) => id));
  const ids = new Set<string>();
  for (const node of layout.nodes) {
    const found = await onNodes(store, [node], layout.local, statements).catch((error: unknown) => {
      if (error instanceof Error && isTransient(error)) return [];
      throw error;
    });
    for (const { id } of found.flat()) ids.add(id);
  }
  return ids;
}
