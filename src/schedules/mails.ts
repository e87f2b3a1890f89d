import { randomUUID } from 'node:crypto';
import { type Store, select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { type Due, dueUntil, missedDays } from './due.ts';
import { type Answers, answeredOf, listAnswers, listSchedules, type Schedule } from './schedules.ts';

/** A mail of a schedule to one recipient. */
export interface Mail {
  readonly schedule: Schedule;
  /** Whether it only asks the recipient if mails may come. */
  readonly asks: boolean;
  readonly due: Due;
  readonly recipient: string;
  /** The last attempt to send it, if there was one. */
  readonly last?: Attempt;
}

export type MailState = 'taken' | 'unknown' | 'delayed' | 'refused' | 'sent';

interface Attempt {
  readonly schedule: string;
  readonly day: string;
  readonly recipient: string;
  /** From 1. */
  readonly attempt: number;
  readonly state: MailState;
  readonly at: Date;
  /** When the first attempt at the same mail was made. */
  readonly since: Date;
  readonly error: string;
}

/** An attempt that this process alone makes. */
export interface Taken {
  readonly mail: Mail;
  readonly attempt: number;
  readonly taker: string;
}

export type Outcome = { readonly state: Exclude<MailState, 'taken'>; readonly error?: string };

/** No schedule is due on it: the day of questions, one to a recipient of an account. */
const dayOfQuestions = '1970-01-01';
/** Strangers who get a mail of an account and do not agree; it can have no more of them asked. */
const mostUnanswered = 50;
/** For as long a mail that was taken may be under way: an hour for its report, and the mail server may take its time. */
export const sendingMs = 5_400_000;

/** What mails are made of. */
export interface MailSources {
  readonly schedules: readonly Schedule[];
  readonly answers: Answers;
  /** The last attempt at each mail. */
  readonly attempts: ReadonlyMap<string, Attempt>;
}

export async function readMails(
  store: Store,
  now: Date,
  account?: string,
  isAsked: (schedule: Schedule) => boolean = () => true,
): Promise<MailSources> {
  const schedules = (await listSchedules(store, account)).filter(isAsked);
  // Every service asks once a minute, and most networks send no mails.
  if (schedules.length === 0) return { schedules, answers: new Map(), attempts: new Map() };
  const of = [...new Set(schedules.map(answeredOf))];
  const ids = [...new Set([...of, ...schedules.map(({ id }) => id)])];
  const [answers, attempts] = await Promise.all([listAnswers(store, of), lastAttempts(store, now, ids)]);
  return { schedules, answers, attempts };
}

/**
 * The mails that were due up to now, the earliest of each schedule first. An account's own ones go to those who have agreed, from
 * then on; others are asked, once.
 */
export function mailsOf(sources: MailSources, now: Date, timezone: string): Mail[] {
  const { schedules, answers, attempts } = sources;
  const withLast = (mail: Omit<Mail, 'last'>): Mail => {
    const last = attempts.get(keyOf(mail.schedule.id, mail.due.day, mail.recipient));
    return { ...mail, ...(last && { last: givenUp(last, now) }) };
  };
  // Most schedules are due at a few times of day, and to find when each is due takes half a millisecond by a clock in a time zone.
  const duesOf = new Map<string, readonly Due[]>();
  const mails = schedules.flatMap((schedule) => {
    const { madeBy, state, to, every, at } = schedule;
    const timing = `${every} ${at}`;
    const dues = duesOf.get(timing) ?? dueUntil(schedule, now, timezone);
    duesOf.set(timing, dues);
    const of = answeredOf(schedule);
    const answerOf = (recipient: string) => answers.get(of)?.get(recipient);
    const wants = (recipient: string, due: Due) => {
      const answer = answerOf(recipient);
      const since = answer || madeBy ? answer?.since : schedule.since;
      return since !== undefined && since <= due.at && schedule.since <= due.at;
    };
    const asked = to
      .filter((recipient) => madeBy && state === 'active' && !answerOf(recipient))
      .map((recipient) =>
        withLast({
          schedule: { ...schedule, id: of },
          due: { day: dayOfQuestions, at: schedule.since },
          recipient,
          asks: true,
        }),
      );
    const sent = dues.flatMap((due) =>
      to
        .filter((recipient) => wants(recipient, due))
        .map((recipient) => withLast({ schedule, due, recipient, asks: false })),
    );
    return [...asked, ...sent];
  });
  return withoutMany(mails, sources);
}

/** A mail that was put off for so long is not tried again, as if it had been refused. */
function givenUp(last: Attempt, now: Date): Attempt {
  const isLong = now.getTime() - last.since.getTime() > missedDays * 86_400_000;
  return last.state === 'delayed' && isLong ? { ...last, state: 'refused' } : last;
}

/** Asks each recipient once, however many schedules name them, and nobody new for an account that has had many asked in vain. */
function withoutMany(mails: readonly Mail[], { answers, attempts }: MailSources): Mail[] {
  const unanswered = new Map<string, Set<string>>();
  const of = (own: string) => {
    const known = unanswered.get(own) ?? new Set();
    unanswered.set(own, known);
    return known;
  };
  for (const { schedule, day, recipient } of attempts.values()) {
    if (day === dayOfQuestions && !answers.get(schedule)?.get(recipient)?.hasAgreed)
      of(schedule).add(recipient);
  }
  const seen = new Set<string>();
  return mails.filter(({ asks, schedule, recipient, last }) => {
    if (!asks) return true;
    const key = keyOf(schedule.id, dayOfQuestions, recipient);
    if (seen.has(key)) return false;
    const asked = of(schedule.id);
    if (!last && asked.size >= mostUnanswered) return false;
    asked.add(recipient);
    seen.add(key);
    return true;
  });
}

/** Whether a mail is still to be sent, as far as its schedule goes. */
export function isOpen({ schedule, last }: Mail): boolean {
  return schedule.state === 'active' && (last === undefined || last.state === 'delayed');
}

/** Whether it was refused, or nobody knows whether it was sent: it is not sent again by itself. */
export function isStuck({ last }: Mail, now: Date): boolean {
  if (last?.state === 'taken') return now.getTime() - last.at.getTime() >= sendingMs;
  return last?.state === 'unknown' || last?.state === 'refused';
}

/** When it has to be sent at the latest: its days need not be final any more. */
export function latestAt({ schedule, due }: Mail): Date {
  return new Date(due.at.getTime() + schedule.waitHours * 3_600_000);
}

/** For metrics: when the oldest mail that is still to be sent had to be, in seconds since 1970, NaN without one; and how many reports are stuck. */
export async function unsentMails(
  store: Store,
  now: Date,
  timezone: string,
): Promise<{ readonly oldest: number; readonly stuck: number }> {
  const mails = mailsOf(await readMails(store, now), now, timezone);
  const times = mails.filter(isOpen).map((mail) => (mail.last ? mail.due.at : latestAt(mail)).getTime());
  const oldest = times.length > 0 ? Math.min(...times) / 1000 : Number.NaN;
  return { oldest, stuck: mails.filter((mail) => !mail.asks && isStuck(mail, now)).length };
}

/**
 * Takes the next attempt of a mail, so that no other process makes it: what two senders insert under one token, the engine
 * stores once. Undefined if another one has it.
 */
export async function take(store: Store, mail: Mail, now: Date): Promise<Taken | undefined> {
  const attempt = (mail.last?.attempt ?? 0) + 1;
  const taken = { mail, attempt, taker: randomUUID() };
  const key = JSON.stringify([mail.schedule.id, mail.due.day, mail.recipient, attempt]);
  await retrying(() => write(store, taken, now, { state: 'taken' }, key));
  const [owner] = await retrying(() =>
    select<{ taker: string }>(
      store,
      `SELECT argMin(taker, at) AS taker FROM mails WHERE schedule = {schedule:String} AND day = {day:Date}
         AND recipient = {recipient:String} AND attempt = {attempt:UInt16}`,
      { schedule: mail.schedule.id, day: mail.due.day, recipient: mail.recipient, attempt },
    ),
  );
  return owner?.taker === taken.taker ? taken : undefined;
}

/** Writes what came of an attempt. */
export function record(store: Store, taken: Taken, now: Date, outcome: Outcome): Promise<void> {
  return retrying(() => write(store, taken, now, outcome));
}

async function write(
  store: Store,
  { mail, attempt, taker }: Taken,
  now: Date,
  { state, error = '' }: { readonly state: MailState; readonly error?: string },
  token?: string,
): Promise<void> {
  const { schedule, due, recipient } = mail;
  const at = now.toISOString().slice(0, -1);
  await store.insert({
    table: 'mails',
    values: [{ schedule: schedule.id, day: due.day, recipient, attempt, taker, state, at, error }],
    format: 'JSONEachRow',
    ...(token !== undefined && { clickhouse_settings: { insert_deduplication_token: token } }),
  });
}

const keyOf = (...parts: readonly string[]) => JSON.stringify(parts);

async function lastAttempts(
  store: Store,
  now: Date,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Attempt>> {
  const rows = await select<Omit<Attempt, 'at' | 'since'> & { at_ms: number; since_ms: number }>(
    store,
    `SELECT schedule, toString(m.day) AS day, recipient, attempt, toString(m.state) AS state, error,
            toFloat64(toUnixTimestamp64Milli(m.at)) AS at_ms,
            toFloat64(toUnixTimestamp64Milli(min(m.at) OVER (PARTITION BY schedule, m.day, recipient))) AS since_ms
     FROM mails AS m FINAL
     WHERE m.schedule IN {ids:Array(String)} AND (m.day >= toDate({now:Int64}) - 40 OR m.day = {questions:Date})
     ORDER BY attempt DESC LIMIT 1 BY schedule, day, recipient`,
    { ids, now: Math.floor(now.getTime() / 1000), questions: dayOfQuestions },
  );
  return new Map(
    rows.map(({ at_ms, since_ms, ...attempt }) => [
      keyOf(attempt.schedule, attempt.day, attempt.recipient),
      { ...attempt, at: new Date(at_ms), since: new Date(since_ms) },
    ]),
  );
}
