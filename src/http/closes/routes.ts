import { Hono, type MiddlewareHandler } from 'hono';
import { accountManifest } from '../../close/account-closes.ts';
import { publicKeyOf } from '../../close/signature.ts';
import type { SigningKeys } from '../../config/signing.ts';
import type { ReportDeps } from '../report/handler.ts';
import { inPlace } from '../report/in-place.ts';
import { closesPlace } from '../report/questions.ts';
import type { HttpEnv } from '../request/env.ts';
import { onPath, otherMethods } from '../request/on-path.ts';
import { Problem } from '../request/problems.ts';

export interface ManifestDeps extends Pick<ReportDeps, 'damage' | 'reader' | 'gate' | 'routingOf'> {
  readonly authenticated: MiddlewareHandler<HttpEnv>;
  readonly limited: MiddlewareHandler<HttpEnv>;
  /** Absent: nothing is signed, and there is no key. */
  readonly signing?: SigningKeys | undefined;
}

const keysPath = '/.well-known/jwks.json';
const manifestPath = '/v1/closes/:revision/manifest';

/** What a close of the account says of itself, and the keys that sign it. */
export function manifestRoutes(deps: ManifestDeps): Hono<HttpEnv> {
  const { reader, routingOf, authenticated, limited, signing } = deps;
  const keys = (signing?.publicKeys ?? []).map(publicKeyOf);
  const set = JSON.stringify({ keys: keys.map((key) => ({ ...key, use: 'sig', alg: 'EdDSA' })) });
  const app = new Hono<HttpEnv>();
  app.get(keysPath, (c) =>
    c.body(set, 200, { 'content-type': 'application/jwk-set+json', 'Cache-Control': 'no-cache' }),
  );
  app.all(keysPath, otherMethods('GET, HEAD'));
  // It has both families, so a token of one does not open it.
  onPath(app, manifestPath, { allow: 'GET, HEAD' }, authenticated, limited, async (c) => {
    const account = c.get('account');
    const revision = c.req.param('revision') ?? '';
    const text = await inPlace(deps, c, closesPlace, (signal) =>
      accountManifest(reader, { account, routing: routingOf(account) }, revision, signal),
    );
    if (text === undefined) throw new Problem('not_found', 'this account has no close of this name');
    return c.body(text, 200, { 'content-type': 'application/x-ndjson' });
  });
  return app;
}
