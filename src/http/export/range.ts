import type { HonoRequest } from 'hono';
import { Problem } from '../problems.ts';

export interface Part {
  /** Of its first byte, and of the byte behind its last. */
  readonly start: number;
  readonly end: number;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The part of so many bytes that a GET asks for with `Range` (RFC 9110 §14.2); undefined: all of them, as also for
 * several parts, another unit, and an `If-Range` that these bytes do not have.
 * @throws {Problem} `range_not_satisfiable` when there are no such bytes
 */
export function partOf(request: HonoRequest, bytes: number, etag: string | undefined): Part | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(request.header('range')?.trim() ?? '') ?? [];
  if (request.method !== 'GET' || first + last === '') return undefined;
  const ifRange = request.header('if-range');
  if (ifRange !== undefined && ifRange !== etag) return undefined;
  const start = first === '' ? Math.max(0, bytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? bytes : Math.min(bytes, Number(last) + 1);
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  if (start >= bytes) {
    throw new Problem('range_not_satisfiable', `the report has ${bytes} bytes`, {
      headers: { 'Content-Range': `bytes */${bytes}` },
    });
  }
  return { start, end, headers: { 'Content-Range': `bytes ${start}-${end - 1}/${bytes}` } };
}
