import type { Handler } from 'hono';
import { accountCloses, closesBody } from '../../close/account-closes.ts';
import { parseBody } from '../../report/request.ts';
import type { ReportDeps } from '../report/handler.ts';
import { inPlace, type Place } from '../report/in-place.ts';
import { requireJsonAccepted } from '../report/negotiation.ts';
import type { HttpEnv } from '../request/env.ts';

/** A question about closes is small, and these tables answer it. */
export const closesPlace: Place = {
  size: 'small',
  questioned: { days: [], tables: ['closes', 'placements'] },
};

export type ClosesDeps = Pick<ReportDeps, 'damage' | 'reader' | 'gate' | 'routingOf'>;

/** Answers which months of a range were closed. */
export function closesOf(deps: ClosesDeps, family: string): Handler<HttpEnv> {
  const { reader, routingOf } = deps;
  return async function closesHandler(c) {
    requireJsonAccepted(c);
    const range = parseBody(closesBody, c.get('body'));
    const account = c.get('account');
    const result = await inPlace(deps, c, closesPlace, (signal) =>
      accountCloses(reader, { family, account, routing: routingOf(account) }, range, signal),
    );
    return c.json({ result }, 200, { Vary: 'Accept' });
  };
}
