import { once } from 'node:events';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import type { FoundAnswer } from '../../report/kept/answers.ts';
import type { ContentCoding } from '../../report/stream.ts';
import type { HttpEnv } from '../env.ts';
import { exportHeaders } from '../export/entity-tag.ts';
import { partOf } from '../export/range.ts';
import { type ReportFacts, reportHeaders } from './headers.ts';

export interface KeptFacts extends Omit<ReportFacts, 'unconfirmedDates' | 'summary'> {
  readonly coding: ContentCoding;
  /** What the body begins with: new for each request. */
  readonly head: Buffer;
  /** When it was looked for, as performance.now() tells. */
  readonly startedAt: number;
}

/** Sends an answer that is in memory, or the part of it that is asked for: the same bytes, whenever it was computed. */
export async function sendKept(
  c: Context<HttpEnv>,
  { answer, isKept, packed }: FoundAnswer,
  { head, startedAt, coding: accepted, ...facts }: KeptFacts,
  sendTimeoutSeconds: number,
): Promise<Response> {
  const { incoming, outgoing } = c.env;
  // An empty body is not valid in any coding.
  const coding = head.length + answer.body.length === 0 ? 'identity' : accepted;
  const pieces = (await packed(coding, head.length)).after(head);
  const { query, rows, unconfirmedDates, summary } = answer;
  const exported = c.get('exported');
  // The same bytes each time, of which a part makes sense.
  const isStable = isKept && coding === 'identity' && facts.format !== 'json';
  const more = exportHeaders(exported, isStable ? answer.body : undefined);
  const part = exported && isStable ? partOf(c.req, answer.body.length, more.ETag) : undefined;
  const headers = {
    ...reportHeaders({ ...facts, unconfirmedDates, summary }, coding),
    ...more,
    ...part?.headers,
  };
  const sent = part ? [answer.body.subarray(part.start, part.end)] : pieces;
  const length = sent.reduce((sum, piece) => sum + piece.length, 0);
  if (c.req.method === 'HEAD') return c.body(null, 200, { ...headers, 'Content-Length': String(length) });
  for (const [name, value] of Object.entries(headers)) c.header(name, value);
  c.header('Content-Length', String(length));
  outgoing.writeHead(part ? 206 : 200, Object.fromEntries(c.body(null).headers));
  outgoing.cork();
  for (const piece of sent) outgoing.write(piece);
  outgoing.end();
  const firstByteMs = Math.round(performance.now() - startedAt);
  const { format, cache } = facts;
  c.set('report', { format, coding, cache, query, rows, first_byte_ms: firstByteMs });
  // What is left of it is small: a caller that is slow harms nobody, but has an end.
  if (outgoing.writableLength > 0 && !outgoing.destroyed) {
    outgoing.setTimeout(sendTimeoutSeconds * 1000, () => incoming.socket.resetAndDestroy());
    await once(outgoing, 'close');
  }
  return RESPONSE_ALREADY_SENT;
}
