import { localDay, localTime } from '../../clickhouse/local-time.ts';
import { addDays, type DateRange } from '../report/days.ts';

/** How often a report is sent, and on which days: every day, on Mondays, or on the first of a month. */
export const frequencies = ['day', 'week', 'month'] as const;
export type Frequency = (typeof frequencies)[number];

/** The days of a report, seen from the day on which it is due. Weeks are those of ISO 8601. */
export const periods = ['yesterday', 'last_week', 'last_month', 'month_to_date'] as const;
export type Period = (typeof periods)[number];

/** What is sent if nobody says otherwise. */
export const usualPeriod = {
  day: 'yesterday',
  week: 'last_week',
  month: 'last_month',
} as const satisfies Record<Frequency, Period>;

export interface Timing {
  readonly every: Frequency;
  /** `hh:mm` in the time zone of the store. */
  readonly at: string;
}

export interface Due {
  /** `yyyy-mm-dd` in the time zone of the store. */
  readonly day: string;
  readonly at: Date;
}

/** What was missed for longer is not sent any more, but for the last one. */
export const missedDays = 14;
const mostDays = 31;

/** What was due up to now, the earliest first. */
export function dueUntil({ every, at }: Timing, now: Date, timezone: string): Due[] {
  const today = localDay(now, timezone);
  const found: Due[] = [];
  for (let back = 0; back <= mostDays && (back <= missedDays || found.length === 0); back++) {
    const day = addDays(today, -back);
    if (!isDueOn(every, day)) continue;
    const due = { day, at: instantOf(`${day}T${at}`, timezone) };
    if (due.at <= now) found.unshift(due);
  }
  return found;
}

/** The days of the report that is due on a day. Month to date goes to the day before, so on the first it is the last month. */
export function daysOf(period: Period, day: string): DateRange {
  const yesterday = addDays(day, -1);
  if (period === 'yesterday') return { start: yesterday, end: yesterday };
  if (period === 'month_to_date') return { start: firstOfMonth(yesterday), end: yesterday };
  if (period === 'last_week') {
    const monday = addDays(day, -weekday(day));
    return { start: addDays(monday, -7), end: addDays(monday, -1) };
  }
  const end = addDays(firstOfMonth(day), -1);
  return { start: firstOfMonth(end), end };
}

/** When a clock in the time zone shows that; where it skips it, as if it had not been put forward. */
function instantOf(local: string, timezone: string): Date {
  const wanted = Date.parse(`${local}Z`);
  const shown = (ms: number) => Date.parse(`${localTime(new Date(ms), timezone).replace(' ', 'T')}Z`);
  const near = wanted + wanted - shown(wanted);
  const nearer = near + wanted - shown(near);
  return new Date(shown(nearer) === wanted ? nearer : Math.max(near, nearer));
}

const firstOfMonth = (day: string) => `${day.slice(0, 8)}01`;
/** From Monday, which is 0. */
const weekday = (day: string) => (new Date(day).getUTCDay() + 6) % 7;

function isDueOn(every: Frequency, day: string): boolean {
  return every === 'day' || (every === 'week' ? weekday(day) === 0 : day.endsWith('-01'));
}
