import { remembered } from '../state/memory.ts';
import type { Clock } from '../state/session.ts';
import { languageOf } from './languages.ts';

/** The language that the reader chose here, if any. */
export const chosenLanguage = languageOf(String(remembered('language', '')));
/** What the page speaks: the first of the reader's languages that it has. */
export const language = chosenLanguage ?? navigator.languages.map(languageOf).find(Boolean) ?? 'en';
/** How numbers and days are written: in the language of the page, of the reader's country where that speaks it. A worker is named after it. */
export const locale =
  typeof document === 'undefined'
    ? self.name
    : (navigator.languages.find((tag) => languageOf(tag) === language) ?? language);

const days = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' });
const shortDays = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', timeZone: 'UTC' });
const daysOfYears = new Intl.DateTimeFormat(locale, {
  day: 'numeric',
  month: 'short',
  year: '2-digit',
  timeZone: 'UTC',
});
const months = new Intl.DateTimeFormat(locale, { month: 'short', year: 'numeric', timeZone: 'UTC' });
const zoned = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });
const named = new Intl.DateTimeFormat(locale, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZoneName: 'short',
});
const counts = new Intl.NumberFormat(locale);
const changes = new Intl.NumberFormat(locale, {
  style: 'percent',
  signDisplay: 'exceptZero',
  maximumFractionDigits: 1,
});

/** `yyyy-mm-dd` for people. */
export const dayText = (day: string): string => days.format(Date.parse(day));
/** Where the year is known. */
export const shortDayText = (day: string): string => shortDays.format(Date.parse(day));
export const dayOfYearText = (day: string): string => daysOfYears.format(Date.parse(day));
export const monthText = (day: string): string => months.format(Date.parse(day));
export const rangeText = (start: string, end: string): string =>
  start === end ? dayText(start) : days.formatRange(Date.parse(start), Date.parse(end));
/** A moment by the clock of the report, or where that is not known, by that of the reader. */
export const momentText = (time: number, clock: Clock | undefined): string =>
  clock ? `${zoned.format(time + clock.ahead)} ${clock.zone}` : named.format(time);
/** `yyyy-mm-dd hh:mm:ss TZ`, a moment where the days are counted. */
export function zonedText(time: string): string {
  const [day = '', clock = '', zone = ''] = time.split(' ');
  const read = Date.parse(`${day}T${clock}Z`);
  return Number.isNaN(read) ? time : `${zoned.format(read)} ${zone}`;
}
export const countText = (count: number): string => counts.format(count);
/** Tells gain from loss without a colour. */
export const signed = (value: number, text: string): string =>
  value === 0 ? text : `${value > 0 ? '▲' : '▼'} ${text}`;
/** @param percent of the compared period */
export const changeText = (percent: number): string => changes.format(percent / 100);
export function bytesText(bytes: number): string {
  const [size, unit] = bytes < 1e6 ? [bytes / 1e3, 'kB'] : [bytes / 1e6, 'MB'];
  return `${new Intl.NumberFormat(locale, { maximumFractionDigits: size < 100 ? 1 : 0 }).format(size)} ${unit}`;
}
