import { createHash } from 'node:crypto';
import type { Context, Handler, MiddlewareHandler } from 'hono';
import { linkParameter } from '../../accounts/links.ts';
import { rowColumns } from '../../report/columns.ts';
import { compileReport } from '../../report/compile.ts';
import type { Seen } from '../../report/kept/answers.ts';
import { type Plan, planReport } from '../../report/plan.ts';
import { type DateRange, InvalidRequest, parseRequest } from '../../report/request.ts';
import type { HttpEnv } from '../env.ts';
import { type ReportDeps, report } from '../report/handler.ts';
import { reportHeaders } from '../report/headers.ts';
import { acceptedCoding } from '../report/negotiation.ts';
import { exportHeaders, isMatched } from './entity-tag.ts';
import { fieldsOf } from './parameters.ts';
import type { ExportedReport } from './paths.ts';

/** What answers the requests for one report in one format. */
export interface Exporting {
  /** Ends in 304 when the caller has the data already; whatever else is left to what comes after it. */
  readonly unchanged: MiddlewareHandler<HttpEnv>;
  readonly answer: Handler<HttpEnv>;
}

/**
 * A report in one format: by GET, by HEAD, which computes nothing, and by QUERY (RFC 10008), which has the body that the
 * endpoint of the contract has.
 */
export function exportReport(deps: ReportDeps, { endpoint, format }: ExportedReport): Exporting {
  const { path, breakdown } = endpoint;
  const { catalog } = deps;
  const columns = rowColumns(catalog, breakdown);
  const codingOf: typeof acceptedCoding = (c) =>
    c.req.header('range') !== undefined && format !== 'json' ? 'identity' : acceptedCoding(c);
  const compute = report(deps, endpoint, { formatOf: () => format, codingOf, requestOf });

  const look = async (c: Context<HttpEnv>, range: DateRange): Promise<Seen> => {
    const account = c.get('account');
    const plan = planReport(breakdown, account, range, deps.routingOf(account));
    const seen = await deps.answers.look(plan, format);
    return { ...seen, ...(seen.version && { version: versionOf(plan, seen.version) }) };
  };
  // The statement tells all that an answer depends on but the store, and what another release does in another way.
  const versionOf = (plan: Plan, ofStore: string) => {
    const statement = compileReport(catalog, plan, { lastUpdateTime: '', unconfirmedDates: [] }, format);
    return createHash('sha256')
      .update(JSON.stringify([statement, ofStore]))
      .digest('base64url')
      .slice(0, 22);
  };

  return {
    unchanged: async function unchangedMiddleware(c, next) {
      const ifNoneMatch = c.req.header('if-none-match');
      const range = ifNoneMatch === undefined ? undefined : attempt(() => requestOf(c));
      const { version } = range ? await look(c, range) : {};
      if (ifNoneMatch === undefined || version === undefined || !isMatched(ifNoneMatch, version)) {
        return next();
      }
      return c.body(null, 304, exportHeaders({ version }));
    },
    answer: async function exportHandler(c, next) {
      const range = requestOf(c);
      const { version, kept } = await look(c, range);
      const exported = { version };
      c.set('exported', exported);
      if (c.req.method !== 'HEAD' || kept) return compute(c, next);
      const { 'Adtally-Unconfirmed-Revenue-Dates': _, ...headers } = reportHeaders(
        {
          path,
          range,
          format,
          columns,
          lastUpdateTime: deps.lastUpdateTime(),
          lastLoad: deps.lastLoad(),
          cache: 'fwd=method',
          unconfirmedDates: [],
        },
        codingOf(c),
      );
      return c.body(null, 200, { ...headers, ...exportHeaders(exported) });
    },
  };
}

/** @throws {InvalidRequest} */
function requestOf(c: Context<HttpEnv>): DateRange {
  const { searchParams } = new URL(c.req.url);
  // Whoever came by a link has shown that it is right.
  if (c.req.method !== 'QUERY') searchParams.delete(linkParameter);
  if (c.req.method !== 'QUERY') return parseRequest(JSON.stringify(fieldsOf(searchParams)));
  const [name] = searchParams.keys();
  if (name !== undefined) throw new InvalidRequest(name.slice(0, 100), 'belongs into the body of a QUERY');
  return parseRequest(c.get('body'));
}

/** A request that is wrong is refused where it is counted. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof InvalidRequest) return undefined;
    throw error;
  }
}
