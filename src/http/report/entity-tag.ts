/**
 * Headers of an exported report. Its tag stands for the data that the report is read from: two answers with the same
 * tag say the same, though their bytes may differ, so it is weak (RFC 9110 §8.8.1).
 * @param exported absent for a report that is no export
 */
export function exportHeaders(
  exported: { readonly version: string | undefined } | undefined,
): Record<string, string> {
  if (!exported) return {};
  const { version } = exported;
  const headers = { Vary: 'Authorization, Accept-Encoding', 'Cross-Origin-Resource-Policy': 'same-origin' };
  if (!version) return headers;
  // Only the caller may keep the answer, and must ask each time whether it is still true.
  return { ...headers, ETag: `W/"${version}"`, 'Cache-Control': 'private, no-cache' };
}

/** Whether `If-None-Match` names a tag of this version (RFC 9110 §13.1.2). */
export function isMatched(ifNoneMatch: string, version: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  return [...ifNoneMatch.matchAll(/"([^"]*)"/g)].some(([, tag]) => tag === version);
}
