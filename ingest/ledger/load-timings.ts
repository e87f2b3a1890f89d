import { deadAfterMs, heartbeatMs } from '../../clickhouse/timings.ts';

/** How often a load shows that it runs, and what others make of its silence. All loads of a database must agree. */
export interface LoadTimings {
  /** A running load records a heartbeat this often. */
  readonly heartbeatMs: number;
  /** A load with no heartbeat for this long counts as dead. */
  readonly deadAfterMs: number;
  /** A load that waits for another one looks this often whether it has ended. */
  readonly pollMs: number;
}

export const defaultTimings: LoadTimings = { heartbeatMs, deadAfterMs, pollMs: 250 };
