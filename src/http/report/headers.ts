import { endpointName } from '../../../catalog/breakdowns.ts';
import { rowColumns } from '../../report/columns.ts';
import { type DateRange, daysBetween } from '../../report/days.ts';
import { type ReportFormatName, reportFormats } from '../../report/formats.ts';
import type { Answer } from '../../report/kept/memory.ts';
import type { Plan } from '../../report/plan.ts';
import type { ContentCoding, Summary } from '../../report/stream.ts';

/** What is known of a report before anything of it is read. */
export interface ReportFacts {
  /** Path of the endpoint. */
  readonly path: string;
  readonly plan: Plan;
  readonly format: ReportFormatName;
  /** Of an export, which does not show whose it is: a link opens it. The version of its data, if the store tells. */
  readonly exported?: { readonly version: string | undefined };
  /** `yyyy-mm-dd hh:mm:ss TZ` */
  readonly lastUpdateTime: string;
  readonly lastLoad: Date | undefined;
  /** What Cache-Status says (RFC 9211). */
  readonly cache: string;
}

/**
 * The headers of a report. What the JSON envelope says beside the rows, the other formats say here, as structured fields
 * (RFC 9651); runs of unconfirmed days as intervals, so that a year fits.
 */
export function reportHeaders(
  { path, plan, format, exported, lastUpdateTime, lastLoad, cache }: ReportFacts,
  { unconfirmedDates: days, summary }: Pick<Answer, 'unconfirmedDates' | 'summary'>,
  coding: ContentCoding,
): Record<string, string> {
  const { mediaType, extension } = reportFormats[format];
  const { account, range, options, currency } = plan;
  return {
    'Content-Type': format === 'json' || format === 'csv' ? `${mediaType}; charset=utf-8` : mediaType,
    Vary: 'Accept, Accept-Encoding',
    'Cache-Status': `adtally; ${cache}`,
    ...(coding !== 'identity' && { 'Content-Encoding': coding }),
    ...(currency && { 'Adtally-Currency': currency }),
    ...(lastLoad && { 'Last-Modified': lastLoad.toUTCString() }),
    ...(format !== 'json' && {
      'Content-Disposition': `attachment; filename="${endpointName(path)}_${range.start}_${range.end}.${extension}"`,
      ...(!exported && { 'Adtally-Account': displayString(account) }),
      'Adtally-Last-Update-Time': `"${lastUpdateTime}"`,
      'Adtally-Column-Types': rowColumns(plan.catalog, plan.breakdown, options)
        .map(({ id, type }) => `${id}=${type}`)
        .join(', '),
      'Adtally-Unconfirmed-Revenue-Dates': unconfirmedDates(days),
      ...optionHeaders(summary, options.compare_to),
    }),
    ...(exported && exportHeaders(exported.version)),
  };
}

/** What the optional fields of a request add; strings, because a decimal of a structured field has only 3 places. */
function optionHeaders(
  { rowCount, totals }: Summary,
  compared: DateRange | undefined,
): Record<string, string> {
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

/**
 * What an export has beside, or instead. Its tag stands for the data that the report is read from: two answers with the
 * same tag say the same, though their bytes may differ, so it is weak (RFC 9110 §8.8.1).
 */
export function exportHeaders(version: string | undefined): Record<string, string> {
  const headers = { Vary: 'Authorization, Accept-Encoding', 'Cross-Origin-Resource-Policy': 'same-origin' };
  if (!version) return headers;
  // Only the caller may keep the answer, and must ask each time whether it is still true.
  return { ...headers, ETag: `W/"${version}"`, 'Cache-Control': 'private, no-cache' };
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
    if (run && daysBetween(run.last, day) === 1) run.last = day;
    else runs.push({ first: day, last: day });
  }
  return runs.map(({ first, last }) => (first === last ? first : `${first}/${last}`));
}
