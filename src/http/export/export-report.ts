import { createHash } from 'node:crypto';
import type { Context, Handler, MiddlewareHandler } from 'hono';
import { linkParameter } from '../../accounts/links.ts';
import { rowColumns } from '../../report/columns.ts';
import { compileReport } from '../../report/compile.ts';
import { InvalidRequest } from '../../report/invalid-request.ts';
import type { Seen } from '../../report/kept/answers.ts';
import { type Plan, planReport } from '../../report/plan.ts';
import { type ReportRequest, RequestReader } from '../../report/request.ts';
import { exportHeaders, isMatched } from '../report/entity-tag.ts';
import { planOfThen, type ReportDeps, report } from '../report/handler.ts';
import { reportHeaders } from '../report/headers.ts';
import { acceptedCoding } from '../report/negotiation.ts';
import { callerOf } from '../request/caller.ts';
import type { HttpEnv } from '../request/env.ts';
import { fieldsOf } from './parameters.ts';
import type { ExportedReport } from './paths.ts';

/** What answers the requests for one report in one format. */
export interface Exporting {
  /** Answers 304 when the caller has the data already. All other requests are passed on. */
  readonly conditional: MiddlewareHandler<HttpEnv>;
  readonly answer: Handler<HttpEnv>;
}

/** A report in one format, by GET, and by HEAD, which computes nothing. */
export function exportReport(deps: ReportDeps, { endpoint, format }: ExportedReport): Exporting {
  const { path, breakdown } = endpoint;
  const { catalog } = deps;
  const requests = new RequestReader(catalog, breakdown);
  const compute = report(deps, endpoint, { formatOf: () => format, requestOf });

  const look = async (c: Context<HttpEnv>, { range, ...asked }: ReportRequest): Promise<Seen> => {
    const account = c.get('account');
    const inSheet = format === 'xlsx' && { currency: deps.currencyOf(account) };
    const today = planReport(catalog, breakdown, account, range, deps.routingOf(account), {
      ...asked,
      ...inSheet,
    });
    const plan = await planOfThen(deps, today, callerOf(c));
    const seen = await deps.answers.look(plan, format);
    return { ...seen, ...(seen.version && { version: versionOf(plan, seen.version) }) };
  };
  // An answer depends on the statement, on the data of the store, and on the release that writes it.
  const versionOf = (plan: Plan, ofStore: string) => {
    const statement = compileReport(plan, { lastUpdateTime: '', unconfirmedDates: [] }, format);
    return createHash('sha256')
      .update(JSON.stringify([statement, ofStore]))
      .digest('base64url')
      .slice(0, 22);
  };

  return {
    conditional: async function conditionalMiddleware(c, next) {
      const ifNoneMatch = c.req.header('if-none-match');
      if (ifNoneMatch === undefined) return next();
      const asked = attempt(() => requestOf(c, requests));
      if (!asked) return next();
      const { version } = await look(c, asked);
      if (version === undefined || !isMatched(ifNoneMatch, version)) return next();
      return c.body(null, 304, exportHeaders({ version }));
    },
    answer: async function exportHandler(c, next) {
      const asked = requestOf(c, requests);
      const { range, options } = asked;
      const { version } = await look(c, asked);
      const exported = { version };
      c.set('exported', exported);
      if (c.req.method !== 'HEAD') return compute(c, next);
      const { 'Adtally-Unconfirmed-Revenue-Dates': _, ...headers } = reportHeaders(
        {
          path,
          currency: deps.currencyOf(c.get('account')),
          range,
          format,
          compared: options.compare_to,
          columns: rowColumns(catalog, breakdown, options),
          lastUpdateTime: deps.lastUpdateTime(),
          lastLoad: deps.lastLoad(),
          cache: 'fwd=method',
          unconfirmedDates: [],
          summary: {},
        },
        acceptedCoding(c),
      );
      return c.body(null, 200, { ...headers, ...exportHeaders(exported) });
    },
  };
}

/** @throws {InvalidRequest} */
function requestOf(c: Context<HttpEnv>, requests: RequestReader): ReportRequest {
  const { searchParams } = new URL(c.req.url);
  // The link was verified at login.
  searchParams.delete(linkParameter);
  return requests.read(fieldsOf(searchParams));
}

/** Undefined for a wrong request, which is refused behind the rate limit. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof InvalidRequest) return undefined;
    throw error;
  }
}
