import type { Context, MiddlewareHandler } from 'hono';
import { bearerAuth } from 'hono/bearer-auth';
import { HTTPException } from 'hono/http-exception';
import type { Links } from '../../accounts/links.ts';
import { networkOf } from '../request/caller-address.ts';
import type { HttpEnv } from '../request/env.ts';
import type { Login, Refusal } from '../request/login.ts';
import { Problem } from '../request/problems.ts';
import type { AccountCache } from './account-cache.ts';
import type { Limiter } from './limiter.ts';
import { tooMany } from './rate-limit.ts';

/** What authentication needs to know about tokens. */
export type Accounts = Pick<AccountCache, 'login' | 'follow'>;

/** The WWW-Authenticate challenge of every 401 (RFC 6750 §3). */
export const challenge = 'Bearer realm="adtally"';

/** The family of a path that opens no report by itself, so that any token may ask it. */
export const anyFamily = '*';

/** A way to log in beside the contract's. */
export interface OtherWay {
  /** The challenge that a 401 carries for this way. */
  readonly challenge?: string;
  /** Undefined when the request does not use it. */
  readonly login: (c: Context<HttpEnv>) => ((known: boolean) => Promise<Login>) | undefined;
}

export interface AuthenticationOptions {
  readonly accounts: Pick<Accounts, 'login'>;
  /** Counts failed logins by address. */
  readonly failures: Limiter;
  readonly onRefused: (reason: Refusal) => void;
}

/**
 * Lets a request with a valid login token pass and names its account; any other ends in 401.
 * Failed attempts are limited by address, apart from the accounts' quota: a valid token passes from any
 * address, and no number of failures counts against an account.
 */
export function authentication(
  { accounts, failures, onRefused }: AuthenticationOptions,
  otherWays: readonly OtherWay[] = [],
): MiddlewareHandler<HttpEnv> {
  // Past the limit no caller causes a query for tokens. Only a login that is not known asks for the limit, which may be
  // in Redis.
  const look = async (c: Context<HttpEnv>, login: (known: boolean) => Promise<Login>) => {
    const found = await login(true);
    const isUnknown = 'refused' in found && found.refused === 'unknown';
    return isUnknown && (await failures.allows(networkOf(c.get('address')))) ? login(false) : found;
  };
  const enter = (c: Context<HttpEnv>, login: Login): boolean => {
    c.set('token', login.id);
    if ('refused' in login) c.set('refused', login.refused);
    else if (login.family !== null && ![login.family, anyFamily].includes(c.get('family') ?? ''))
      c.set('refused', 'other_family');
    else {
      c.set('account', login.account);
      c.set('onlyFamily', login.family);
    }
    return c.get('account') !== undefined;
  };
  const authenticate = bearerAuth<HttpEnv>({
    realm: 'adtally',
    invalidAuthenticationHeader: { wwwAuthenticateHeader: `${challenge}, error="invalid_request"` },
    invalidToken: { wwwAuthenticateHeader: `${challenge}, error="invalid_token"` },
    verifyToken: async (token, c) => enter(c, await look(c, (known) => accounts.login(token, known))),
  });
  const others = otherWays.flatMap((way) => way.challenge ?? []);
  return async function authenticationMiddleware(c, next) {
    try {
      for (const way of otherWays) {
        const login = way.login(c);
        if (!login) continue;
        if (!enter(c, await look(c, login))) throw unauthorized([challenge, ...others]);
        return await next();
      }
      return await authenticate(c, next);
    } catch (error) {
      // Where tokens cannot be read, nobody knows that a login has failed.
      if (c.get('account') !== undefined || !(error instanceof HTTPException)) throw error;
      // The middleware checks the header before it looks a token up.
      const header = c.req.header('authorization') === undefined ? 'missing' : 'malformed';
      const reason = c.get('refused') ?? header;
      c.set('refused', reason);
      onRefused(reason);
      const verdict = await failures.consume(networkOf(c.get('address')));
      if (!verdict.allowed) throw tooMany('too many failed logins from this address', verdict);
      const asked = error.getResponse().headers.get('www-authenticate');
      throw asked && others.length > 0 ? unauthorized([asked.replace(/, Basic .*/, ''), ...others]) : error;
    }
  };
}

/** A login that is refused. @param thrown by the middleware of authentication, which says how to log in */
export function notAuthorized(detail: string | undefined, thrown?: HTTPException): Problem {
  const header = thrown?.getResponse().headers.get('www-authenticate') ?? challenge;
  return new Problem('unauthorized', detail, { headers: { 'WWW-Authenticate': header } });
}

function unauthorized(challenges: readonly string[]): HTTPException {
  const headers = { 'WWW-Authenticate': challenges.join(', ') };
  return new HTTPException(401, { res: new Response(null, { headers }) });
}

/** Basic authentication (RFC 7617) with a login token as the password, for programs that keep nothing else. */
export function basicAuthentication(accounts: Accounts): OtherWay {
  return {
    challenge: 'Basic realm="adtally", charset="UTF-8"',
    login: (c) => {
      const [, credentials] = /^basic +([a-z0-9+/=]+) *$/i.exec(c.req.header('authorization') ?? '') ?? [];
      if (credentials === undefined) return undefined;
      const [, ...password] = Buffer.from(credentials, 'base64').toString().split(':');
      return (known) => accounts.login(password.join(':'), known);
    },
  };
}

/** A link to the one report of its address, which only reads. */
export function linkAuthentication(accounts: Accounts, links: Links): OtherWay {
  return {
    login: (c) => {
      if (c.req.method !== 'GET' && c.req.method !== 'HEAD') return undefined;
      const link = links.read(c.req.url);
      if (link === undefined) return undefined;
      return async (known) => (link ? accounts.follow(link, known) : { refused: 'forged_link' });
    },
  };
}
