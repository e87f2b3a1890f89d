import { type Context, Hono, type MiddlewareHandler } from 'hono';
import type { Logger } from 'pino';
import * as z from 'zod';
import { judged, parsedJson } from '../../report/invalid-request.ts';
import { newSchedule } from '../../schedules/new-schedule.ts';
import type { Owner, OwnSchedules } from '../../schedules/own.ts';
import { ownListed } from '../../schedules/told.ts';
import { chosen, created, turnedTo } from '../../schedules/turned.ts';
import { anyFamily } from '../access/authentication.ts';
import { requireJson } from '../report/request-body.ts';
import type { HttpEnv } from '../request/env.ts';
import { onPath } from '../request/on-path.ts';

export interface OwnScheduleDeps {
  readonly schedules: OwnSchedules;
  /** Lets tokens pass, and people who signed in to the page. */
  readonly authenticated: MiddlewareHandler<HttpEnv>;
  readonly limited: MiddlewareHandler<HttpEnv>;
  readonly body: MiddlewareHandler<HttpEnv>;
  readonly log: Logger;
}

/** What an account does with schedules of its own: the operator's operations of these names, without the account. */
export const ownOperations = {
  list: { summary: 'The reports that the account has sent by mail', answer: z.array(ownListed) },
  create: {
    summary: 'Send a report by mail every day, week or month',
    input: newSchedule,
    answer: created,
  },
  pause: { summary: 'Send nothing of a schedule until it is resumed', input: chosen, answer: turnedTo },
  resume: { summary: 'Send what is due from now on', input: chosen, answer: turnedTo },
  remove: { summary: 'Send nothing of a schedule any more', input: chosen, answer: turnedTo },
} as const;

const states = { pause: 'paused', resume: 'active', remove: 'removed' } as const;

export const ownPath = (name: string): string => `/v1/schedule/${name}`;

/** `/v1/schedule/…`: an account lists, makes and ends the schedules of its own reports. */
export function ownScheduleRoutes(deps: OwnScheduleDeps): Hono<HttpEnv> {
  const { schedules, authenticated, limited, body, log } = deps;
  const app = new Hono<HttpEnv>();
  const family = anyFamily;
  onPath(app, ownPath('list'), { allow: 'GET, HEAD', family }, authenticated, limited, async (c) =>
    c.json({ result: await schedules.list(ownerOf(c)) }),
  );
  const changing = (
    name: keyof typeof ownOperations,
    work: (owner: Owner, given: unknown) => Promise<object>,
  ) => {
    const before = [authenticated, limited, requireJson, body];
    onPath(app, ownPath(name), { allow: 'POST', family }, ...before, async (c) => {
      const owner = ownerOf(c);
      const result = await work(owner, parsedJson(c.get('body')));
      log.info({ request: c.get('requestId'), ...owner, ...result }, `schedule ${name}`);
      return c.json({ result });
    });
  };
  changing('create', (owner, given) => schedules.create(owner, judged({ input: newSchedule }, given)));
  for (const [name, state] of Object.entries(states)) {
    changing(name as keyof typeof states, (owner, given) =>
      schedules.turn(owner, judged({ input: chosen }, given).schedule, state),
    );
  }
  return app;
}

function ownerOf(c: Context<HttpEnv>): Owner {
  const { account, onlyFamily: family, token, person } = c.var;
  return { account, family, token, person };
}
