import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context, Handler } from 'hono';
import type { Breakdown, Endpoint } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import type { Reader } from '../../../clickhouse/reader.ts';
import { asOf } from '../../report/as-of-moment.ts';
import { type Damage, questionedBy } from '../../report/damage.ts';
import type { Answers, Asking } from '../../report/kept/answers.ts';
import { brokeOff } from '../../report/kept/collect.ts';
import { slowMs } from '../../report/kept/known-sizes.ts';
import type { Answer } from '../../report/kept/memory.ts';
import { type Plan, planReport, type ShardRouting } from '../../report/plan.ts';
import { type ReportRequest, RequestReader } from '../../report/request.ts';
import { streamReport } from '../../report/stream.ts';
import { envelopeHead } from '../../report/template.ts';
import { callerOf } from '../request/caller.ts';
import type { HttpEnv } from '../request/env.ts';
import type { ReportGate, Slot } from './gate/report-gate.ts';
import { inBatches, Sending } from './gate/sending.ts';
import { type ReportFacts, reportHeaders } from './headers.ts';
import { heldBack } from './hold-back.ts';
import { acceptedCoding, acceptedFormat } from './negotiation.ts';

export interface ReportDeps {
  readonly reader: Reader;
  readonly catalog: Catalog;
  readonly answers: Answers;
  readonly damage: Damage;
  readonly timeoutSeconds: number;
  /** The time of the request as the envelope writes it. */
  readonly lastUpdateTime: () => string;
  /** End of the last load, or of the unload after it; undefined while nothing was loaded. */
  readonly lastLoad: () => Date | undefined;
  readonly gate: ReportGate;
  /** Which shards a report of the account reads; undefined on a single node. */
  readonly routingOf: (account: string) => ShardRouting | undefined;
  /** Of the account's money, where it is known. */
  readonly currencyOf: (account: string) => string | undefined;
  /** How long a caller may leave an answer unread. */
  readonly sendTimeoutSeconds: number;
  /** Called with the Cache-Status of a report. */
  readonly onFound: (status: string) => void;
  /** Called when a response breaks off after its first byte; with the statement, unless the caller left or was slow. */
  readonly onBroken: (error: unknown, requestId: string, queryId?: string) => void;
}

/** What a request asks for. @throws {InvalidRequest} */
export type RequestOf = (c: Context<HttpEnv>) => ReportRequest;

function inBody({ catalog }: ReportDeps, breakdown: Breakdown): RequestOf {
  const requests = new RequestReader(catalog, breakdown);
  return (c) => requests.parse(c.get('body'));
}

/** Answers one endpoint: request → plan → statement → bytes. */
export function report(
  deps: ReportDeps,
  { path, breakdown }: Endpoint,
  requestOf: RequestOf = inBody(deps, breakdown),
): Handler<HttpEnv> {
  return async function reportHandler(c) {
    const format = acceptedFormat(c);
    const request = requestOf(c);
    const begun = beginning(deps);
    const signal = callerOf(c);
    const plan = await planOf(deps, c.get('account'), breakdown, request, signal);
    return answered(deps, c, { path, plan, format, ...begun }, signal);
  };
}

/** When a report was asked for: its `last_update_time`, and what performance.now() told. */
export const beginning = (deps: ReportDeps) => ({
  lastUpdateTime: deps.lastUpdateTime(),
  startedAt: performance.now(),
});

/** Answers with a report, from memory or computed. @param signal of the caller */
export async function answered(
  deps: ReportDeps,
  c: Context<HttpEnv>,
  { startedAt, ...asked }: Omit<ReportFacts, 'lastLoad' | 'cache'> & { readonly startedAt: number },
  signal: AbortSignal,
): Promise<Response> {
  const { answers, gate } = deps;
  const { plan, format } = asked;
  const found = await answers.find(plan, format);
  deps.onFound(found.status);
  const facts = { ...asked, lastLoad: deps.lastLoad(), cache: found.status };
  if (found.answer) return sendKept(c, found.answer, facts, startedAt);
  const { ask } = found;
  const computing = { c, deps, facts, startedAt, ask, signal };
  let slot: Slot | undefined;
  try {
    slot = await gate.enter(plan.account, ask.size, signal);
    let whole = await collected(computing, slot.size);
    if (!whole && slot.size === 'small') {
      // The report turned out to be large and starts over.
      slot.leave();
      slot = await gate.enter(plan.account, 'large', signal);
      whole = await collected(computing, slot.size);
    }
    const sending = new Sending(c.env, gate.pace, deps.sendTimeoutSeconds);
    slot.sends(sending);
    return whole ? await sendKept(c, whole, facts, startedAt) : await streamed(computing, sending);
  } finally {
    ask.end();
    slot?.leave();
  }
}

/** The plan of the rows that a request asks for: see `asOf`. */
export async function planOf(
  { reader, catalog, damage, gate, timeoutSeconds, routingOf, currencyOf }: ReportDeps,
  account: string,
  breakdown: Breakdown,
  { range, ...asked }: ReportRequest,
  signal: AbortSignal,
): Promise<Plan> {
  const currency = currencyOf(account);
  const today = planReport(catalog, breakdown, account, range, routingOf(account), { ...asked, currency });
  const inPlace = (work: () => Promise<void>) => gate.within(account, 'large', signal, work);
  return damage.orDamaged(questionedBy(today), () =>
    asOf(reader, today, { signal, inPlace, timeoutSeconds }),
  );
}

/** A report that has to be computed. */
interface Computing {
  readonly c: Context<HttpEnv>;
  readonly deps: ReportDeps;
  readonly facts: ReportFacts;
  /** When it was asked for, as performance.now() tells. */
  readonly startedAt: number;
  readonly ask: Asking;
  /** Of the caller. */
  readonly signal: AbortSignal;
}

/**
 * The whole answer, if it is short: rows and unconfirmed days are asked for at once. A report in a small one's place is
 * given up when it takes long.
 */
async function collected(
  { c, deps, facts: { plan, format }, ask, signal }: Computing,
  size: Slot['size'],
): Promise<Answer | undefined> {
  if (ask.isTooLong()) return undefined;
  const { reader, timeoutSeconds } = deps;
  const givenUp = new AbortController();
  const timer = setTimeout(() => {
    ask.tookLong();
    if (size === 'small') givenUp.abort();
  }, slowMs);
  const queryId = crypto.randomUUID();
  try {
    const report = streamReport(reader, plan, {
      queryId,
      format,
      coding: 'identity',
      timeoutSeconds,
      signal: AbortSignal.any([signal, givenUp.signal]),
      small: size === 'small',
      traceparent: c.get('traceparent'),
    });
    return await ask.collect(queryId, report, signal);
  } catch (error) {
    const tookTooLong = givenUp.signal.aborted && !signal.aborted;
    // Nobody waits for its other statements, nor for those that would still begin.
    givenUp.abort();
    if (tookTooLong) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

const gzipped = promisify(gzip);

/**
 * Sends an answer that is in memory, as it is or as gzip. It is packed anew each time, because its head is new each time:
 * 0.06 ms for 6 kB, 0.1 ms for 60 kB, 3.7 ms for 800 kB, beside the thread that answers.
 */
async function sendKept(
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

/** Passes on what ClickHouse writes while it writes it. */
async function streamed(
  { c, deps, facts, startedAt, ask, signal }: Computing,
  sending: Sending,
): Promise<Response> {
  const { reader, timeoutSeconds } = deps;
  const { plan, format, lastUpdateTime, cache } = facts;
  const query = crypto.randomUUID();
  // Others who ask the same do not wait until the caller has read all of it.
  ask.end();
  // Before the rows, because ClickHouse writes the whole envelope, and compresses it.
  const unconfirmedDates = await ask.unconfirmedDates(signal);
  const { body, coding, summary } = await streamReport(reader, plan, {
    queryId: query,
    format,
    coding: acceptedCoding(c),
    timeoutSeconds,
    envelope: { lastUpdateTime, unconfirmedDates },
    signal,
    small: false,
    traceparent: c.get('traceparent'),
  });
  const sendable = await heldBack(body, query);
  try {
    await ask.requireTrue(signal);
    if (sendable.errored) throw brokeOff(query, sendable.errored);
    const first_byte_ms = Math.round(performance.now() - startedAt);
    c.set('report', { format, coding, cache, query, rows: {}, first_byte_ms });
    c.env.outgoing.writeHead(200, reportHeaders(facts, { unconfirmedDates, summary }, coding));
    return await send({ c, deps, signal }, sendable, sending);
  } finally {
    // Whoever is not answered from it leaves no statement behind.
    sendable.destroy();
  }
}

/**
 * Pipes the body to the socket unread. When ClickHouse fails halfway, or the caller leaves or reads too slowly, both
 * sides are destroyed: the caller sees a broken transfer, never a truncated answer that looks complete.
 */
async function send(
  { c, deps, signal }: Pick<Computing, 'c' | 'deps' | 'signal'>,
  body: Readable,
  sending: Sending,
): Promise<Response> {
  let hasFailed = false;
  // This event comes before the connection is destroyed, which would look as if the caller had left.
  body.once('error', () => {
    hasFailed = !signal.aborted;
  });
  try {
    await pipeline([body, inBatches(c.env.outgoing)], { signal });
  } catch (error) {
    const query = hasFailed ? c.get('report')?.query : undefined;
    deps.onBroken(sending.reason ?? error, c.get('requestId'), query);
  }
  return RESPONSE_ALREADY_SENT;
}
