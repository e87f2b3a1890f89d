import * as z from 'zod';
import type { Store } from '../../clickhouse/client.ts';
import { reportTimezone } from '../../ingest/load/report-timezone.ts';
import { issueToken, listTokens, revokeTokens } from '../accounts/tokens.ts';
import { InvalidRequest } from '../report/invalid-request.ts';
import { newSchedule, scheduleOf } from '../schedules/new-schedule.ts';
import { isSame, listSchedules, type Schedule, storeSchedule, tokenLabel } from '../schedules/schedules.ts';
import { listed, tellSchedules } from '../schedules/told.ts';
import { chosen, created, turned, turnedTo } from '../schedules/turned.ts';
import type { Context, Operation } from './operation.ts';
import { account, ofAccount } from './values.ts';

/** Reports by mail. */

const ofNewSchedule = z.strictObject({ account: account(), ...newSchedule.shape });

export const createSchedule: Operation<typeof ofNewSchedule, z.infer<typeof created>> = {
  name: 'schedule create',
  summary: 'send a report by mail every day, week or month',
  input: ofNewSchedule,
  answer: created,
  changes: 'something',
  async run({ store }, { account, ...given }) {
    const schedule = scheduleOf(given, { account, madeBy: '' });
    const made = (await listSchedules(store, account)).find(isSame(schedule));
    if (made) return { id: made.id };
    const [family] = schedule.report.split('/');
    // Its text is kept nowhere: what opens the report are links that it makes.
    const { id: token } = await issueToken(store, { account, family, label: tokenLabel(schedule) });
    await storeSchedule(store, { ...schedule, token });
    // Another call may have made one at the same moment: whichever looks last sees both.
    const [first = schedule, ...more] = (await listSchedules(store, account)).filter(isSame(schedule));
    for (const each of more) await remove(store, each);
    return { id: first.id };
  },
};

export const schedules: Operation<typeof ofAccount, z.infer<typeof listed>[]> = {
  name: 'schedule list',
  summary: 'list schedules, and which of their mails were sent',
  input: ofAccount,
  answer: z.array(listed),
  changes: 'nothing',
  async run({ store }, { account }) {
    return tellSchedules(store, await reportTimezone(store), account);
  },
};

/** An operation that changes the state of a schedule. */
function turning(
  name: string,
  summary: string,
  state: z.infer<typeof turnedTo>['state'],
): Operation<typeof chosen, z.infer<typeof turnedTo>> {
  return {
    name,
    summary,
    input: chosen,
    answer: turnedTo,
    changes: 'something',
    async run({ store }: Context, { schedule: id }) {
      const schedule = (await listSchedules(store)).find((each) => each.id === id);
      if (!schedule) throw new InvalidRequest('schedule', `${id} is not in the list of schedules`);
      if (state === 'removed') await remove(store, schedule);
      else await storeSchedule(store, turned(schedule, state));
      return { schedule: id, state };
    },
  };
}

/** First its token, because what is removed cannot be removed again. */
async function remove(store: Store, schedule: Schedule): Promise<void> {
  const { account } = schedule;
  for (const { id } of await listTokens(store, { account, label: tokenLabel(schedule) }))
    await revokeTokens(store, { id });
  await storeSchedule(store, turned(schedule, 'removed'));
}

export const pauseSchedule = turning(
  'schedule pause',
  'send nothing of a schedule until it is resumed',
  'paused',
);
export const resumeSchedule = turning(
  'schedule resume',
  'send again what is due from now on; what was due meanwhile is not sent',
  'active',
);
export const removeSchedule = turning(
  'schedule remove',
  'send nothing of a schedule any more, and revoke its token, with the links in its mails',
  'removed',
);
