import { Hono } from 'hono';
import type { Store } from '../../clickhouse/client.ts';
import { NewerStore, pendingMigrations } from '../../clickhouse/migrate/migrate.ts';
import type { HttpEnv } from './env.ts';
import { Problem } from './problems.ts';

/** `/healthz`: the process responds. `/readyz`: ClickHouse is reachable and migrated. Neither needs a token. */
export function health(store: Store): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
    .get('/healthz', (c) => c.json({ status: 'ok' }))
    .get('/readyz', async (c) => {
      const pending = await pendingMigrations(store).catch((cause: unknown) => {
        // During a rollout, services of the older version keep working.
        if (cause instanceof NewerStore) return [];
        throw new Problem('not_ready', 'the store cannot be reached', { cause });
      });
      if (pending.length > 0) throw new Problem('not_ready', 'the store needs adtally migrate');
      return c.json({ status: 'ok' });
    });
}
