import { Hono } from 'hono';
import { type Branding, branded } from '../../config/branding.ts';
import type { OpenApiDocument } from '../openapi/model.ts';
import type { HttpEnv } from '../request/env.ts';
import { otherMethods } from '../request/on-path.ts';
import { once, packDocument, sendDocument } from '../server/packed-document.ts';
import { hashOf, pageSecurity } from '../server/page-security.ts';
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
  const document = once(async () => describe());
  const text = once(async () => packDocument(JSON.stringify(await document()), 'application/json'));
  const page = once(async () =>
    packDocument(String(await docsPage(await document(), heading, brand, style)), 'text/html; charset=UTF-8'),
  );
  return new Hono<HttpEnv>()
    .use('/docs', pageSecurity({ styleSrc: [hashOf(style)], imgSrc: ['data:'] }))
    .get('/openapi.json', async (c) => sendDocument(c, await text()))
    .all(otherMethods('GET, HEAD'))
    .get('/docs', async (c) => sendDocument(c, await page()))
    .all(otherMethods('GET, HEAD'));
}
