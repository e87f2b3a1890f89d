import type { MiddlewareHandler } from 'hono';
import { bearerAuth } from 'hono/bearer-auth';
import type { Edge } from './edge.ts';

/** What authentication needs to know of the tokens. */
export interface Accounts {
  accountOf(token: string): Promise<string | undefined>;
}

/** The WWW-Authenticate challenge of every 401 (RFC 6750 §3). */
export const challenge = 'Bearer realm="adtally"';

/** Lets a request with a valid login token pass and names its account; any other ends in 401 (contract §5). */
export function authentication(accounts: Accounts): MiddlewareHandler<Edge> {
  return bearerAuth({
    realm: 'adtally',
    verifyToken: async (token, c) => {
      const account = await accounts.accountOf(token);
      if (account !== undefined) c.set('account', account);
      return account !== undefined;
    },
  });
}
