import type { Context } from 'hono';
import Negotiator from 'negotiator';
import { type ReportFormatName, reportFormats } from '../../report/formats.ts';
import type { ContentCoding } from '../../report/stream.ts';
import { Problem } from '../problems.ts';

const formatNames = Object.keys(reportFormats) as ReportFormatName[];
const codings: readonly ContentCoding[] = ['zstd', 'gzip', 'br', 'identity'];

/** A caller that invents headers gains nothing: so many are remembered, none of them long. */
const maxRemembered = 1_000;
const maxLength = 200;

/** Remembers what a header means: reading the two takes a fifteenth of the CPU of an answer from memory. */
function remembering<T>(read: (header: string | undefined) => T): (header: string | undefined) => T {
  const known = new Map<string | undefined, T>();
  return (header) => {
    const before = known.get(header);
    if (before !== undefined) return before;
    const value = read(header);
    if (known.size >= maxRemembered) known.clear();
    if ((header?.length ?? 0) <= maxLength) known.set(header, value);
    return value;
  };
}

const offered = formatNames.map((name) => reportFormats[name].mediaType);

/** The preferred one of these media types, if `Accept` allows any. */
function preferred(header: string | undefined, types: string[]): string | undefined {
  // Parameters other than the quality, such as charset, select nothing here.
  const accept = header?.replace(/;(?!\s*q=)[^,;]*/gi, '') || undefined;
  return new Negotiator({ headers: { accept } }).mediaType(types);
}

const formatOf = remembering((header): ReportFormatName => {
  const accepted = preferred(header, offered);
  const name = formatNames.find((candidate) => reportFormats[candidate].mediaType === accepted);
  if (!name) throw new Problem('not_acceptable', `a report comes as ${offered.join(', ')}`);
  return name;
});

const codingOf = remembering((header): ContentCoding => {
  const accepted = new Negotiator({ headers: { 'accept-encoding': header } }).encoding(codings, {
    preferred: codings,
  });
  return codings.find((coding) => coding === accepted) ?? 'identity';
});

/**
 * The format the caller prefers by `Accept` (RFC 9110 §12.5.1); JSON if it does not say or accepts anything.
 * @throws {Problem} `not_acceptable`, listing the available formats
 */
export function acceptedFormat(c: Context): ReportFormatName {
  return formatOf(c.req.header('accept'));
}

/** @throws {Problem} `not_acceptable` when the caller does not take JSON */
export function requireJsonAccepted(c: Context): void {
  if (preferred(c.req.header('accept'), ['application/json'])) return;
  throw new Problem('not_acceptable', 'this comes as application/json');
}

/**
 * The coding the caller prefers by `Accept-Encoding` (RFC 9110 §12.5.3), among equals the fastest; identity
 * if it accepts none of ours.
 */
export function acceptedCoding(c: Context): ContentCoding {
  return codingOf(c.req.header('accept-encoding'));
}
