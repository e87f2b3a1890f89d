import { addDays, type DateRange, daysIn } from '../../report/days.ts';

const dayMs = 86_400_000;

/** The days of ClickHouse's `Date`; others have no rows. */
export const storedDays = { min: '1970-01-01', max: '2149-06-06' } as const;

/** A range of at most so many days is drawn whole, with or without rows. */
const mostDays = 3660;

/** Whether the text is a day of the calendar. */
export function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) && addDays(text, 0) === text;
}

const monthStart = (day: string, months = 0): string => {
  // `Date.UTC` takes years before 100 for others.
  const date = new Date(`${day.slice(0, 7)}-01`);
  date.setUTCMonth(date.getUTCMonth() + months);
  return date.toISOString().slice(0, 10);
};
const weekStart = (day: string): string =>
  // 1970-01-05 was a Monday.
  addDays(day, -((((Date.parse(day) / dayMs - 4) % 7) + 7) % 7));

/** The first day of the next day, week (ISO 8601) or month. */
const following = {
  day: (day: string) => addDays(day, 1),
  week: (day: string) => addDays(weekStart(day), 7),
  month: (day: string) => monthStart(day, 1),
} as const;

/** Every day, week or month of a range, ascending; the first and the last are cut to it, as the service does. */
export function periodsOf(range: DateRange, each: keyof typeof following): DateRange[] {
  const periods = [periodFrom(range.start, range, each)];
  // By the last days: after that of the year 9999 comes none that can be compared.
  for (let last = periods[0]; last && last.end < range.end; periods.push(last))
    last = periodFrom(addDays(last.end, 1), range, each);
  return periods;
}

function periodFrom(start: string, { end }: DateRange, each: keyof typeof following): DateRange {
  const last = addDays(following[each](start), -1);
  return { start, end: last < end ? last : end };
}

/**
 * The part of a range that is drawn: all of it, or where it is longer than ten years, from the first to the last day, week or
 * month that has rows.
 * @param starts the first days of those that have rows
 */
export function drawnOf(
  range: DateRange,
  starts: readonly string[],
  each: keyof typeof following,
): DateRange {
  if (daysIn(range) <= mostDays) return range;
  const least = starts.reduce((one, other) => (one < other ? one : other), starts[0] ?? range.start);
  const most = starts.reduce((one, other) => (one > other ? one : other), least);
  return { start: least, end: periodFrom(most, range, each).end };
}

/** Whether a week or month was cut, as `periodsOf` does at the edges of a range. */
export function isPart({ start, end }: DateRange, each: keyof typeof following): boolean {
  if (each === 'day') return false;
  const before = addDays(start, -1);
  return following[each](before) !== start || following[each](start) !== addDays(end, 1);
}

const lastDays = (today: string, days: number): DateRange => ({
  start: addDays(today, -days),
  end: addDays(today, -1),
});

/** Ranges by name. Those of a number of days end yesterday, the last day that is over. */
export const presets = {
  yesterday: (today: string) => lastDays(today, 1),
  last_7_days: (today: string) => lastDays(today, 7),
  last_28_days: (today: string) => lastDays(today, 28),
  last_90_days: (today: string) => lastDays(today, 90),
  this_month: (today: string) => ({ start: monthStart(today), end: today }),
  last_month: (today: string) => ({ start: monthStart(today, -1), end: addDays(monthStart(today), -1) }),
  this_quarter: (today: string) => ({
    start: monthStart(today, -((Number(today.slice(5, 7)) - 1) % 3)),
    end: today,
  }),
  last_365_days: (today: string) => lastDays(today, 365),
} as const satisfies Record<string, (today: string) => DateRange>;

export type Preset = keyof typeof presets;

export function isPreset(name: string): name is Preset {
  return Object.hasOwn(presets, name);
}
