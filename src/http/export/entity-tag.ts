import { createHash } from 'node:crypto';

/** Of bytes that are kept, hashed once. */
const hashes = new WeakMap<Buffer, string>();

/**
 * Headers of an exported report. Its tag stands for the data it was read from, so two answers with the same tag say the
 * same, though their bytes may differ: it is weak. Of an answer in memory it stands for the bytes, too, so that parts
 * of them fit together: RFC 9110 §8.8.3.
 * @param exported absent for a report that is no export
 * @param body the bytes that are sent each time, if they are in memory
 */
export function exportHeaders(
  exported: { readonly version: string | undefined } | undefined,
  body?: Buffer,
): Record<string, string> {
  if (!exported) return {};
  const { version } = exported;
  const headers = { Vary: 'Authorization, Accept-Encoding', 'Cross-Origin-Resource-Policy': 'same-origin' };
  const accepts = body && { 'Accept-Ranges': 'bytes' };
  if (!version) return { ...headers, ...accepts };
  const ETag = body ? `"${version}.${hashOf(body)}"` : `W/"${version}"`;
  // To be kept by the caller alone, and asked for again each time.
  return { ...headers, ...accepts, ETag, 'Cache-Control': 'private, no-cache' };
}

/** Whether `If-None-Match` names a tag of this version (RFC 9110 §13.1.2). */
export function isMatched(ifNoneMatch: string, version: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  const tags = [...ifNoneMatch.matchAll(/"([^"]*)"/g)].map(([, tag = '']) => tag);
  return tags.some((tag) => tag === version || tag.startsWith(`${version}.`));
}

function hashOf(body: Buffer): string {
  const known = hashes.get(body);
  if (known) return known;
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  hashes.set(body, hash);
  return hash;
}
