import type { Context } from 'hono';
import type { Questioned } from '../../../clickhouse/consistency/damaged-parts.ts';
import { callerOf } from '../request/caller.ts';
import type { HttpEnv } from '../request/env.ts';
import type { Slot } from './gate/report-gate.ts';
import type { ReportDeps } from './handler.ts';

/** How large a place is, and what may not be damaged. */
export interface Place {
  readonly size: Slot['size'];
  readonly questioned: Questioned;
}

/**
 * What work finds in a place among the running reports, on a store that is whole before and after it.
 * @param work takes a signal that fires when the caller leaves
 * @throws {Problem} `too_many_reports`
 * @throws {DamagedFigures}
 */
export function inPlace<Result>(
  { gate, damage }: Pick<ReportDeps, 'gate' | 'damage'>,
  c: Context<HttpEnv>,
  { size, questioned }: Place,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const signal = callerOf(c);
  return gate.within(c.get('account'), size, signal, () => damage.whole(questioned, () => work(signal)));
}
