import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import { endpoints } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { reportTimezone } from '../../ingest/load/report-timezone.ts';
import { issueToken, revokeTokens } from '../accounts/tokens.ts';
import { InvalidRequest } from '../report/invalid-request.ts';
import { RequestReader } from '../report/request.ts';
import { daysOf, frequencies, periods, usualPeriod } from '../schedules/due.ts';
import { listMails, type MailState } from '../schedules/mails.ts';
import { listSchedules, type Schedule, storeSchedule } from '../schedules/schedules.ts';
import type { Context, Operation } from './operation.ts';
import { account, text } from './values.ts';

/** Reports by mail. */

const reports = new Map(
  endpoints(catalog)
    .filter(({ path }) => catalog.aliases[path] === undefined)
    .map(({ path, breakdown }) => [path.replace('/v1/', '').replace('/breakdowns', ''), breakdown]),
);
const names = [...reports.keys()];

const address = z
  .email('must be a mail address')
  .max(254, 'must be a mail address')
  .meta({ description: 'recipients' });

const object = z.record(z.string(), z.unknown(), 'must be a JSON object');

const newSchedule = z.strictObject({
  account: account(),
  report: z
    .enum(names, `must be one of ${names.join(', ')}`)
    .describe('as exports are named: campaigns/device_date'),
  to: z
    .array(address)
    .min(1, 'needs a recipient')
    .max(50, 'must be 50 recipients at most')
    .describe('recipients'),
  every: z
    .enum(frequencies, `must be one of ${frequencies.join(', ')}`)
    .describe('how often: every day, on Mondays, on the first of a month')
    .meta({ title: 'frequency' }),
  period: z
    .enum(periods, `must be one of ${periods.join(', ')}`)
    .optional()
    .describe('its days; the day, week or month before if absent'),
  at: z
    .string()
    .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of day, such as 06:00')
    .default('06:00')
    .describe('when, in the time zone of the store')
    .meta({ title: 'hh:mm' }),
  attach: z
    .enum(['xlsx', 'csv'], 'must be xlsx or csv')
    .default('xlsx')
    .describe('the file of all rows')
    .meta({ title: 'format' }),
  wait: z
    .string()
    .regex(/^(\d{1,2}|1[0-5]\d|16[0-8])h$/, 'must be hours, from 0h to 168h')
    .default('24h')
    .describe('how long to wait until its days are confirmed; then the mail says that it is provisional')
    .meta({ title: 'hours' }),
  body: z
    .union([object, z.string().transform(parsed).pipe(object)], { error: 'must be a JSON object' })
    .default({})
    .describe('optional fields of the body of a report, as JSON: {"filters": {"device": ["mobile"]}}')
    .meta({ title: 'json' }),
});

function parsed(json: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(json);
  } catch {
    context.addIssue({ code: 'custom', message: 'must be a JSON object' });
    return z.NEVER;
  }
}

const created = z.strictObject({ id: z.string() });

export const createSchedule: Operation<typeof newSchedule, z.infer<typeof created>> = {
  name: 'schedule create',
  summary: 'send a report by mail every day, week or month',
  input: newSchedule,
  answer: created,
  changes: 'something',
  async run({ store }, { wait, every, period = usualPeriod[every], to, ...given }) {
    judgeBody(given.report, given.body, period);
    const now = new Date();
    const id = `${now.toISOString().slice(0, 19).replace(/\D/g, '')}${randomBytes(3).toString('hex')}`;
    const [family] = given.report.split('/');
    // Its text is kept nowhere: what opens the report are links that it makes.
    const label = `mails of schedule ${id}`;
    const { id: token } = await issueToken(store, { account: given.account, family, label });
    const recipients = [...new Set(to)];
    const waitHours = Number.parseInt(wait, 10);
    await storeSchedule(store, {
      id,
      ...given,
      every,
      period,
      to: recipients,
      waitHours,
      token,
      state: 'active',
      since: now,
    });
    return { id };
  },
};

/** @throws {InvalidRequest} for what is no field of a report, or no report of changing days can have */
function judgeBody(
  report: string,
  body: Readonly<Record<string, unknown>>,
  period: Schedule['period'],
): void {
  const breakdown = reports.get(report);
  if (!breakdown) throw new Error(`there is no report ${report}`);
  // It becomes the address of an export.
  if (JSON.stringify(body).length > 4_000)
    throw new InvalidRequest('body', 'must have 4000 characters at most');
  for (const field of ['start_time', 'end_time', 'changed_since']) {
    if (field in body) throw new InvalidRequest('body', `must not have ${field}: --period says the days`);
  }
  if (typeof body.compare_to === 'object') {
    throw new InvalidRequest('body', 'must name the days of compare_to, such as previous_period');
  }
  const { start, end } = daysOf(period, '2026-01-31');
  try {
    new RequestReader(catalog, breakdown).read({ ...body, start_time: start, end_time: end });
  } catch (error) {
    if (error instanceof InvalidRequest)
      throw new InvalidRequest('body', `is no body of this report: ${error.message}`);
    throw error;
  }
}

const states = ['waiting', 'taken', 'unknown', 'delayed', 'refused', 'sent'] as const satisfies readonly (
  | MailState
  | 'waiting'
)[];

const listed = z.strictObject({
  id: z.string(),
  account: z.string(),
  report: z.string(),
  to: z.array(z.string()),
  every: z.enum(frequencies),
  period: z.enum(periods),
  at: z.string(),
  attach: z.string(),
  wait: z.string(),
  body: z.record(z.string(), z.unknown()),
  state: z.enum(['active', 'paused', 'removed']),
  token: z.string().describe('The id of the token that opens the report.'),
  mails: z
    .array(
      z.strictObject({
        day: z.string().describe('On which it was due.'),
        recipient: z.string(),
        state: z
          .enum(states)
          .describe(
            'waiting: not sent yet. taken: under way, or its sender died and nobody knows whether it was sent. unknown: the mail server did not say whether it took it. delayed: tried again. refused: the mail server will not take it.',
          ),
        time: z.iso.datetime().nullable(),
        error: z.string(),
      }),
    )
    .describe('Those that are not sent, and the last one of each recipient.'),
});
const ofAccount = z.strictObject({ account: account('only those of this account').optional() });

export const schedules: Operation<typeof ofAccount, z.infer<typeof listed>[]> = {
  name: 'schedule list',
  summary: 'list schedules, and which of their mails were sent',
  input: ofAccount,
  answer: z.array(listed),
  changes: 'nothing',
  async run({ store }, { account: only }) {
    const mails = await listMails(store, new Date(), await reportTimezone(store));
    return (await listSchedules(store))
      .filter(({ account }) => (only ?? account) === account)
      .map(({ waitHours, since: _, ...schedule }) => {
        const own = mails.filter((mail) => mail.schedule.id === schedule.id);
        const isLast = (mail: (typeof own)[number]) =>
          own.findLast(({ recipient }) => recipient === mail.recipient) === mail;
        return {
          ...schedule,
          to: [...schedule.to],
          wait: `${waitHours}h`,
          mails: own
            .filter((mail) => mail.last?.state !== 'sent' || isLast(mail))
            .map(({ due, recipient, last }) => ({
              day: due.day,
              recipient,
              state: last?.state ?? ('waiting' as const),
              time: last?.at.toISOString() ?? null,
              error: last?.error ?? '',
            })),
        };
      });
  },
};

const chosen = z.strictObject({ schedule: text(40, 'its id in the list') });
const now = z.strictObject({ schedule: z.string(), state: z.enum(['active', 'paused', 'removed']) });

/** An operation that changes the state of a schedule. */
function turning(
  name: string,
  summary: string,
  state: Schedule['state'],
): Operation<typeof chosen, z.infer<typeof now>> {
  return {
    name,
    summary,
    input: chosen,
    answer: now,
    changes: 'something',
    async run({ store }: Context, { schedule: id }) {
      const schedule = (await listSchedules(store)).find((each) => each.id === id);
      if (!schedule) throw new InvalidRequest('schedule', `${id} is not in the list of schedules`);
      const isResumed = state === 'active' && schedule.state !== 'active';
      await storeSchedule(store, { ...schedule, state, ...(isResumed && { since: new Date() }) });
      if (state === 'removed') await revokeTokens(store, { id: schedule.token });
      return { schedule: id, state };
    },
  };
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
