import { once } from 'node:events';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import type { Answer } from '../../report/kept/memory.ts';
import { envelopeHead } from '../../report/template.ts';
import type { HttpEnv } from '../request/env.ts';
import { type ReportFacts, reportHeaders } from './headers.ts';
import { acceptedCoding } from './negotiation.ts';

const gzipped = promisify(gzip);

/**
 * Sends an answer that is in memory, as it is or as gzip. It is packed anew each time, because its head is new each time:
 * 0.06 ms for 6 kB, 0.1 ms for 60 kB, 3.7 ms for 800 kB, beside the thread that answers.
 */
export async function sendKept(
  c: Context<HttpEnv>,
  answer: Answer,
  facts: ReportFacts,
  startedAt: number,
): Promise<Response> {
  const { outgoing } = c.env;
  const { format, cache, lastUpdateTime } = facts;
  const { query, rows } = answer;
  const coding = acceptedCoding(c, ['gzip', 'identity']);
  // Head and rest are not joined: many callers who leave the same rest unread then take the memory of one.
  const plain = [Buffer.from(format === 'json' ? envelopeHead(lastUpdateTime) : ''), answer.body];
  const pieces =
    coding === 'gzip' ? [await gzipped(Buffer.concat(plain), { level: constants.Z_BEST_SPEED })] : plain;
  const headers = {
    ...reportHeaders(facts, answer, coding),
    'Content-Length': String(pieces.reduce((sum, piece) => sum + piece.length, 0)),
  };
  outgoing.writeHead(200, headers);
  outgoing.cork();
  for (const piece of pieces) outgoing.write(piece);
  outgoing.end();
  const firstByteMs = Math.round(performance.now() - startedAt);
  c.set('report', { format, coding, cache, query, rows, first_byte_ms: firstByteMs });
  if (outgoing.writableLength > 0 && !outgoing.destroyed) await once(outgoing, 'close');
  return RESPONSE_ALREADY_SENT;
}
