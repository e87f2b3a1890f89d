import { Hono, type MiddlewareHandler } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Catalog } from '../../../catalog/catalog.ts';
import { InvalidRequest } from '../../report/invalid-request.ts';
import { anyFamily } from '../access/authentication.ts';
import { requireJson } from '../report/request-body.ts';
import { callerOf } from '../request/caller.ts';
import type { HttpEnv } from '../request/env.ts';
import { onPath } from '../request/on-path.ts';
import { patientFetch } from '../request/patient-fetch.ts';

export interface McpDeps {
  readonly catalog: Catalog;
  readonly version: string;
  /** Where this service listens. */
  readonly ownUrl: () => string;
  readonly authenticated: MiddlewareHandler<HttpEnv>;
  readonly limited: MiddlewareHandler<HttpEnv>;
  readonly body: MiddlewareHandler<HttpEnv>;
  readonly onError: (error: unknown) => void;
}

const path = '/mcp';

/**
 * The Model Context Protocol over streamable HTTP, stateless: each request stands for itself, in the revision of 2026 and
 * in those before it. Nothing can be changed by it, and nothing is subscribed to.
 */
export function mcpRoutes(deps: McpDeps): Hono<HttpEnv> {
  const { catalog, version, ownUrl, onError } = deps;
  const app = new Hono<HttpEnv>();
  const before = [deps.authenticated, deps.limited, requireJson, deps.body];
  onPath(app, path, { allow: 'POST', family: anyFamily }, ...before, async (c) => {
    const authorization = c.req.header('authorization') ?? '';
    // A call that is cancelled by another message of its batch is never answered.
    if (c.get('body').trimStart().startsWith('[')) {
      throw new InvalidRequest(
        undefined,
        'the body must be one message; the protocol has no batches since 2025-06-18',
      );
    }
    const signal = callerOf(c);
    // Loaded when somebody uses it.
    const { answerMcp } = await import('./tools.ts');
    const init = { method: 'POST', headers: c.req.header(), body: c.get('body'), signal };
    // As the caller could: a tool answers as the endpoint does, and token, limits and gate apply as to any request.
    const ask = (asked: string, body: object) =>
      patientFetch(`${ownUrl()}${asked}`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify(body),
        signal,
      });
    const { status, text, type } = await answerMcp(
      new Request(c.req.url, init),
      { catalog, version, ask },
      onError,
    );
    if (type) c.header('content-type', type);
    return c.body(text, status as ContentfulStatusCode);
  });
  return app;
}
