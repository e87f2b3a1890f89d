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

/** As many days, right before the range; undefined if they begin before the year 0. */
export function previousPeriod(range: DateRange): DateRange | undefined {
  const days = daysIn(range);
  return rangeOf(plusDays(range.start, -days), days);
}

/**
 * As many days, from the same date a year before: of 29 February from the 28th. It does not go beyond the last day a year
 * before, so that a leap year is not compared with a day of its own. Undefined if that is before the year 0.
 */
export function previousYear({ start, end }: DateRange): DateRange | undefined {
  if (start.startsWith('0000')) return undefined;
  const days = rangeOf(yearBefore(start), daysIn({ start, end }));
  const last = yearBefore(end);
  return days && { start: days.start, end: days.end < last ? days.end : last };
}

function yearBefore(day: string): string {
  const year = `${Number(day.slice(0, 4)) - 1}`.padStart(4, '0');
  return `${year}${day.slice(4)}`.replace(/-02-29$/, '-02-28');
}

function rangeOf(start: string | undefined, days: number): DateRange | undefined {
  const end = start && plusDays(start, days - 1);
  return start && end ? { start, end } : undefined;
}

/** Undefined beyond four digits of a year. */
function plusDays(day: string, days: number): string | undefined {
  const text = new Date(Date.parse(day) + days * dayMs).toISOString();
  return /^\d{4}-/.test(text) ? text.slice(0, 10) : undefined;
}
