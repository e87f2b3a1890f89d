import type { Handler } from 'hono';
import type * as z from 'zod';
import { questionPath } from '../../../catalog/breakdowns.ts';
import { tablesOf } from '../../../clickhouse/consistency/damaged-parts.ts';
import { accountCloses, closesBody } from '../../close/account-closes.ts';
import { adjustmentsBody, adjustmentsRequest, closedBreakdown } from '../../report/adjustments.ts';
import { type ChangesOptions, changesBody, changesSince } from '../../report/changes/changes.ts';
import { everyDay, type ShardRouting } from '../../report/plan.ts';
import { parseBody } from '../../report/request.ts';
import type { HttpEnv } from '../request/env.ts';
import { type ReportDeps, report } from './handler.ts';
import { inPlace, type Place } from './in-place.ts';
import { requireJsonAccepted } from './negotiation.ts';

export type QuestionDeps = Pick<ReportDeps, 'damage' | 'gate' | 'routingOf'> & ChangesOptions;

/** Answers which days of a family changed since a time. */
export function changesOf(deps: QuestionDeps, family: string): Handler<HttpEnv> {
  const place: Place = {
    // It reads about as little as a report of one day.
    size: 'small',
    // What is missing may have changed on any day.
    questioned: { days: [everyDay], tables: tablesOf(deps.catalog, family) },
  };
  return question(deps, changesBody, place, ({ changed_since: since }, asking, signal) =>
    changesSince(deps, { family, since, ...asking }, signal),
  );
}

/** A question about closes is small, and these tables answer it. */
export const closesPlace: Place = {
  size: 'small',
  questioned: { days: [], tables: ['closes', 'placements'] },
};

/** Answers which months of a range were closed. */
export function closesOf(deps: QuestionDeps, family: string): Handler<HttpEnv> {
  return question(deps, closesBody, closesPlace, (range, asking, signal) =>
    accountCloses(deps.reader, { family, ...asking }, range, signal),
  );
}

/** Answers what changed in a family after months were closed: a report like others, in every format. */
export function adjustmentsOf(deps: ReportDeps, family: string): Handler<HttpEnv> {
  const { catalog } = deps;
  const schema = adjustmentsBody(catalog, family);
  const endpoint = { path: questionPath(family, 'adjustments'), breakdown: closedBreakdown(catalog, family) };
  return report(deps, endpoint, (c) => adjustmentsRequest(catalog, family, parseBody(schema, c.get('body'))));
}

/** Who asks. */
interface Asking {
  readonly account: string;
  readonly routing: ShardRouting | undefined;
}

/** Answers with JSON what is found for the fields of the body. */
function question<Fields, Result extends object>(
  deps: QuestionDeps,
  schema: z.ZodType<Fields>,
  place: Place,
  find: (fields: Fields, asking: Asking, signal: AbortSignal) => Promise<Result>,
): Handler<HttpEnv> {
  return async function questionHandler(c) {
    requireJsonAccepted(c);
    const fields = parseBody(schema, c.get('body'));
    const account = c.get('account');
    const asking = { account, routing: deps.routingOf(account) };
    const result = await inPlace(deps, c, place, (signal) => find(fields, asking, signal));
    return c.json({ result }, 200, { Vary: 'Accept' });
  };
}
