/** First and last day of a report, inclusive, as `yyyy-mm-dd`. */
export interface DateRange {
  readonly start: string;
  readonly end: string;
}

const dayMs = 86_400_000;

/** How many days a range has. */
export function daysIn({ start, end }: DateRange): number {
  return daysBetween(start, end) + 1;
}

/** From the first day to the second, negative if that is earlier. */
export function daysBetween(first: string, second: string): number {
  return (Date.parse(second) - Date.parse(first)) / dayMs;
}

/** The day so many days later, or earlier if they are negative. What comes out is no day where its year has not four digits. */
export function addDays(day: string, days: number): string {
  return new Date(Date.parse(day) + days * dayMs).toISOString().slice(0, 10);
}

/** Days by the name that tells how they lie before a range; undefined if they begin before the year 0. */
export const periodsBefore = {
  /** As many days, right before. */
  previous_period: (range) => shifted(range, daysIn(range)),
  /** As many days, the fewest whole weeks before that are not of the range: the same days of the week. */
  previous_weeks: (range) => shifted(range, 7 * Math.ceil(daysIn(range) / 7)),
  previous_month: (range) => sameDates(range, monthBefore),
  previous_year: (range) => sameDates(range, yearBefore),
} as const satisfies Record<string, (range: DateRange) => DateRange | undefined>;

export type PeriodBefore = keyof typeof periodsBefore;
export const periodNames = Object.keys(periodsBefore) as PeriodBefore[];

function shifted({ start, end }: DateRange, days: number): DateRange | undefined {
  return rangeOf(plusDays(start, -days), daysIn({ start, end }));
}

/**
 * As many days, from the same date before: of one that is not there, such as 29 February, from the last of its month. They do
 * not go beyond the last day of the range before, so that a longer month or a leap year is not compared with days of its own.
 */
function sameDates(range: DateRange, before: (day: string) => string | undefined): DateRange | undefined {
  const [days, last] = [rangeOf(before(range.start), daysIn(range)), before(range.end)];
  return days && last ? { start: days.start, end: days.end < last ? days.end : last } : undefined;
}

function monthBefore(day: string): string | undefined {
  const last = plusDays(`${day.slice(0, 8)}01`, -1);
  return last && last.slice(0, 8) + (day.slice(8) < last.slice(8) ? day.slice(8) : last.slice(8));
}

function yearBefore(day: string): string | undefined {
  if (day.startsWith('0000')) return undefined;
  const year = `${Number(day.slice(0, 4)) - 1}`.padStart(4, '0');
  return `${year}${day.slice(4)}`.replace(/-02-29$/, '-02-28');
}

function rangeOf(start: string | undefined, days: number): DateRange | undefined {
  const end = start && plusDays(start, days - 1);
  return start && end ? { start, end } : undefined;
}

/** As `addDays`; undefined beyond four digits of a year. */
function plusDays(day: string, days: number): string | undefined {
  const text = addDays(day, days);
  return /^\d{4}-/.test(text) ? text : undefined;
}
