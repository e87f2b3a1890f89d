import type { Context } from 'hono';
import Negotiator from 'negotiator';
import { type ReportFormatName, reportFormats } from '../../report/formats.ts';
import type { ContentCoding } from '../../report/stream.ts';
import { Problem } from '../problems.ts';

const formatNames = Object.keys(reportFormats) as ReportFormatName[];
const codings: readonly ContentCoding[] = ['zstd', 'gzip', 'br', 'identity'];

/**
 * The format the caller prefers by `Accept` (RFC 9110 §12.5.1); JSON if it does not say or accepts anything.
 * @throws {Problem} `not_acceptable`, listing the available formats
 */
export function acceptedFormat(c: Context): ReportFormatName {
  const offered = formatNames.map((name) => reportFormats[name].mediaType);
  // Parameters other than the quality, such as charset, select nothing here.
  const accept = c.req.header('accept')?.replace(/;(?!\s*q=)[^,;]*/gi, '') || undefined;
  const accepted = new Negotiator({ headers: { accept } }).mediaType(offered);
  const name = formatNames.find((candidate) => reportFormats[candidate].mediaType === accepted);
  if (!name) throw new Problem('not_acceptable', `a report comes as ${offered.join(', ')}`);
  return name;
}

/**
 * The coding the caller prefers by `Accept-Encoding` (RFC 9110 §12.5.3), among equals the fastest; identity
 * if it accepts none of ours.
 */
export function acceptedCoding(c: Context): ContentCoding {
  const negotiator = new Negotiator({ headers: { 'accept-encoding': c.req.header('accept-encoding') } });
  const accepted = negotiator.encoding(codings, { preferred: codings });
  return codings.find((coding) => coding === accepted) ?? 'identity';
}
