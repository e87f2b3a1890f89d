import * as z from 'zod';
import type { Store } from '../../clickhouse/client.ts';
import { frequencies, periods } from './due.ts';
import { listMails, type MailState } from './mails.ts';
import { listAgreed, listSchedules, listUnsubscribed, ownOf, type Schedule } from './schedules.ts';

const states = ['waiting', 'taken', 'unknown', 'delayed', 'refused', 'sent'] as const satisfies readonly (
  | MailState
  | 'waiting'
)[];

const mail = z.strictObject({
  day: z.string().describe('On which it was due.'),
  recipient: z.string(),
  state: z
    .enum(states)
    .describe(
      'waiting: not sent yet. taken: under way, or its sender died and nobody knows whether it was sent. unknown: the mail server did not say whether it took it. delayed: tried again. refused: the mail server will not take it.',
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
    .enum(['active', 'paused', 'removed', 'ended'])
    .describe('ended: the token that opens its report was revoked or has expired.'),
  token: z
    .string()
    .describe('The id of the token that opens the report; empty: the sender makes one with the first mail.'),
  made_by: z
    .string()
    .describe('Empty: the operator; else the token or the person that made it for their account.'),
  not_agreed: z
    .array(z.string())
    .describe('Recipients who have not said yet whether they want it: they are asked once.'),
  left: z.array(z.string()).describe('Recipients who want no more of it.'),
  mails: z.array(mail).describe('Those that are not sent, and the last one of each recipient.'),
});

/** The same for its account, which is not told what the mail server and the service say to each other. */
export const ownListed = z.object({
  ...listed.omit({ account: true, token: true }).shape,
  mails: z.array(z.object(mail.omit({ error: true }).shape)).describe(listed.shape.mails.description ?? ''),
});

/** Schedules, the oldest first. */
export async function tellSchedules(
  store: Store,
  timezone: string,
  isAsked: (schedule: Schedule) => boolean,
): Promise<z.infer<typeof listed>[]> {
  const asked = (await listSchedules(store)).filter(isAsked);
  if (asked.length === 0) return [];
  const [mails, agreed, unsubscribed] = await Promise.all([
    listMails(store, new Date(), timezone),
    listAgreed(store),
    listUnsubscribed(store),
  ]);
  return asked.map(({ waitHours, madeBy, since: _, ...schedule }) => {
    const { id, account, to } = schedule;
    const own = ownOf(account);
    const mine = mails.filter((mail) => mail.schedule.id === id);
    const isLast = (mail: (typeof mine)[number]) =>
      mine.findLast(({ recipient }) => recipient === mail.recipient) === mail;
    const left = to.filter(
      (recipient) =>
        unsubscribed.get(id)?.has(recipient) || (madeBy !== '' && unsubscribed.get(own)?.has(recipient)),
    );
    const has = (recipient: string) => madeBy === '' || agreed.get(own)?.has(recipient);
    return {
      ...schedule,
      to: [...to],
      wait: `${waitHours}h`,
      made_by: madeBy,
      not_agreed: to.filter((recipient) => !has(recipient) && !left.includes(recipient)),
      left,
      mails: mine
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
}
