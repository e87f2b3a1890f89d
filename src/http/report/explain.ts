import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Handler } from 'hono';
import { historyTables } from '../../../clickhouse/consistency/damaged-parts.ts';
import { questionedBy } from '../../report/damage.ts';
import { compileExplanation, differs } from '../../report/explain/compile-explanation.ts';
import { explainBody, explainedRow } from '../../report/explain/explain-request.ts';
import { parseBody } from '../../report/request.ts';
import { schedulingSettings } from '../../report/stream.ts';
import type { HttpEnv } from '../request/env.ts';
import { Problem, retryIn } from '../request/problems.ts';
import type { ReportDeps } from './handler.ts';
import { inPlace, type Place } from './in-place.ts';
import { requireJsonAccepted } from './negotiation.ts';

/**
 * The tables that a load writes show it one after the other, so a row and its events may differ while it arrives: it is
 * asked again after so many ms.
 */
const pausesMs = [100, 300, 900];

/** Answers which loads a row of a family is made of. */
export function explanationOf(deps: ReportDeps, family: string): Handler<HttpEnv> {
  const { catalog, reader, routingOf, timeoutSeconds } = deps;
  const schema = explainBody(catalog, family);
  return async function explanationHandler(c) {
    requireJsonAccepted(c);
    const fields = parseBody(schema, c.get('body'));
    const account = c.get('account');
    const explained = explainedRow(catalog, family, account, fields, routingOf(account));
    const { query, params, settings } = compileExplanation(explained);
    const statement = {
      query: `${query}\nFORMAT JSONEachRow`,
      params,
      settings: { ...settings, ...schedulingSettings(false, timeoutSeconds) },
    };
    // It reads events, which are many more than the rows of a report.
    const place: Place = { size: 'large', questioned: questionedBy(explained.plan, historyTables) };
    const answer = await inPlace(deps, c, place, (signal) =>
      askedAgain(async () => text(await reader.stream(statement, { signal })), signal),
    );
    return c.body(answer, 200, { 'content-type': 'application/json', Vary: 'Accept' });
  };
}

/** @throws {Problem} `explanation_differs` */
async function askedAgain(ask: () => Promise<string>, signal: AbortSignal): Promise<string> {
  for (const pauseMs of [...pausesMs, undefined]) {
    try {
      return await ask();
    } catch (cause) {
      if (!differs(cause)) throw cause;
      if (pauseMs === undefined) break;
      await delay(pauseMs, undefined, { signal });
    }
  }
  throw new Problem('explanation_differs', undefined, retryIn(5));
}
