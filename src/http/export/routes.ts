import { createHash } from 'node:crypto';
import { type Context, Hono, type MiddlewareHandler, type Next } from 'hono';
import { linkParameter } from '../../accounts/links.ts';
import { compileReport } from '../../report/compile.ts';
import type { ReportFormatName } from '../../report/formats.ts';
import { InvalidRequest } from '../../report/invalid-request.ts';
import type { Plan } from '../../report/plan.ts';
import { type ReportRequest, RequestReader } from '../../report/request.ts';
import { answered, beginning, planOf, type ReportDeps } from '../report/handler.ts';
import { exportHeaders, reportHeaders } from '../report/headers.ts';
import { callerOf } from '../request/caller.ts';
import type { HttpEnv } from '../request/env.ts';
import { onPath } from '../request/on-path.ts';
import { requireHttp11 } from '../server/plain-message.ts';
import { fieldsOf, parametersIn } from './parameters.ts';
import { type ExportedReport, exportedReports } from './paths.ts';

export interface ExportDeps extends ReportDeps {
  readonly authenticated: MiddlewareHandler<HttpEnv>;
  readonly limited: MiddlewareHandler<HttpEnv>;
}

/** Every report as a file, for tools that know GET: `/v1/export/campaigns/device_date.csv?start_time=…&end_time=…`. */
export function exportRoutes(deps: ExportDeps): Hono<HttpEnv> {
  const { authenticated, limited } = deps;
  const app = new Hono<HttpEnv>();
  for (const exported of exportedReports(deps.catalog)) {
    const { path, endpoint } = exported;
    const { conditional, answer } = exporting(deps, exported);
    const rules = { allow: 'GET, HEAD', family: endpoint.breakdown.family } as const;
    onPath(app, path, rules, requireHttp11, authenticated, conditional, limited, answer);
  }
  return app;
}

/** What answers the requests for one report in one format: GET, and HEAD, which computes nothing. */
function exporting(deps: ReportDeps, { endpoint, format }: ExportedReport) {
  const { path, breakdown } = endpoint;
  const requests = new RequestReader(deps.catalog, breakdown);

  /** The plan of a request, and the version of its data. */
  const look = async (
    c: Context<HttpEnv>,
    request: ReportRequest,
    signal: AbortSignal,
    { asksHome }: { readonly asksHome: boolean },
  ) => {
    const plan = await planOf(deps, c.get('account'), breakdown, request, signal);
    const ofStore = await deps.answers.versionOf(plan, format, asksHome);
    return { plan, version: ofStore && versionOf(plan, format, ofStore) };
  };

  return {
    /** Answers 304 when the caller has the data already, where no statement has to tell. All other requests are passed on. */
    conditional: async function conditionalMiddleware(c: Context<HttpEnv>, next: Next) {
      if (c.req.header('if-none-match') === undefined) return next();
      const request = attempt(() => requestOf(c, requests));
      // ClickHouse has to tell what the rows were then, and it is only asked behind the rate limit.
      if (!request || request.options.as_of !== undefined || request.options.moment !== undefined)
        return next();
      const { version } = await look(c, request, callerOf(c), { asksHome: false });
      return unchanged(c, version) ?? next();
    },
    answer: async function exportHandler(c: Context<HttpEnv>) {
      const request = requestOf(c, requests);
      const begun = beginning(deps);
      const signal = callerOf(c);
      const { plan, version } = await look(c, request, signal, { asksHome: true });
      const same = unchanged(c, version);
      if (same) return same;
      const asked = { path, plan, format, exported: { version }, ...begun };
      if (c.req.method !== 'HEAD') return answered(deps, c, asked, signal);
      const { 'Adtally-Unconfirmed-Revenue-Dates': _, ...headers } = reportHeaders(
        { ...asked, lastLoad: deps.lastLoad(), cache: 'fwd=method' },
        { unconfirmedDates: [], summary: {} },
        // GET decides how to pack the rows when it has them.
        'identity',
      );
      return c.body(null, 200, headers);
    },
  };
}

/** Two answers are the same if their statements are, and what `ofStore` stands for: the data and the currency. */
function versionOf(plan: Plan, format: ReportFormatName, ofStore: string): string {
  const statement = compileReport(plan, { lastUpdateTime: '', unconfirmedDates: [] }, format);
  return createHash('sha256')
    .update(JSON.stringify([statement, ofStore]))
    .digest('base64url')
    .slice(0, 22);
}

/** 304 if `If-None-Match` names a tag of this version (RFC 9110 §13.1.2). */
function unchanged(c: Context<HttpEnv>, version: string | undefined): Response | undefined {
  const ifNoneMatch = c.req.header('if-none-match');
  if (ifNoneMatch === undefined || version === undefined) return undefined;
  const isNamed = [...ifNoneMatch.matchAll(/"([^"]*)"/g)].some(([, tag]) => tag === version);
  if (!isNamed && ifNoneMatch.trim() !== '*') return undefined;
  return c.body(null, 304, exportHeaders(version));
}

/** @throws {InvalidRequest} */
function requestOf(c: Context<HttpEnv>, requests: RequestReader): ReportRequest {
  const given = parametersIn(new URL(c.req.url));
  // The link was verified at login.
  given.delete(linkParameter);
  return requests.read(fieldsOf(given));
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
