import { type Context, Hono, type MiddlewareHandler } from 'hono';
import type { Logger } from 'pino';
import { networkOf } from '../../request/caller-address.ts';
import type { HttpEnv } from '../../request/env.ts';
import { otherMethods } from '../../request/on-path.ts';
import { notAuthorized } from '../authentication.ts';
import type { Limiter } from '../limiter.ts';
import { tooMany } from '../rate-limit.ts';
import { callbackPath, failureOf, type Provider, type SignInFailure } from './provider.ts';
import { isOfThisSite, type Sessions } from './sessions.ts';

export interface SignInDeps {
  readonly provider: Provider;
  readonly sessions: Sessions;
  /** Notes that the person has signed out everywhere. */
  readonly signOutEverywhere: (person: string) => Promise<void>;
}

/** `/auth/…`: the way of the page to the provider and back, and out again. */
export function signInRoutes({
  provider,
  sessions,
  signOutEverywhere,
  failures,
  log,
}: SignInDeps & { readonly failures: Limiter; readonly log: Logger }): Hono<HttpEnv> {
  /** Back at the page, which says the reason; a code or a token is in none of them. */
  const fail = async (c: Context<HttpEnv>, reason: SignInFailure, error?: unknown, person?: string) => {
    const { message, cause } = error instanceof Error ? error : {};
    const detail = [message, cause instanceof Error ? cause.message : undefined].filter(Boolean).join(': ');
    log.warn(
      { request: c.get('requestId'), address: c.get('address'), reason, detail, person },
      'not signed in',
    );
    await count(c);
    return c.redirect(`/app#sign-in=${reason}`);
  };
  const count = async (c: Context<HttpEnv>) => {
    const verdict = await failures.consume(networkOf(c.get('address')));
    if (!verdict.allowed) throw tooMany('too many failed logins from this address', verdict);
  };
  /** Past the limit no caller causes a question to the provider. */
  const limited: MiddlewareHandler<HttpEnv> = async (c, next) => {
    if (!(await failures.allows(networkOf(c.get('address'))))) await count(c);
    return next();
  };
  return new Hono<HttpEnv>()
    .get('/auth/sign-in', limited, async (c) => {
      try {
        const { address, attempt } = await provider.begin();
        await sessions.keepAttempt(c, attempt);
        return c.redirect(address.href);
      } catch (error) {
        return fail(c, failureOf(error), error);
      }
    })
    .all(otherMethods('GET, HEAD'))
    .get(callbackPath, limited, async (c) => {
      const attempt = await sessions.takeAttempt(c);
      if (!attempt || attempt.state !== c.req.query('state')) return fail(c, 'other_tab');
      try {
        const { subject, accounts } = await provider.finish(new URL(c.req.url).search, attempt);
        // Whoever was signed in here before is not any more.
        sessions.end(c);
        if (accounts.length === 0) return fail(c, 'no_accounts', undefined, subject);
        if (!(await sessions.begin(c, subject, accounts)))
          return fail(c, 'too_many_accounts', undefined, subject);
        log.info(
          { request: c.get('requestId'), address: c.get('address'), person: subject, accounts },
          'signed in',
        );
        return c.redirect('/app');
      } catch (error) {
        return fail(c, failureOf(error), error);
      }
    })
    .all(otherMethods('GET, HEAD'))
    .get('/auth/session', async (c) => {
      const session = await sessions.of(c);
      return c.json({ accounts: 'refused' in session ? [] : session.accounts.map(([account]) => account) });
    })
    .all(otherMethods('GET, HEAD'))
    .post('/auth/sign-out', async (c) => {
      if (!isOfThisSite(c)) throw notAuthorized('the page alone signs out');
      if (c.req.query('everywhere') !== undefined) {
        const session = await sessions.of(c);
        if ('refused' in session) throw notAuthorized('there is no session; sign in to sign out everywhere');
        await signOutEverywhere(session.sub);
        log.info({ request: c.get('requestId'), person: session.sub }, 'signed out everywhere');
      }
      sessions.end(c);
      return c.body(null, 204);
    })
    .all(otherMethods('POST'));
}
