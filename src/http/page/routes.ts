import { Hono } from 'hono';
import { branded } from '../../config/branding.ts';
import type { PageSettings } from '../../config/page-settings.ts';
import type { HttpEnv } from '../request/env.ts';
import { otherMethods } from '../request/on-path.ts';
import { once, packDocument, sendDocument } from '../server/packed-document.ts';
import { hashOf, pageSecurity } from '../server/page-security.ts';
import { pageBundle } from './bundle.ts';
import { shell } from './shell.ts';

/**
 * `/app`: the page for people, one document that loads nothing and talks to this service alone. It is made at the first
 * request. `/` leads there.
 */
export function page(settings: PageSettings): Hono<HttpEnv> {
  const made = once(async () => {
    const { brand, frameAncestors } = settings;
    const bundle = await pageBundle();
    const { script } = bundle;
    const style = branded(bundle.style, brand);
    const text = String(await shell(settings, script, style));
    return {
      document: await packDocument(text, 'text/html; charset=utf-8'),
      secure: pageSecurity({
        scriptSrc: [hashOf(script)],
        styleSrc: [hashOf(style)],
        // A worker that the script makes.
        workerSrc: ['blob:'],
        connectSrc: ["'self'"],
        imgSrc: ['data:'],
        ...(frameAncestors.length > 0 && { frameAncestors: [...frameAncestors] }),
      }),
    };
  });
  return new Hono<HttpEnv>()
    .use('/app', async (c, next) => (await made()).secure(c, next))
    .get('/', (c) => c.redirect('/app', 302))
    .all(otherMethods('GET, HEAD'))
    .get('/app', async (c) => sendDocument(c, (await made()).document))
    .all(otherMethods('GET, HEAD'));
}
