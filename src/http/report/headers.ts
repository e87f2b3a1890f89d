import { endpointName } from '../../../catalog/breakdowns.ts';
import type { RowColumn } from '../../report/columns.ts';
import type { DateRange } from '../../report/days.ts';
import { type ReportFormatName, reportFormats } from '../../report/formats.ts';
import type { ContentCoding } from '../../report/stream.ts';
import type { Summary } from '../../report/summary.ts';

export interface ReportFacts {
  /** Path of the endpoint. */
  readonly path: string;
  /** The account, for a caller that logs in with a token; absent for a link, which does not show it. */
  readonly account?: string;
  /** Of its money, where it is known. */
  readonly currency: string | undefined;
  readonly range: DateRange;
  /** The comparison period. */
  readonly compared: DateRange | undefined;
  readonly format: ReportFormatName;
  /** Of the formats that do not say them: JSON does. */
  readonly columns: readonly RowColumn[];
  /** `yyyy-mm-dd hh:mm:ss TZ` */
  readonly lastUpdateTime: string;
  readonly lastLoad: Date | undefined;
  /** What Cache-Status says (RFC 9211). */
  readonly cache: string;
  /** `yyyy-mm-dd`, ascending */
  readonly unconfirmedDates: readonly string[];
  readonly summary: Summary;
}

/**
 * The headers of a report. What the JSON envelope says beside the rows, the other formats say here, as structured fields
 * (RFC 9651); runs of unconfirmed days as intervals, so that a year fits.
 */
export function reportHeaders(facts: ReportFacts, coding: ContentCoding): Record<string, string> {
  const { mediaType, extension } = reportFormats[facts.format];
  const { start, end } = facts.range;
  return {
    'Content-Type':
      facts.format === 'json' || facts.format === 'csv' ? `${mediaType}; charset=utf-8` : mediaType,
    Vary: 'Accept, Accept-Encoding',
    'Cache-Status': `adtally; ${facts.cache}`,
    ...(coding !== 'identity' && { 'Content-Encoding': coding }),
    ...(facts.currency && { 'Adtally-Currency': facts.currency }),
    ...(facts.lastLoad && { 'Last-Modified': facts.lastLoad.toUTCString() }),
    ...(facts.format !== 'json' && {
      'Content-Disposition': `attachment; filename="${endpointName(facts.path)}_${start}_${end}.${extension}"`,
      ...(facts.account !== undefined && { 'Adtally-Account': displayString(facts.account) }),
      'Adtally-Last-Update-Time': `"${facts.lastUpdateTime}"`,
      'Adtally-Column-Types': facts.columns.map(({ id, type }) => `${id}=${type}`).join(', '),
      'Adtally-Unconfirmed-Revenue-Dates': unconfirmedDates(facts.unconfirmedDates),
      ...optionHeaders(facts),
    }),
  };
}

/** What the optional fields of a request add; strings, because a decimal of a structured field has only 3 places. */
function optionHeaders({ summary: { rowCount, totals }, compared }: ReportFacts): Record<string, string> {
  return {
    ...(rowCount !== undefined && { 'Adtally-Row-Count': rowCount }),
    ...(totals && {
      'Adtally-Totals': Object.entries(totals)
        .map(([id, value]) => `${id}="${value}"`)
        .join(', '),
    }),
    ...(compared && { 'Adtally-Compare-To': `"${compared.start}/${compared.end}"` }),
  };
}

/** Any text as a Display String (RFC 9651 §3.3.8). */
function displayString(text: string): string {
  const escaped = encodeURIComponent(text).replace(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase());
  return `%"${escaped}"`;
}

/** The limit of one header; clients such as Node.js accept 16 KB for all headers together. */
const maxBytes = 12_000;

/**
 * Ascending days as a list of strings (RFC 9651 §3.1). A list that would be too long for a header, as that of every other day
 * of five years, is one interval marked `;partly`: no day is left out.
 */
export function unconfirmedDates(days: readonly string[]): string {
  const exact = intervals(days)
    .map((run) => `"${run}"`)
    .join(', ');
  return exact.length <= maxBytes ? exact : `"${days[0]}/${days.at(-1)}";partly`;
}

/** Ascending days, runs of neighbours as ISO 8601 intervals: `2026-10-01/2026-10-31`. */
export function intervals(days: readonly string[]): string[] {
  const runs: { first: string; last: string }[] = [];
  for (const day of days) {
    const run = runs.at(-1);
    if (run && Date.parse(day) - Date.parse(run.last) === 86_400_000) run.last = day;
    else runs.push({ first: day, last: day });
  }
  return runs.map(({ first, last }) => (first === last ? first : `${first}/${last}`));
}
