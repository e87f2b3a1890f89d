/** How often a load shows that it runs, and what others make of its silence. All loads of a database must agree. */
export interface LoadTimings {
  /** A running load records a heartbeat this often. */
  readonly heartbeatMs: number;
  /** A load with no heartbeat for this long counts as dead. */
  readonly deadAfterMs: number;
  /** A load that waits for another one looks this often whether it has ended. */
  readonly pollMs: number;
}

export const defaultTimings: LoadTimings = { heartbeatMs: 3_000, deadAfterMs: 15_000, pollMs: 250 };

/** Earlier than others count it as dead, a load has to find out for itself whether they may. */
export function lapsedAfterMs({ deadAfterMs }: LoadTimings): number {
  return (deadAfterMs * 2) / 3;
}
