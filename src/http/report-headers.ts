import type { RowColumn } from '../report/columns.ts';
import { type ReportFormatName, reportFormats } from '../report/formats.ts';
import type { DateRange } from '../report/request.ts';
import type { ReportStream } from '../report/stream.ts';

export interface ReportFacts {
  /** Path of the endpoint. */
  readonly path: string;
  readonly range: DateRange;
  readonly format: ReportFormatName;
  readonly columns: readonly RowColumn[];
  /** `yyyy-mm-dd hh:mm:ss TZ` */
  readonly lastUpdateTime: string;
  readonly lastLoad: Date | undefined;
}

/**
 * The headers of a report. What the envelope of JSON says beside the rows, the other formats say here, as
 * structured fields (RFC 9651); runs of unconfirmed days as intervals, so that a year fits.
 */
export function reportHeaders(facts: ReportFacts, stream: ReportStream): Record<string, string> {
  const { mediaType, extension } = reportFormats[facts.format];
  const { start, end } = facts.range;
  const name = facts.path.replace('/v1/', '').replace('/breakdowns', '').replaceAll('/', '_');
  return {
    'Content-Type':
      facts.format === 'json' || facts.format === 'csv' ? `${mediaType}; charset=utf-8` : mediaType,
    Vary: 'Accept, Accept-Encoding',
    ...(stream.coding !== 'identity' && { 'Content-Encoding': stream.coding }),
    ...(facts.lastLoad && { 'Last-Modified': facts.lastLoad.toUTCString() }),
    ...(facts.format !== 'json' && {
      'Content-Disposition': `attachment; filename="${name}_${start}_${end}.${extension}"`,
      'Adtally-Last-Update-Time': `"${facts.lastUpdateTime}"`,
      'Adtally-Column-Types': facts.columns.map(({ id, type }) => `${id}=${type}`).join(', '),
      'Adtally-Unconfirmed-Revenue-Dates': intervals(stream.unconfirmedDates)
        .map((text) => `"${text}"`)
        .join(', '),
    }),
  };
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
