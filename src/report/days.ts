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

/** As many days, from the same date a year before: of 29 February from the 28th. Undefined if that is before the year 0. */
export function previousYear(range: DateRange): DateRange | undefined {
  const year = `${Number(range.start.slice(0, 4)) - 1}`.padStart(4, '0');
  const start = `${year}${range.start.slice(4)}`.replace(/-02-29$/, '-02-28');
  return range.start.startsWith('0000') ? undefined : rangeOf(start, daysIn(range));
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
