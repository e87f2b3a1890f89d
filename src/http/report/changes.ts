import type { Handler } from 'hono';
import { tablesOf } from '../../../clickhouse/consistency/damaged-parts.ts';
import { type Changes, changesBody } from '../../report/changes/changes.ts';
import { everyDay } from '../../report/plan.ts';
import { parseBody } from '../../report/request.ts';
import { callerOf } from '../request/caller.ts';
import type { HttpEnv } from '../request/env.ts';
import type { ReportDeps } from './handler.ts';
import { requireJsonAccepted } from './negotiation.ts';

export interface ChangesDeps extends Pick<ReportDeps, 'catalog' | 'damage' | 'gate' | 'routingOf'> {
  readonly changes: Changes;
}

/** Answers which days of a family changed since a time. */
export function changesOf(
  { catalog, changes, damage, gate, routingOf }: ChangesDeps,
  family: string,
): Handler<HttpEnv> {
  return async function changesHandler(c) {
    requireJsonAccepted(c);
    const { changed_since: since } = parseBody(changesBody, c.get('body'));
    const account = c.get('account');
    const signal = callerOf(c);
    // It reads about as little as a report of one day.
    const slot = await gate.enter(account, 'small', signal);
    try {
      const question = { family, account, since, routing: routingOf(account) };
      // What is missing may have changed on any day.
      const questioned = { days: [everyDay], tables: tablesOf(catalog, family) };
      const result = await damage.whole(questioned, () => changes.since(question, signal));
      return c.json({ result }, 200, { Vary: 'Accept' });
    } finally {
      slot.leave();
    }
  };
}
