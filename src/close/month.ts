import { monthName } from '../../clickhouse/months.ts';
import type { DateRange } from '../report/days.ts';

/** A calendar month as a number, yyyymm. */
export type Month = number;

/** Undefined for what is no month that events can be of. */
export function monthNamed(text: string): Month | undefined {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  const found = Number(year) * 100 + Number(month);
  return found >= 197101 && found <= 214905 ? found : undefined;
}

/** Its first and its last day. */
export function daysOfMonth(month: Month): DateRange {
  const last = new Date(Date.UTC(Math.floor(month / 100), month % 100, 0));
  return { start: `${monthName(month)}-01`, end: last.toISOString().slice(0, 10) };
}
