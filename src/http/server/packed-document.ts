import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Context } from 'hono';
import type { ContentCoding } from '../../report/stream.ts';
import { acceptedCoding } from '../report/negotiation.ts';
import type { HttpEnv } from '../request/env.ts';

/** A document that is the same for all callers: the same bytes, so that an answer that nobody reads takes no memory. */
export interface PackedDocument {
  readonly tag: string;
  readonly mediaType: string;
  readonly bodies: Partial<Record<ContentCoding, Uint8Array<ArrayBuffer>>>;
}

const codings: readonly ContentCoding[] = ['br', 'gzip', 'identity'];

/** Hashed and packed once, not at each request. */
export async function packDocument(text: string, mediaType: string): Promise<PackedDocument> {
  const body = Buffer.from(text);
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
    promisify(gzip)(body, { level: 9 }),
  ]);
  return {
    tag: createHash('sha256').update(body).digest('base64url'),
    mediaType,
    bodies: { br: new Uint8Array(br), gzip: new Uint8Array(gz), identity: new Uint8Array(body) },
  };
}

/** Callers keep it but ask again each time, so that a new version shows at once. */
export function sendDocument(c: Context<HttpEnv>, { tag, mediaType, bodies }: PackedDocument): Response {
  const coding = acceptedCoding(c, codings);
  const headers = { 'Cache-Control': 'no-cache', Vary: 'Accept-Encoding', ETag: `"${tag}-${coding}"` };
  if (c.req.header('if-none-match')?.includes(tag)) return c.body(null, 304, headers);
  return c.body(bodies[coding] ?? '', 200, {
    ...headers,
    'Content-Type': mediaType,
    ...(coding !== 'identity' && { 'Content-Encoding': coding }),
  });
}

/** Makes it at the first call, and again after a failure. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
