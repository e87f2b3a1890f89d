import type { Handler } from 'hono';
import { questionPath } from '../../../catalog/breakdowns.ts';
import { adjustmentsBody, adjustmentsRequest, closedBreakdown } from '../../report/adjustments.ts';
import { parseBody } from '../../report/request.ts';
import type { HttpEnv } from '../request/env.ts';
import { type ReportDeps, report } from './handler.ts';

/** Answers what changed in a family after months were closed: a report like others, in every format. */
export function adjustmentsOf(deps: ReportDeps, family: string): Handler<HttpEnv> {
  const { catalog } = deps;
  const schema = adjustmentsBody(catalog, family);
  const endpoint = { path: questionPath(family, 'adjustments'), breakdown: closedBreakdown(catalog, family) };
  return report(deps, endpoint, (c) => adjustmentsRequest(catalog, family, parseBody(schema, c.get('body'))));
}
