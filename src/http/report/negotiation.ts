import type { Context } from 'hono';
import Negotiator from 'negotiator';
import { formatNames, type ReportFormatName, reportFormats } from '../../report/formats.ts';
import type { ContentCoding } from '../../report/stream.ts';
import type { HttpEnv } from '../request/env.ts';
import { Problem } from '../request/problems.ts';

const codings: readonly ContentCoding[] = ['zstd', 'gzip', 'br', 'identity'];

const offered = formatNames.map((name) => reportFormats[name].mediaType);

/** The preferred one of these media types, if `Accept` allows any. */
function preferred(header: string | undefined, types: string[]): string | undefined {
  // Parameters other than the quality, such as charset, select nothing here.
  const accept = header?.replace(/;(?!\s*q=)[^,;]*/gi, '') || undefined;
  return new Negotiator({ headers: { accept } }).mediaType(types);
}

/**
 * The format the caller prefers by `Accept` (RFC 9110 §12.5.1); JSON if it does not say or accepts anything.
 * @throws {Problem} `not_acceptable`, listing the available formats
 */
export function acceptedFormat(c: Context<HttpEnv>): ReportFormatName {
  const { accept: header } = c.env.incoming.headers;
  if (header === undefined) return 'json';
  const accepted = preferred(header, offered);
  const name = formatNames.find((candidate) => reportFormats[candidate].mediaType === accepted);
  if (!name) throw new Problem('not_acceptable', `a report comes as ${offered.join(', ')}`);
  return name;
}

/** @throws {Problem} `not_acceptable` when the caller does not take JSON */
export function requireJsonAccepted(c: Context): void {
  if (preferred(c.req.header('accept'), ['application/json'])) return;
  throw new Problem('not_acceptable', 'this comes as application/json');
}

/** The one of these codings that the caller prefers by `Accept-Encoding` (RFC 9110 §12.5.3), among equals the first. */
export function acceptedCoding(
  c: Context<HttpEnv>,
  offered: readonly ContentCoding[] = codings,
): ContentCoding {
  const header = c.env.incoming.headers['accept-encoding']?.toString();
  if (header === undefined) return 'identity';
  const negotiator = new Negotiator({ headers: { 'accept-encoding': header } });
  const accepted = negotiator.encoding(offered, { preferred: offered });
  return offered.find((coding) => coding === accepted) ?? 'identity';
}
