import { addDays } from '../../report/days.ts';

/** Days as `yyyy-mm-dd`, first and last. */
export interface DayRange {
  readonly start: string;
  readonly end: string;
}

const dayMs = 86_400_000;

/** Whether the text is a day of the calendar. */
export function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) && addDays(text, 0) === text;
}

const monthStart = (day: string, months = 0): string => {
  const [year = 0, month = 1] = day.split('-').map(Number);
  return new Date(Date.UTC(year, month - 1 + months, 1)).toISOString().slice(0, 10);
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
export function periodsOf({ start, end }: DayRange, each: keyof typeof following): DayRange[] {
  const periods: DayRange[] = [];
  for (let first = start; first <= end; ) {
    const next = following[each](first);
    const last = addDays(next, -1);
    periods.push({ start: first, end: last < end ? last : end });
    first = next;
  }
  return periods;
}

/** Whether a week or month was cut, as `periodsOf` does at the edges of a range. */
export function isPart({ start, end }: DayRange, each: keyof typeof following): boolean {
  const before = addDays(start, -1);
  return following[each](before) !== start || following[each](start) !== addDays(end, 1);
}

const lastDays = (today: string, days: number): DayRange => ({
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
} as const satisfies Record<string, (today: string) => DayRange>;

export type Preset = keyof typeof presets;

export function isPreset(name: string): name is Preset {
  return Object.hasOwn(presets, name);
}
