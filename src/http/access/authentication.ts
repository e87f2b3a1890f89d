import type { MiddlewareHandler } from 'hono';
import { bearerAuth } from 'hono/bearer-auth';
import { HTTPException } from 'hono/http-exception';
import type { HttpEnv } from '../env.ts';
import { networkOf } from './caller-address.ts';
import type { Limiter } from './limiter.ts';
import type { Login, Refusal } from './login.ts';
import { tooMany } from './rate-limit.ts';

/** What authentication needs to know about tokens. */
export interface Accounts {
  /** @param known look only among the tokens that are already known */
  login(token: string, known?: boolean): Promise<Login>;
}

/** The WWW-Authenticate challenge of every 401 (RFC 6750 §3). */
export const challenge = 'Bearer realm="adtally"';

/**
 * Lets a request with a valid login token pass and names its account; any other ends in 401 (contract §5).
 * Failed attempts are limited by address, apart from the accounts' quota: a valid token passes from any
 * address, and no number of failures counts against an account.
 */
export function authentication(
  accounts: Accounts,
  failures: Limiter,
  onRefused: (reason: Refusal) => void,
): MiddlewareHandler<HttpEnv> {
  const authenticate = bearerAuth<HttpEnv>({
    realm: 'adtally',
    invalidAuthenticationHeader: { wwwAuthenticateHeader: `${challenge}, error="invalid_request"` },
    invalidToken: { wwwAuthenticateHeader: `${challenge}, error="invalid_token"` },
    verifyToken: async (token, c) => {
      // Past the limit no caller causes a query for tokens.
      const known = !(await failures.allows(networkOf(c.get('address'))));
      const login = await accounts.login(token, known);
      c.set('token', login.id);
      if ('refused' in login) c.set('refused', login.refused);
      else if (login.family !== null && login.family !== c.get('family')) c.set('refused', 'other_family');
      else c.set('account', login.account);
      return c.get('account') !== undefined;
    },
  });
  return async function authenticationMiddleware(c, next) {
    try {
      return await authenticate(c, next);
    } catch (error) {
      if (c.get('account') !== undefined) throw error;
      if (error instanceof HTTPException) {
        // The middleware looks at the header before anything is known of a token.
        const header = c.req.header('authorization') === undefined ? 'missing' : 'malformed';
        const reason = c.get('refused') ?? header;
        c.set('refused', reason);
        onRefused(reason);
      }
      const verdict = await failures.consume(networkOf(c.get('address')));
      throw verdict.allowed ? error : tooMany('too many failed logins from this address', verdict);
    }
  };
}
