import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { etag } from 'hono/etag';
import { secureHeaders } from 'hono/secure-headers';
import { type Branding, branded } from '../../config/branding.ts';
import type { OpenApiDocument } from '../openapi/model.ts';
import type { HttpEnv } from '../request/env.ts';
import { docsPage } from './page.ts';
import { docsStyle } from './style.ts';

export interface DocsDeps {
  /** What the page is about. */
  readonly heading: string;
  readonly describe: () => OpenApiDocument;
  readonly brand: Branding;
}

/**
 * `/openapi.json`: the service in OpenAPI 3.1. `/docs`: the same as one page, which loads nothing and has no
 * script. Neither needs a token; both are generated at the first request.
 */
export function docs({ heading, describe, brand }: DocsDeps): Hono<HttpEnv> {
  const style = branded(docsStyle, brand);
  const document = lazy(describe);
  const text = lazy(() => tagged(JSON.stringify(document())));
  const page = lazy(async () => tagged(String(await docsPage(document(), heading, brand, style))));

  return new Hono<HttpEnv>()
    .use('/openapi.json', etag())
    .use('/docs', etag(), pageSecurity(style))
    .get('/openapi.json', (c) =>
      c.body(text().body, 200, { ...text().headers, 'Content-Type': 'application/json' }),
    )
    .get('/docs', async (c) =>
      c.body((await page()).body, 200, {
        ...(await page()).headers,
        'Content-Type': 'text/html; charset=UTF-8',
      }),
    );
}

/** Caches keep it but revalidate each time, so that a new version shows at once. Hashed once, not at each request. */
function tagged(text: string): { body: Uint8Array<ArrayBuffer>; headers: Record<string, string> } {
  // The same bytes for all: an answer that nobody reads takes no memory.
  const body = new TextEncoder().encode(text);
  const hash = createHash('sha256').update(body).digest('base64url');
  return { body, headers: { 'Cache-Control': 'no-cache', ETag: `"${hash}"` } };
}

/** The page may use its own style and pictures that are part of it, nothing else. */
function pageSecurity(style: string) {
  return secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      styleSrc: [`'sha256-${createHash('sha256').update(style).digest('base64')}'`],
      imgSrc: ['data:'],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
    xFrameOptions: 'DENY',
    // Whether the whole host uses TLS is for its operator to say.
    strictTransportSecurity: false,
  });
}

function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
