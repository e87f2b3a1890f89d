import { pipeline } from 'node:stream/promises';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context, Handler, MiddlewareHandler } from 'hono';
import Negotiator from 'negotiator';
import type { Store } from '../../clickhouse/client.ts';
import type { Breakdown } from '../breakdowns.ts';
import type { Catalog } from '../catalog.ts';
import { planReport } from '../report/plan.ts';
import { parseRequest } from '../report/request.ts';
import { type ContentCoding, type ReportStream, streamReport } from '../report/stream.ts';
import type { Edge } from './edge.ts';
import { Problem } from './problems.ts';

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
export function report(deps: ReportDeps, breakdown: Breakdown): Handler<Edge> {
  return async function reportHandler(c) {
    const range = parseRequest(await c.req.text());
    const stream = await streamReport(
      deps.store,
      deps.catalog,
      planReport(breakdown, c.get('account'), range),
      {
        queryId: crypto.randomUUID(),
        coding: contentCoding(c),
        timeoutSeconds: deps.timeoutSeconds,
        lastUpdateTime: deps.lastUpdateTime(),
        signal: c.req.raw.signal,
      },
    );
    return send(c, deps, stream);
  };
}

/**
 * Pipes the body to the socket untouched. When the database fails in the middle, or the caller goes away,
 * both sides are destroyed: the caller sees a broken transfer, never an answer that looks complete.
 */
async function send(c: Context<Edge>, deps: ReportDeps, { body, coding }: ReportStream): Promise<Response> {
  const { outgoing } = c.env;
  const lastLoad = deps.lastLoad();
  c.header('Content-Type', 'application/json; charset=utf-8');
  c.header('Vary', 'Accept-Encoding');
  if (coding !== 'identity') c.header('Content-Encoding', coding);
  if (lastLoad) c.header('Last-Modified', lastLoad.toUTCString());
  outgoing.writeHead(200, Object.fromEntries(c.body(null).headers));
  try {
    await pipeline(body, outgoing);
  } catch (error) {
    deps.onBroken(error, c.get('requestId'));
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

/** The coding the caller prefers (RFC 9110 §12.5.3), among equals the fastest; identity when it accepts none of ours. */
function contentCoding(c: Context<Edge>): ContentCoding {
  const negotiator = new Negotiator({ headers: { 'accept-encoding': c.req.header('accept-encoding') } });
  const offered: ContentCoding[] = ['zstd', 'gzip', 'br', 'identity'];
  const accepted = negotiator.encoding(offered, { preferred: offered });
  return offered.find((coding) => coding === accepted) ?? 'identity';
}
