import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context, Handler } from 'hono';
import type { Endpoint } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import type { Reader } from '../../../clickhouse/reader.ts';
import { AsOfTooOld, asOf, requireSameThen } from '../../report/as-of-moment.ts';
import { MonthNotClosed } from '../../report/closed-months.ts';
import { rowColumns } from '../../report/columns.ts';
import { type Damage, questionedBy } from '../../report/damage.ts';
import type { ReportFormatName } from '../../report/formats.ts';
import type { Answers, Asking, FoundAnswer } from '../../report/kept/answers.ts';
import { slowMs } from '../../report/kept/known-sizes.ts';
import { type Plan, planReport, type ShardRouting } from '../../report/plan.ts';
import { type ReportRequest, RequestReader } from '../../report/request.ts';
import { streamReport } from '../../report/stream.ts';
import { readSummary } from '../../report/summary.ts';
import { envelopeHead } from '../../report/template.ts';
import { callerOf } from '../request/caller.ts';
import type { HttpEnv } from '../request/env.ts';
import { exportHeaders } from './entity-tag.ts';
import type { ReportGate, Slot } from './gate/report-gate.ts';
import { inBatches, Sending } from './gate/sending.ts';
import { type ReportFacts, reportHeaders } from './headers.ts';
import { brokeOff, heldBack } from './hold-back.ts';
import { acceptedCoding, acceptedFormat } from './negotiation.ts';
import { sendKept } from './send-kept.ts';

export interface ReportDeps {
  readonly reader: Reader;
  readonly catalog: Catalog;
  readonly answers: Answers;
  readonly damage: Damage;
  readonly timeoutSeconds: number;
  /** The time of the request as the envelope writes it. */
  readonly lastUpdateTime: () => string;
  /** End of the last load; undefined while no load has finished. */
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

/** How a request says what it asks for: by its body and `Accept`, or by its address. */
export interface Asked {
  readonly formatOf: (c: Context<HttpEnv>) => ReportFormatName;
  /** @throws {InvalidRequest} */
  readonly requestOf: (c: Context<HttpEnv>, requests: RequestReader) => ReportRequest;
  /** Headers tell the account to whoever logs in with its token. */
  readonly tellsAccount?: true;
}

const inBody: Asked = {
  formatOf: acceptedFormat,
  requestOf: (c, requests) => requests.parse(c.get('body')),
  tellsAccount: true,
};

/** Answers one endpoint: request → plan → statement → bytes. */
export function report(
  deps: ReportDeps,
  { path, breakdown }: Endpoint,
  asked: Asked = inBody,
): Handler<HttpEnv> {
  const requests = new RequestReader(deps.catalog, breakdown);
  return async function reportHandler(c) {
    const format = asked.formatOf(c);
    const { range, ...what } = asked.requestOf(c, requests);
    const lastUpdateTime = deps.lastUpdateTime();
    const account = c.get('account');
    const currency = deps.currencyOf(account);
    const inSheet = format === 'xlsx' && { currency };
    const startedAt = performance.now();
    const today = planReport(deps.catalog, breakdown, account, range, deps.routingOf(account), {
      ...what,
      ...inSheet,
    });
    const caller = callerOf(c);
    const plan = await planOfThen(deps, today, caller);
    const found = await deps.answers.find(plan, format);
    const cache = found.status;
    deps.onFound(cache);
    const head = Buffer.from(format === 'json' ? envelopeHead(lastUpdateTime) : '');
    const columns = format === 'json' ? [] : rowColumns(deps.catalog, breakdown, plan.options);
    const compared = plan.options.compare_to;
    const lastLoad = deps.lastLoad();
    const whose = asked.tellsAccount && { account };
    const facts = {
      path,
      ...whose,
      currency,
      range,
      compared,
      format,
      columns,
      lastUpdateTime,
      lastLoad,
      cache,
    };
    const kept = { ...facts, head, startedAt };
    if (found.answer) return sendKept(c, found, kept);
    const { ask } = found;
    const computing = { c, deps, plan, format, signal: caller };
    let slot: Slot | undefined;
    try {
      slot = await deps.gate.enter(account, ask.size, caller);
      let whole = ask.mayBeKept ? await collected(computing, ask, slot.size) : tooLong;
      if (slot.size === 'small' && typeof whole === 'string') {
        // The report turned out to be large and starts over.
        slot.leave();
        slot = await deps.gate.enter(account, 'large', caller);
        if (whole === slow) whole = await collected(computing, ask, slot.size);
      }
      if (typeof whole === 'string') return await streamed(computing, ask, slot, facts);
      slot.sends(new Sending(c.env, deps.gate.pace, deps.sendTimeoutSeconds));
      return await sendKept(c, whole, kept);
    } finally {
      ask.end();
      slot?.leave();
    }
  };
}

/** See `asOf`. */
export async function planOfThen(
  { reader, damage, gate, timeoutSeconds }: ReportDeps,
  today: Plan,
  signal: AbortSignal,
): Promise<Plan> {
  const inPlace = async (work: () => Promise<void>) => {
    const slot = await gate.enter(today.account, 'large', signal);
    try {
      await work();
    } finally {
      slot.leave();
    }
  };
  try {
    return await asOf(reader, today, { signal, inPlace, timeoutSeconds });
  } catch (error) {
    // What is damaged could have told it.
    if (error instanceof MonthNotClosed || error instanceof AsOfTooOld)
      await damage.requireWhole(questionedBy(today));
    throw error;
  }
}

interface Computing {
  readonly c: Context<HttpEnv>;
  readonly deps: ReportDeps;
  readonly plan: Plan;
  readonly format: ReportFormatName;
  /** Of the caller. */
  readonly signal: AbortSignal;
}

const slow = 'slow';
const tooLong = 'too long';

/**
 * The whole answer, if it is short: rows and unconfirmed days are asked for at once. A report in a small one's place is
 * given up when it takes long.
 */
async function collected(
  { c, deps, plan, format, signal }: Computing,
  ask: Asking,
  size: Slot['size'],
): Promise<FoundAnswer | typeof slow | typeof tooLong> {
  const givenUp = new AbortController();
  const timer = setTimeout(() => {
    ask.isSlow();
    if (size === 'small') givenUp.abort();
  }, slowMs);
  const query = crypto.randomUUID();
  const either = AbortSignal.any([signal, givenUp.signal]);
  try {
    const small = size === 'small';
    const summary = await summaryOf({ c, deps, plan, format, signal: either }, small);
    const report = streamReport(deps.reader, plan, {
      queryId: query,
      format,
      coding: 'identity',
      timeoutSeconds: deps.timeoutSeconds,
      signal: either,
      small,
      traceparent: c.get('traceparent'),
    });
    const body = report.then((stream) => stream.body);
    const answer = await ask.collect(body, ask.unconfirmedDates(signal), { query, rows: {}, summary });
    if (answer) await requireSameThen(deps.reader, plan, { signal, timeoutSeconds: deps.timeoutSeconds });
    return answer ?? tooLong;
  } catch (error) {
    if (givenUp.signal.aborted && !signal.aborted) return slow;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

const summaryOf = ({ deps, plan, format, signal }: Computing, small: boolean) =>
  readSummary(deps.reader, plan, format, {
    signal,
    timeoutSeconds: deps.timeoutSeconds,
    small,
  });

/** Passes on what ClickHouse writes while it writes it. */
async function streamed(
  { c, deps, plan, format, signal }: Computing,
  ask: Asking,
  slot: Slot,
  facts: Omit<ReportFacts, 'unconfirmedDates' | 'summary'>,
): Promise<Response> {
  const accepted = acceptedCoding(c);
  const startedAt = performance.now();
  const queryId = crypto.randomUUID();
  const { lastUpdateTime, cache } = facts;
  // Before the rows, because ClickHouse writes the whole envelope, and compresses it.
  const unconfirmedDates = await ask.unconfirmedDates(signal);
  const summary = await summaryOf({ c, deps, plan, format, signal }, false);
  const { body, coding } = await streamReport(deps.reader, plan, {
    queryId,
    format,
    coding: accepted,
    timeoutSeconds: deps.timeoutSeconds,
    envelope: { lastUpdateTime, unconfirmedDates },
    signal,
    small: false,
    traceparent: c.get('traceparent'),
  });
  const sendable = await heldBack(body, queryId);
  try {
    await requireSameThen(deps.reader, plan, { signal, timeoutSeconds: deps.timeoutSeconds });
    await ask.requireWhole();
    if (sendable.errored) throw brokeOff(queryId, sendable.errored);
    const first_byte_ms = Math.round(performance.now() - startedAt);
    c.set('report', { format, coding, cache, query: queryId, rows: {}, first_byte_ms });
    const more = exportHeaders(c.get('exported'));
    const headers = { ...reportHeaders({ ...facts, unconfirmedDates, summary }, coding), ...more };
    c.env.outgoing.writeHead(200, headers);
    return await send(c, sendable, signal, deps, slot);
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
  c: Context<HttpEnv>,
  body: Readable,
  signal: AbortSignal,
  deps: ReportDeps,
  slot: Slot,
): Promise<Response> {
  const { outgoing } = c.env;
  const sending = new Sending(c.env, deps.gate.pace, deps.sendTimeoutSeconds);
  slot.sends(sending);
  let hasFailed = false;
  // This event comes before the connection is destroyed, which would look as if the caller had left.
  body.once('error', () => {
    hasFailed = !signal.aborted;
  });
  try {
    await pipeline([body, inBatches(outgoing)], { signal });
  } catch (error) {
    const query = hasFailed ? c.get('report')?.query : undefined;
    deps.onBroken(sending.reason ?? error, c.get('requestId'), query);
  }
  return RESPONSE_ALREADY_SENT;
}
