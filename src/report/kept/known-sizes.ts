import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { rollupTable } from '../../../catalog/breakdowns.ts';
import { daysBetween } from '../days.ts';
import type { ReportFormatName } from '../formats.ts';
import type { Plan } from '../plan.ts';

/** What a report turned out to be: longer than what is kept, or still at work after a long time. */
export type Turned = 'too long' | 'slow';

/** A report that takes longer is large. A busy ClickHouse takes ten times as long as an idle one: 5 to 50 ms for a small one. */
export const slowMs = 2_000;

/** As data and machines change, so does what is large. */
const rememberMs = 600_000;
const maxRemembered = 10_000;

/**
 * Reports that turned out to be large. Nobody asks ClickHouse how large one is: each begins as small, unless a report
 * of the same account and breakdown over as many days or fewer turned out otherwise.
 */
export class KnownSizes {
  /** The fewest days that it was seen with. */
  readonly #seen = new LRUCache<string, number>({ max: maxRemembered, ttl: rememberMs });

  has(turned: Turned, plan: Plan, format: ReportFormatName): boolean {
    return (this.#seen.get(keyOf(turned, plan, format)) ?? Number.POSITIVE_INFINITY) <= daysOf(plan);
  }

  add(turned: Turned, plan: Plan, format: ReportFormatName): void {
    if (!this.has(turned, plan, format)) this.#seen.set(keyOf(turned, plan, format), daysOf(plan));
  }

  /** Not where the plan has fewer days than were seen: those may still be slow. */
  delete(turned: Turned, plan: Plan, format: ReportFormatName): void {
    if (this.has(turned, plan, format)) this.#seen.delete(keyOf(turned, plan, format));
  }
}

const daysOf = ({ days }: Plan): number => daysBetween(days.first, days.last);

function keyOf(turned: Turned, { breakdown, options, account }: Plan, format: ReportFormatName): string {
  const rows = `${rollupTable(breakdown.family, breakdown.dimensions)} ${breakdown.day}`;
  // Options can be as long as a body.
  const asked =
    Object.keys(options).length > 0 && createHash('sha1').update(JSON.stringify(options)).digest('base64');
  return `${turned} ${format} ${rows} ${asked} ${account}`;
}
