import type { IncomingMessage } from 'node:http';
import { ClickHouseError } from '@clickhouse/client';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { Logger } from 'pino';
import * as z from 'zod';
import { KeyReused, LoadedOtherwise } from '../../ingest/delivery/loaded-otherwise.ts';
import { MappingError } from '../../ingest/event/mapping.ts';
import { InputError } from '../../ingest/input/input-error.ts';
import { forSenders, withoutHints } from '../../ingest/input/option-hint.ts';
import { isRefusal, LoadError, LoadRefused } from '../../ingest/ledger/load-error.ts';
import type { Branding } from '../config/branding.ts';
import { ConfigError } from '../config/config.ts';
import { type Accounts, authentication, notAuthorized } from '../http/access/authentication.ts';
import type { Limiter } from '../http/access/limiter.ts';
import { docs } from '../http/docs/routes.ts';
import { type Caller, noteCaller } from '../http/request/caller-address.ts';
import type { HttpEnv } from '../http/request/env.ts';
import { onPath } from '../http/request/on-path.ts';
import { Problem, problemResponse, retryIn, statusOf } from '../http/request/problems.ts';
import { formatOfBody, isDamage } from '../http/request/sent-file.ts';
import { withAnswerHeaders } from '../http/server/answer-headers.ts';
import { health, type OperatorDeps, operator } from '../http/server/health.ts';
import { callerLeft, observe } from '../http/server/observe-requests.ts';
import { requirePlainMessage, requirePlainPath } from '../http/server/plain-message.ts';
import type { Traces } from '../observe/traces.ts';
import { InvalidRequest, judged } from '../report/invalid-request.ts';
import { readBody, tooManyBodies } from './body.ts';
import type { BodyLoader } from './load-body.ts';
import type { Mappings } from './mappings.ts';
import { receiveDocument } from './openapi.ts';
import { type OperationDeps, operationRoutes, parametersOf } from './operations.ts';
import type { Piece } from './pieces.ts';

const eventsPath = '/v1/events';
const ofEvents = { input: z.strictObject({ mapping: z.string('must be given once').optional() }) };

type Logins = Pick<Accounts, 'login'>;

export interface ReceiveDeps
  extends OperatorDeps,
    Omit<OperationDeps, 'authenticated' | 'requireReady' | 'watch'> {
  /** Those who send events. */
  readonly accounts: Logins;
  readonly operators: Logins;
  /** Counts failed logins by address. */
  readonly failures: Limiter;
  readonly mappings: Mappings;
  readonly loader: BodyLoader;
  /** Whether ClickHouse has too many parts to merge. */
  readonly isOverfull: () => boolean;
  /** No body is taken any more. */
  readonly isStopping: () => boolean;
  readonly callerOf: (incoming: IncomingMessage) => Caller;
  readonly brand: Branding;
  readonly log: Logger;
  /** Absent: off. */
  readonly traces?: Traces;
}

/** The HTTP service that takes events, and operations of the operator's programs. Nothing runs on import or before the first request. */
export function createReceiveApp(deps: ReceiveDeps): Hono<HttpEnv> {
  const { log, metrics, readiness } = deps;
  const app = new Hono<HttpEnv>();
  const authenticated = (accounts: Logins) =>
    authentication({
      accounts,
      failures: deps.failures,
      onRefused: (reason) => metrics.refused.inc({ reason }),
    });
  const requireReady = async () => {
    const finding = await readiness.latest();
    if (deps.isStopping()) throw storeBusy('the service stops');
    if (finding !== 'ready') throw storeBusy(`the store is ${finding}`);
  };
  app.use(withAnswerHeaders);
  app.use(noteCaller(deps.callerOf));
  app.use(observe(log, metrics, undefined, deps.traces));
  app.use(requirePlainMessage, requirePlainPath);
  app.route('/', health());
  app.route('/', operator(deps));
  app.route(
    '/',
    docs({ heading: 'Events and operations over HTTP', describe: receiveDocument, brand: deps.brand }),
  );
  onPath(app, eventsPath, { allow: 'POST' }, authenticated(deps.accounts), async (c) => {
    const sender = c.get('account');
    const format = formatOfBody(c.req.header('content-type'));
    const key = keyOf(c.req.header('idempotency-key'));
    const piece = pieceOf(c.req.header('channel'), c.req.header('offset'), key);
    // Mistyped and ignored, it would let the body be read without its mapping.
    const { mapping: name } = judged(ofEvents, parametersOf(c, ofEvents));
    await requireReady();
    if (deps.isOverfull()) throw tooManyBodies();
    const mapping = await deps.mappings.named(name);
    const place = deps.room.enter(sender);
    try {
      const bytes = await readBody(c.env, place);
      const received = await deps.loader.load({ bytes, format, mapping, sender, key, piece });
      const { load, accepted, rejected, duplicates } = received;
      c.set('received', { load, accepted, rejected, duplicates, body_bytes: bytes.length });
      return c.json(received);
    } finally {
      place.leave();
    }
  });
  const watch = <T>(work: Promise<T>) => deps.loader.watch(work);
  app.route(
    '/',
    operationRoutes({ ...deps, authenticated: authenticated(deps.operators), requireReady, watch }),
  );
  app.notFound((c) => problemResponse(c, new Problem('not_found')));
  app.onError((error, c) => {
    const { destroyed } = c.env.incoming.socket;
    // Where the caller has left, most requests failed for that.
    if (destroyed && !(error instanceof ClickHouseError || error instanceof LoadError))
      return new Response(null, { status: callerLeft });
    // Operations read no mappings.
    const adviceFor = c.req.path === eventsPath ? forSenders : withoutHints;
    const problem = asProblem(error, adviceFor);
    const status = statusOf(problem.code);
    if (status === 429) metrics.limited.inc({ code: problem.code });
    // What `/readyz` says is an answer, and asked for every few seconds.
    if (status >= 500 && problem.code !== 'not_ready')
      log.error({ err: error, request: c.get('requestId') }, 'request failed');
    if (destroyed) return new Response(null, { status: callerLeft });
    return problemResponse(c, problem);
  });
  return app;
}

/** @throws {InputError} for a key that no header should have */
function keyOf(text: string | undefined): string | undefined {
  if (text === undefined || isName(text)) return text;
  throw new InputError('Idempotency-Key must have 1 to 200 characters of ASCII that can be printed');
}

const isName = (text: string): boolean => /^[\x20-\x7e]{1,200}$/.test(text);

/** @throws {LoadRefused} unless both are given, or neither */
function pieceOf(channel?: string, offset?: string, key?: string): Piece | undefined {
  if (channel === undefined && offset === undefined) return undefined;
  if (channel === undefined || !isName(channel))
    throw new LoadRefused('Channel must have 1 to 200 characters of ASCII that can be printed', 'Channel');
  if (offset === undefined || !/^\d{1,15}$/.test(offset))
    throw new LoadRefused('Offset must be the number of the first record in its channel, from 0', 'Offset');
  if (key !== undefined) throw new LoadRefused('a body has either a channel or a key', 'Idempotency-Key');
  return { channel, offset: Number(offset) };
}

/** What is taken for a fault of the program. */
const faults = [TypeError, RangeError, ReferenceError];

/** @param why for the log; absent: the log has the error */
function storeBusy(why?: string, seconds = 5): Problem {
  const cause = why === undefined ? undefined : new Error(why);
  const detail = `the store cannot do this now; send the same again in ${seconds} s`;
  return new Problem('store_busy', detail, { ...retryIn(seconds), cause });
}

function asProblem(error: unknown, adviceFor: (message: string) => string): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof HTTPException) {
    const detail =
      'a valid token is required: authorization: Bearer <TOKEN>. The operator makes one that sends events by adtally token create --for ingest, and one that runs operations by --for operator';
    return notAuthorized(detail, error);
  }
  if (error instanceof InvalidRequest || error instanceof LoadRefused)
    return new Problem('invalid_request', error.message, { field: error.field });
  if (error instanceof ConfigError) return new Problem('not_found', 'this service makes no links');
  if (error instanceof KeyReused) return new Problem('idempotency_key_reused', error.message);
  if (error instanceof LoadedOtherwise) return new Problem('loaded_otherwise', adviceFor(error.message));
  if (error instanceof MappingError || error instanceof InputError) {
    return new Problem('events_unreadable', adviceFor(error.message));
  }
  const cause = error instanceof LoadError ? error.cause : error;
  if (isDamage(cause)) return new Problem('events_unreadable', 'the body is damaged: it cannot be decoded');
  if (faults.some((Fault) => cause instanceof Fault)) return new Problem('internal_error');
  // Among them: the service stops, ClickHouse is away or lacks memory, or another process has gone on with the load. The
  // same body may be sent again. What ClickHouse refuses to store is mended each time, while all other loads wait.
  return storeBusy(undefined, error instanceof LoadError && isRefusal(cause) ? 60 : 5);
}
