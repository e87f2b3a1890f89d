import type { Handler } from 'hono';
import { accountCloses, closesBody } from '../../close/account-closes.ts';
import { parseBody } from '../../report/request.ts';
import type { ReportDeps } from '../report/handler.ts';
import { requireJsonAccepted } from '../report/negotiation.ts';
import { callerOf } from '../request/caller.ts';
import type { HttpEnv } from '../request/env.ts';

export type ClosesDeps = Pick<ReportDeps, 'damage' | 'reader' | 'gate' | 'routingOf'>;

/** Answers which months of a range were closed. */
export function closesOf({ damage, reader, gate, routingOf }: ClosesDeps, family: string): Handler<HttpEnv> {
  return async function closesHandler(c) {
    requireJsonAccepted(c);
    const range = parseBody(closesBody, c.get('body'));
    const account = c.get('account');
    const signal = callerOf(c);
    const slot = await gate.enter(account, 'small', signal);
    try {
      const whose = { family, account, routing: routingOf(account) };
      const questioned = { days: [], tables: ['closes', 'placements'] };
      const result = await damage.whole(questioned, () => accountCloses(reader, whose, range, signal));
      return c.json({ result }, 200, { Vary: 'Accept' });
    } finally {
      slot.leave();
    }
  };
}
