import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { type Context, Hono } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import Negotiator from 'negotiator';
import { branded } from '../../config/branding.ts';
import type { PageSettings } from '../../config/page-settings.ts';
import type { HttpEnv } from '../request/env.ts';
import { pageBundle } from './bundle.ts';
import { shell } from './shell.ts';

interface Packed {
  readonly tag: string;
  readonly bodies: Readonly<Record<string, Uint8Array<ArrayBuffer>>>;
  readonly secure: ReturnType<typeof secureHeaders>;
}

const codings = ['br', 'gzip', 'identity'];

/**
 * `/app`: the page for people, one document that loads nothing and talks to this service alone. It is made at the first
 * request. `/` leads there.
 */
export function page(deps: PageSettings): Hono<HttpEnv> {
  let made: Promise<Packed> | undefined;
  const packed = () => {
    made ??= pack(deps).catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
  return new Hono<HttpEnv>()
    .use('/app', async (c, next) => (await packed()).secure(c, next))
    .get('/', (c) => c.redirect('/app', 302))
    .get('/app', async (c) => answer(c, await packed()));
}

function answer(c: Context<HttpEnv>, { tag, bodies }: Packed): Response {
  const coding =
    new Negotiator({ headers: { 'accept-encoding': c.req.header('accept-encoding') } }).encoding(codings, {
      preferred: codings,
    }) ?? 'identity';
  const etag = `"${tag}-${coding}"`;
  // Kept, but asked for again each time, so that a new version shows at once.
  const headers = { 'Cache-Control': 'no-cache', Vary: 'Accept-Encoding', ETag: etag };
  if (c.req.header('if-none-match')?.includes(tag)) return c.body(null, 304, headers);
  return c.body(bodies[coding] ?? '', 200, {
    ...headers,
    'Content-Type': 'text/html; charset=utf-8',
    ...(coding !== 'identity' && { 'Content-Encoding': coding }),
  });
}

async function pack(settings: PageSettings): Promise<Packed> {
  const { brand, frameAncestors } = settings;
  const bundle = await pageBundle();
  const { script } = bundle;
  const style = branded(bundle.style, brand);
  const body = Buffer.from(String(await shell(settings, script, style)));
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
    promisify(gzip)(body, { level: 9 }),
  ]);
  return {
    tag: createHash('sha256').update(body).digest('base64url'),
    bodies: { br: new Uint8Array(br), gzip: new Uint8Array(gz), identity: new Uint8Array(body) },
    secure: pageSecurity(script, style, frameAncestors),
  };
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
