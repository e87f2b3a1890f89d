import { setTimeout as delay } from 'node:timers/promises';
import { Hono } from 'hono';
import type { Store } from '../../../clickhouse/client.ts';
import { NewerStore, pendingMigrations, UnfinishedRestore } from '../../../clickhouse/migrate/migrate.ts';
import { Refreshed } from '../../../clickhouse/refreshed.ts';
import type { Metrics } from '../../observe/metrics.ts';
import type { HttpEnv } from '../request/env.ts';
import { onPath, otherMethods } from '../request/on-path.ts';
import { Problem, problemResponse } from '../request/problems.ts';
import { withAnswerHeaders } from './answer-headers.ts';

/** A finding that is older than this counts as a failure: ClickHouse hangs. */
const maxAgeMs = 4_000;
/** After this many checks in a row, one a second, without a current finding, nobody waits for ClickHouse any more. */
const hangsAfter = 6;

/** How long a caller waits for a check that is late. */
const lateMs = 2_000;

type Finding = 'ready' | 'unreachable' | 'unmigrated' | 'being restored';

/** Whether ClickHouse is reachable and migrated: one check every second, however often callers ask. */
export class Readiness {
  readonly #finding: Refreshed<Finding>;
  readonly #onHang: () => void;
  #timer: NodeJS.Timeout | undefined;
  #hung = 0;

  /** @param onHang called every second while ClickHouse has answered no check for ten */
  constructor(store: Store, onHang: () => void) {
    this.#onHang = onHang;
    // `find` never fails, so there is no error to report.
    this.#finding = new Refreshed(() => find(store), { everyMs: 1_000, maxAgeMs, onError: () => undefined });
  }

  start(): Promise<void> {
    this.stop();
    // One late look is no proof: the timer may run before an answer that has already arrived.
    this.#timer = setInterval(() => {
      this.#hung = this.#finding.isCurrent ? 0 : this.#hung + 1;
      if (this.#hung >= hangsAfter) this.#onHang();
    }, 1_000).unref();
    return this.#finding.start();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#finding.stop();
  }

  get finding(): Finding {
    const { value = 'unreachable', isCurrent } = this.#finding;
    return isCurrent ? value : 'unreachable';
  }

  /**
   * As `finding`; where the last check is too old, the next one is waited for, up to two seconds. This process may have been
   * too busy to run its checks, and a caller is not to be sent away for that.
   */
  async latest(): Promise<Finding> {
    if (!this.#finding.isCurrent) await Promise.race([this.#lookAgain(), delay(lateMs)]);
    return this.finding;
  }

  /** A check that began before this process was too busy counts from its begin. */
  async #lookAgain(): Promise<void> {
    await this.#finding.settled();
    await this.#finding.refresh();
  }
}

async function find(store: Store): Promise<Finding> {
  try {
    return (await pendingMigrations(store)).length > 0 ? 'unmigrated' : 'ready';
  } catch (error) {
    if (error instanceof UnfinishedRestore) return 'being restored';
    // During a rollout, services of the older version keep working.
    return error instanceof NewerStore ? 'ready' : 'unreachable';
  }
}

export interface OperatorDeps {
  readonly readiness: Readiness;
  readonly metrics: Metrics;
}

/** `/healthz`: the process responds. */
export function health(): Hono<HttpEnv> {
  return new Hono<HttpEnv>().get('/healthz', (c) => c.json({ status: 'ok' })).all(otherMethods('GET, HEAD'));
}

const unreadiness = {
  unmigrated: 'the store needs adtally migrate',
  'being restored': 'a restore has not ended: adtally status tells how to end it',
  unreachable: undefined,
} as const;

/** The paths for the operator: `/readyz`, whether ClickHouse is reachable and migrated, and `/metrics`. */
export function operator({ readiness, metrics }: OperatorDeps): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  onPath(app, '/readyz', { allow: 'GET, HEAD' }, async (c) => {
    const finding = await readiness.latest();
    if (finding !== 'ready') throw new Problem('not_ready', unreadiness[finding]);
    return c.json({ status: 'ok' });
  });
  onPath(app, '/metrics', { allow: 'GET, HEAD' }, async (c) =>
    c.body(await metrics.text(), 200, { 'content-type': metrics.registry.contentType }),
  );
  return app;
}

/** The app of a port that only the operator reaches. */
export function createOperatorApp(deps: OperatorDeps): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  app.use(withAnswerHeaders);
  app.route('/', health());
  app.route('/', operator(deps));
  app.notFound((c) => problemResponse(c, new Problem('not_found')));
  app.onError((error, c) =>
    problemResponse(
      c,
      error instanceof Problem
        ? error
        : new Problem('internal_error', 'the measurements could not be collected'),
    ),
  );
  return app;
}
