import * as z from 'zod';
import { InvalidRequest } from '../report/invalid-request.ts';
import type { Schedule, StoredSchedule } from './schedules.ts';

export const created = z.strictObject({ id: z.string() });

/** Which schedule is paused, resumed or removed. */
export const chosen = z.strictObject({
  schedule: z
    .string()
    .min(1, 'must have 1 to 40 characters')
    .max(40, 'must have 1 to 40 characters')
    .describe('its id in the list'),
});

export const turnedTo = z.strictObject({
  schedule: z.string(),
  state: z.enum(['active', 'paused', 'removed']),
});

/** The schedule in another state. What was due while it was paused is not sent. */
export function turned(schedule: Schedule, state: z.infer<typeof turnedTo>['state']): StoredSchedule {
  if (state === 'active' && schedule.state === 'ended')
    throw new InvalidRequest('schedule', `${schedule.id} has ended with its token`);
  const isResumed = state === 'active' && schedule.state !== 'active';
  return { ...schedule, state, ...(isResumed && { since: new Date() }) };
}
