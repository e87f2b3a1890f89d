import type { Handler } from 'hono';
import { tablesOf } from '../../../clickhouse/consistency/damaged-parts.ts';
import { type ChangesOptions, changesBody, changesSince } from '../../report/changes/changes.ts';
import { everyDay } from '../../report/plan.ts';
import { parseBody } from '../../report/request.ts';
import type { HttpEnv } from '../request/env.ts';
import type { ReportDeps } from './handler.ts';
import { inPlace, type Place } from './in-place.ts';
import { requireJsonAccepted } from './negotiation.ts';

export type ChangesDeps = Pick<ReportDeps, 'damage' | 'gate' | 'routingOf'> & ChangesOptions;

/** Answers which days of a family changed since a time. */
export function changesOf(deps: ChangesDeps, family: string): Handler<HttpEnv> {
  const { catalog, routingOf } = deps;
  const place: Place = {
    // It reads about as little as a report of one day.
    size: 'small',
    // What is missing may have changed on any day.
    questioned: { days: [everyDay], tables: tablesOf(catalog, family) },
  };
  return async function changesHandler(c) {
    requireJsonAccepted(c);
    const { changed_since: since } = parseBody(changesBody, c.get('body'));
    const account = c.get('account');
    const result = await inPlace(deps, c, place, (signal) =>
      changesSince(deps, { family, account, since, routing: routingOf(account) }, signal),
    );
    return c.json({ result }, 200, { Vary: 'Accept' });
  };
}
