import type { Context, MiddlewareHandler } from 'hono';
import { bearerAuth } from 'hono/bearer-auth';
import type { HttpEnv } from '../env.ts';
import type { Limiter } from './limiter.ts';
import { tooMany } from './rate-limit.ts';

/** What authentication needs to know about tokens. */
export interface Accounts {
  /** @param known look only among the tokens that are already known */
  accountOf(token: string, known?: boolean): Promise<string | undefined>;
}

/** The WWW-Authenticate challenge of every 401 (RFC 6750 §3). */
export const challenge = 'Bearer realm="adtally"';

/**
 * Lets a request with a valid login token pass and names its account; any other ends in 401 (contract §5).
 * Failed attempts are limited by address, apart from the accounts' quota: a valid token passes from any
 * address, and no number of failures counts against an account.
 */
export function authentication(accounts: Accounts, failures: Limiter): MiddlewareHandler<HttpEnv> {
  const authenticate = bearerAuth<HttpEnv>({
    realm: 'adtally',
    verifyToken: async (token, c) => {
      // Past the limit no caller causes a query for tokens.
      const known = !(await failures.allows(addressOf(c)));
      const account = await accounts.accountOf(token, known);
      if (account !== undefined) c.set('account', account);
      return account !== undefined;
    },
  });
  return async function authenticationMiddleware(c, next) {
    try {
      return await authenticate(c, next);
    } catch (error) {
      if (c.get('account') !== undefined) throw error;
      const verdict = await failures.consume(addressOf(c));
      throw verdict.allowed ? error : tooMany('too many failed logins from this address', verdict);
    }
  };
}

function addressOf(c: Context<HttpEnv>): string {
  return c.env.incoming.socket.remoteAddress ?? 'unknown';
}
