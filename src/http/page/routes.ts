import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import { branded } from '../../config/branding.ts';
import type { PageSettings } from '../../config/page-settings.ts';
import type { HttpEnv } from '../request/env.ts';
import { once, packDocument, sendDocument } from '../server/packed-document.ts';
import { pageBundle } from './bundle.ts';
import { shell } from './shell.ts';

/**
 * `/app`: the page for people, one document that loads nothing and talks to this service alone. It is made at the first
 * request. `/` leads there.
 */
export function page(settings: PageSettings): Hono<HttpEnv> {
  const made = once(async () => {
    const bundle = await pageBundle();
    const { script } = bundle;
    const style = branded(bundle.style, settings.brand);
    const text = String(await shell(settings, script, style));
    return {
      document: await packDocument(text, 'text/html; charset=utf-8'),
      secure: pageSecurity(script, style, settings.frameAncestors),
    };
  });
  return new Hono<HttpEnv>()
    .use('/app', async (c, next) => (await made()).secure(c, next))
    .get('/', (c) => c.redirect('/app', 302))
    .get('/app', async (c) => sendDocument(c, (await made()).document));
}

/** The page may use its own script and style, a worker that its script makes, and this service; nothing else. */
function pageSecurity(script: string, style: string, frameAncestors: readonly string[]) {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const framed = frameAncestors.length > 0;
  return secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      scriptSrc: [hash(script)],
      styleSrc: [hash(style)],
      workerSrc: ['blob:'],
      connectSrc: ["'self'"],
      imgSrc: ['data:'],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: framed ? [...frameAncestors] : ["'none'"],
    },
    xFrameOptions: framed ? false : 'DENY',
    referrerPolicy: 'no-referrer',
    // Whether the whole host uses TLS is for its operator to say.
    strictTransportSecurity: false,
  });
}
