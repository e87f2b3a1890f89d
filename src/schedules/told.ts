import * as z from 'zod';
import type { Store } from '../../clickhouse/client.ts';
import { frequencies, periods } from './due.ts';
import {
  isStuck,
  type Mail,
  type MailSources,
  type MailState,
  mailsOf,
  readMails,
  sendingMs,
} from './mails.ts';
import { answeredOf, type Schedule } from './schedules.ts';

const states = ['waiting', 'taken', 'unknown', 'delayed', 'refused', 'sent'] as const satisfies readonly (
  | MailState
  | 'waiting'
)[];

const mail = z.strictObject({
  day: z.string().describe('On which it was due.'),
  recipient: z.string(),
  asks: z
    .boolean()
    .describe('Whether it only asks the recipient if reports may come; its day is then 1970-01-01.'),
  state: z
    .enum(states)
    .describe(
      `waiting: not sent yet. taken: a sender took it less than ${sendingMs / 60_000} minutes ago, and it may be under way. unknown: nobody knows whether it was sent, because the mail server did not say whether it took it, or the sender died. delayed: tried again. refused: the mail server will not take it, or it was put off for two weeks.`,
    ),
  time: z.iso.datetime().nullable(),
  error: z.string(),
});

/** A schedule, and what became of its mails. */
export const listed = z.strictObject({
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
  language: z.string(),
  state: z
    .enum(['active', 'paused', 'ended'])
    .describe(
      'ended: the token that opens its report was revoked or has expired, or the token that made it was revoked.',
    ),
  token: z
    .string()
    .describe('The id of the token that opens the report; empty: the sender makes one with the first mail.'),
  made_by: z
    .string()
    .describe('Empty: the operator; else the token or the person that made it for their account.'),
  not_agreed: z.array(z.string()).describe('Recipients who have not answered yet whether they want it.'),
  left: z.array(z.string()).describe('Recipients who want no more of it, or of what its account sends.'),
  mails: z.array(mail).describe('Mails that are not sent, and the last one of each recipient.'),
});

/** The same for its account, which is not told what the mail server and the service say to each other. */
export const ownListed = z.object({
  ...listed.omit({ account: true, token: true }).shape,
  mails: z.array(z.object(mail.omit({ error: true }).shape)).describe(listed.shape.mails.description ?? ''),
});

/** Schedules, the oldest first. @param account absent: of all */
export async function tellSchedules(
  store: Store,
  timezone: string,
  account: string | undefined,
  isAsked?: (schedule: Schedule) => boolean,
): Promise<z.infer<typeof listed>[]> {
  const now = new Date();
  return toldOf(await readMails(store, now, account, isAsked), now, timezone);
}

/** The same of what was read. */
export function toldOf(sources: MailSources, now: Date, timezone: string): z.infer<typeof listed>[] {
  // Each schedule looks at its own mails alone: thousands have ten times as many.
  const mails = new Map<string, Mail[]>();
  for (const mail of mailsOf(sources, now, timezone)) {
    const { id } = mail.schedule;
    const others = mails.get(id) ?? [];
    mails.set(id, others);
    others.push(mail);
  }
  return sources.schedules.map(({ waitHours, madeBy, since: _, ...schedule }) => {
    const { id, account, to } = schedule;
    const of = answeredOf({ id, account, madeBy });
    const mine = [...new Set([of, id])]
      .flatMap((each) => mails.get(each) ?? [])
      .filter(({ recipient }) => to.includes(recipient));
    const isLast = (mail: (typeof mine)[number]) =>
      mine.findLast(({ recipient }) => recipient === mail.recipient) === mail;
    const answers = sources.answers.get(of);
    return {
      ...schedule,
      to: [...to],
      wait: `${waitHours}h`,
      made_by: madeBy,
      not_agreed: to.filter((recipient) => madeBy !== '' && !answers?.has(recipient)),
      left: to.filter((recipient) => answers?.has(recipient) && !answers.get(recipient)?.since),
      mails: mine
        .filter((mail) => mail.last?.state !== 'sent' || isLast(mail))
        .map((mail) => {
          const { asks, due, recipient, last } = mail;
          const hasDied = last?.state === 'taken' && isStuck(mail, now);
          return {
            day: due.day,
            recipient,
            asks,
            state: hasDied ? ('unknown' as const) : (last?.state ?? ('waiting' as const)),
            time: last?.at.toISOString() ?? null,
            error: last?.error ?? '',
          };
        }),
    };
  });
}
