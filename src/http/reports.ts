import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context, Handler, MiddlewareHandler } from 'hono';
import type { Store } from '../../clickhouse/client.ts';
import type { Endpoint } from '../breakdowns.ts';
import type { Catalog } from '../catalog.ts';
import { rowColumns } from '../report/columns.ts';
import { planReport } from '../report/plan.ts';
import { parseRequest } from '../report/request.ts';
import { streamReport } from '../report/stream.ts';
import type { Edge } from './edge.ts';
import { acceptedCoding, acceptedFormat } from './negotiation.ts';
import { Problem } from './problems.ts';
import { reportHeaders } from './report-headers.ts';

export interface ReportDeps {
  readonly store: Store;
  readonly catalog: Catalog;
  readonly timeoutSeconds: number;
  /** The time of the request as the envelope writes it. */
  readonly lastUpdateTime: () => string;
  /** End of the last load; undefined for a store without one. */
  readonly lastLoad: () => Date | undefined;
  /** Told when a response breaks off after its first byte. */
  readonly onBroken: (error: unknown, requestId: string) => void;
}

/** Answers one endpoint: body → plan → statement → bytes. */
export function report(deps: ReportDeps, { path, breakdown }: Endpoint): Handler<Edge> {
  const columns = rowColumns(deps.catalog, breakdown);
  return async function reportHandler(c) {
    const format = acceptedFormat(c);
    const range = parseRequest(await c.req.text());
    const lastUpdateTime = deps.lastUpdateTime();
    const plan = planReport(breakdown, c.get('account'), range);
    const stream = await streamReport(deps.store, deps.catalog, plan, {
      queryId: crypto.randomUUID(),
      format,
      coding: acceptedCoding(c),
      timeoutSeconds: deps.timeoutSeconds,
      lastUpdateTime,
      signal: c.req.raw.signal,
    });
    const facts = { path, range, format, columns, lastUpdateTime, lastLoad: deps.lastLoad() };
    for (const [name, value] of Object.entries(reportHeaders(facts, stream))) c.header(name, value);
    return send(c, stream.body, deps.onBroken);
  };
}

/**
 * Pipes the body to the socket untouched. When the database fails in the middle, or the caller goes away,
 * both sides are destroyed: the caller sees a broken transfer, never an answer that looks complete.
 */
async function send(c: Context<Edge>, body: Readable, onBroken: ReportDeps['onBroken']): Promise<Response> {
  const { outgoing } = c.env;
  outgoing.writeHead(200, Object.fromEntries(c.body(null).headers));
  try {
    await pipeline(body, outgoing);
  } catch (error) {
    onBroken(error, c.get('requestId'));
  }
  return RESPONSE_ALREADY_SENT;
}

/** Refuses a body of another media type (contract §5), before it is read. */
export const requireJson: MiddlewareHandler<Edge> = async (c, next) => {
  const mediaType = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase();
  if (mediaType !== 'application/json') {
    throw new Problem('unsupported_media_type', 'the request needs content-type: application/json');
  }
  await next();
};
