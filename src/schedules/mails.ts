import { randomUUID } from 'node:crypto';
import { type Store, select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { type Due, dueUntil } from './due.ts';
import { listSchedules, listUnsubscribed, type Schedule } from './schedules.ts';

/** A mail of a schedule to one recipient. */
export interface Mail {
  readonly schedule: Schedule;
  readonly due: Due;
  readonly recipient: string;
  /** The last attempt to send it, if there was one. */
  readonly last?: Attempt;
}

export type MailState = 'taken' | 'unknown' | 'delayed' | 'refused' | 'sent';

interface Attempt {
  /** From 1. */
  readonly attempt: number;
  readonly state: MailState;
  readonly at: Date;
  readonly error: string;
}

/** An attempt that this process alone makes. */
export interface Taken {
  readonly mail: Mail;
  readonly attempt: number;
  readonly taker: string;
}

export type Outcome = { readonly state: Exclude<MailState, 'taken'>; readonly error?: string };

/** The mails of all schedules that were due up to now, the earliest of each schedule first. */
export async function listMails(store: Store, now: Date, timezone: string): Promise<Mail[]> {
  const schedules = await listSchedules(store);
  // Every service asks once a minute, and most networks send no mails.
  if (schedules.length === 0) return [];
  const [unsubscribed, attempts] = await Promise.all([listUnsubscribed(store), lastAttempts(store, now)]);
  return schedules.flatMap((schedule) =>
    dueUntil(schedule, now, timezone).flatMap((due) =>
      schedule.to
        .filter((recipient) => !unsubscribed.get(schedule.id)?.has(recipient))
        .map((recipient) => {
          const last = attempts.get(keyOf(schedule.id, due.day, recipient));
          return { schedule, due, recipient, ...(last && { last }) };
        }),
    ),
  );
}

/** Whether a mail is still to be sent, as far as its schedule goes. */
export function isOpen({ schedule, last }: Mail): boolean {
  return schedule.state === 'active' && (last === undefined || last.state === 'delayed');
}

/** Whether somebody has to look: it was not sent, and nobody sends it again, or nobody knows. */
export function isStuck({ last }: Mail): boolean {
  return last !== undefined && ['taken', 'unknown', 'refused'].includes(last.state);
}

/** When it has to be sent at the latest: its days need not be final any more. */
export function latestAt({ schedule, due }: Mail): Date {
  return new Date(due.at.getTime() + schedule.waitHours * 3_600_000);
}

/** For metrics: when the oldest mail that is still to be sent had to be, in seconds since 1970, NaN without one; and how many are stuck. */
export async function unsentMails(
  store: Store,
  now: Date,
  timezone: string,
): Promise<{ readonly oldest: number; readonly stuck: number }> {
  const mails = await listMails(store, now, timezone);
  const times = mails.filter(isOpen).map((mail) => (mail.last ? mail.due.at : latestAt(mail)).getTime());
  const oldest = times.length > 0 ? Math.min(...times) / 1000 : Number.NaN;
  return { oldest, stuck: mails.filter(isStuck).length };
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

const keyOf = (schedule: string, day: string, recipient: string) => `${schedule} ${day} ${recipient}`;

async function lastAttempts(store: Store, now: Date): Promise<ReadonlyMap<string, Attempt>> {
  const rows = await select<Omit<Attempt, 'at'> & { key: string; at_ms: number }>(
    store,
    `SELECT concat(schedule, ' ', toString(day), ' ', recipient) AS key, attempt, toString(m.state) AS state, error,
            toFloat64(toUnixTimestamp64Milli(m.at)) AS at_ms
     FROM mails AS m FINAL WHERE day >= toDate({now:Int64}) - 40
     ORDER BY attempt DESC LIMIT 1 BY key`,
    { now: Math.floor(now.getTime() / 1000) },
  );
  return new Map(rows.map(({ key, at_ms, ...attempt }) => [key, { ...attempt, at: new Date(at_ms) }]));
}
