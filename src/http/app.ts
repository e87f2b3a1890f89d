import type { IncomingMessage } from 'node:http';
import { ClickHouseError } from '@clickhouse/client';
import { type Handler, Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { Logger } from 'pino';
import { endpoints, questionPath } from '../../catalog/breakdowns.ts';
import type { Store } from '../../clickhouse/client.ts';
import { DamagedFigures, unreadablePart } from '../../clickhouse/consistency/damaged-parts.ts';
import { isTransient, lacksMemory } from '../../clickhouse/retry.ts';
import type { Links } from '../accounts/links.ts';
import type { PageSettings } from '../config/page-settings.ts';
import type { SigningKeys } from '../config/signing.ts';
import { runningVersion } from '../config/version.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { ReportOutcomes } from '../observe/report-outcomes.ts';
import type { Traces } from '../observe/traces.ts';
import { AsOfTooOld } from '../report/as-of-moment.ts';
import { MonthNotClosed } from '../report/closed-months.ts';
import { InvalidRequest } from '../report/invalid-request.ts';
import { TooManyRows } from '../report/stream.ts';
import type { AccountCache } from './access/account-cache.ts';
import {
  authentication,
  basicAuthentication,
  linkAuthentication,
  notAuthorized,
} from './access/authentication.ts';
import type { Limiter } from './access/limiter.ts';
import { rateLimit } from './access/rate-limit.ts';
import { type SignInDeps, signInRoutes } from './access/sign-in/routes.ts';
import { sessionAuthentication } from './access/sign-in/sessions.ts';
import { manifestRoutes } from './closes/routes.ts';
import { docs } from './docs/routes.ts';
import { linkRoutes } from './export/links.ts';
import { exportRoutes } from './export/routes.ts';
import { type OwnScheduleDeps, ownScheduleRoutes } from './mails/own-schedules.ts';
import { type RecipientDeps, recipientRoutes } from './mails/recipient-routes.ts';
import { mcpRoutes } from './mcp/routes.ts';
import { openApiDocument } from './openapi/document.ts';
import { page } from './page/routes.ts';
import { comparisons } from './reconcile/handler.ts';
import { explanationOf } from './report/explain.ts';
import { BrokenOff } from './report/gate/sending.ts';
import { type ReportDeps, report } from './report/handler.ts';
import { adjustmentsOf, changesOf, closesOf, type QuestionDeps } from './report/questions.ts';
import { requestBody, requireJson } from './report/request-body.ts';
import { type Caller, noteCaller } from './request/caller-address.ts';
import type { HttpEnv } from './request/env.ts';
import type { Refusal } from './request/login.ts';
import { onPath } from './request/on-path.ts';
import { Problem, problemResponse, statusOf, storeUnavailable } from './request/problems.ts';
import { withAnswerHeaders } from './server/answer-headers.ts';
import { health, type OperatorDeps, operator } from './server/health.ts';
import { callerLeft, observe } from './server/observe-requests.ts';
import { requireHttp11, requirePlainMessage, requirePlainPath } from './server/plain-message.ts';

export interface AppDeps extends Omit<ReportDeps, 'onBroken' | 'onFound'>, QuestionDeps {
  /** What is for the operator; absent where that has a port of its own. */
  readonly operator?: OperatorDeps;
  readonly accounts: AccountCache;
  /** Of the user who reads. */
  readonly store: Store;
  /** Where this service listens, for what asks itself. */
  readonly ownUrl: () => string;
  /** Signs addresses of reports. */
  readonly links: Links;
  /** Absent: people have tokens alone. */
  readonly signIn?: SignInDeps;
  readonly signing?: SigningKeys | undefined;
  /** What recipients of mails answer. */
  readonly recipients: Pick<RecipientDeps, 'unsubscribe' | 'agree'>;
  /** Absent: accounts schedule no mails of their own. */
  readonly ownSchedules?: OwnScheduleDeps['schedules'];
  /** How the page for people looks, and who may frame it. */
  readonly page: PageSettings;
  readonly callerOf: (incoming: IncomingMessage) => Caller;
  /** Counts requests by account. */
  readonly requests: Limiter;
  /** Counts failed logins by address. */
  readonly failures: Limiter;
  readonly metrics: Metrics;
  /** Absent: off. */
  readonly traces?: Traces;
  readonly outcomes: ReportOutcomes;
  readonly log: Logger;
}

/** Ten thousand values of a filter fit into it, of fifty bytes each. */
const maxBodyBytes = 512 * 1024;

/**
 * The HTTP service: every route and middleware in the order they apply. Nothing runs on import or before the first
 * request.
 */
export function createApp(deps: AppDeps): Hono<HttpEnv> {
  const { failures, log, metrics, signIn } = deps;
  const { tooSlow } = deps.gate.pace;
  const app = new Hono<HttpEnv>();
  const onBroken = async (err: unknown, request: string, query?: string) => {
    const outcome = err instanceof BrokenOff ? err.outcome : query ? 'failed' : 'caller_left';
    metrics.broken.inc({ outcome });
    // ClickHouse writes the reason into the answer, compressed and cut off, and into its query log.
    const reason = query && (await deps.outcomes.of(query))?.failure;
    log.warn({ err, request, outcome, query, ...(reason && { reason }) }, 'answer broken off');
  };
  // Prometheus sees the first broken answer as a rise only if the counter was there before.
  metrics.broken.inc({ outcome: 'failed' }, 0);
  const onFound = (status: string) => metrics.answers.inc({ cache: cacheLabel(status) });
  const logins = {
    accounts: deps.accounts,
    failures,
    onRefused: (reason: Refusal) => metrics.refused.inc({ reason }),
  };
  const authenticated = authentication(logins);
  const limited = rateLimit(deps.requests, deps.accounts);
  const body = requestBody(maxBodyBytes);
  const reports = { ...deps, onBroken, onFound };

  app.use(withAnswerHeaders);
  app.use(noteCaller(deps.callerOf));
  app.use(observe(log, metrics, deps.outcomes, deps.traces));
  app.use(requirePlainMessage, requirePlainPath);
  app.route('/', health());
  if (deps.operator) app.route('/', operator(deps.operator));
  const limits = {
    ...deps.requests.quota,
    maxBodyBytes,
    timeoutSeconds: deps.timeoutSeconds,
    sendTimeoutSeconds: deps.sendTimeoutSeconds,
    leastPace: { bytesPerSecond: tooSlow.bytesPerSecond, seconds: tooSlow.ms / 1000 },
    reports: {
      most: deps.gate.maxConcurrent,
      mostOfAccount: deps.gate.maxPerAccount,
      waitSeconds: deps.gate.waitSeconds,
    },
  };
  const described = {
    withOperator: deps.operator !== undefined,
    withSchedules: deps.ownSchedules !== undefined,
  };
  const describe = () => openApiDocument(deps.catalog, limits, described);
  app.route('/', docs({ heading: 'Reports over HTTP', describe, brand: deps.page.brand }));
  app.route('/', page(deps.page));
  if (signIn) app.route('/', signInRoutes({ ...signIn, failures, log }));
  app.route('/', recipientRoutes({ ...deps, ...deps.recipients }));
  // What the page asks for; elsewhere a session opens nothing.
  const forReports = signIn
    ? authentication(logins, [sessionAuthentication(signIn.sessions)])
    : authenticated;
  const asked = (path: string, family: string, ...handlers: Handler<HttpEnv>[]) =>
    onPath(app, path, { allow: 'POST', family }, requireHttp11, forReports, limited, ...handlers);
  for (const endpoint of endpoints(deps.catalog)) {
    asked(endpoint.path, endpoint.breakdown.family, requireJson, body, report(reports, endpoint));
  }
  const comparisonOf = comparisons(deps);
  for (const family of Object.keys(deps.catalog.families)) {
    asked(questionPath(family, 'changes'), family, requireJson, body, changesOf(deps, family));
    asked(questionPath(family, 'explain'), family, requireJson, body, explanationOf(reports, family));
    asked(questionPath(family, 'closes'), family, requireJson, body, closesOf(deps, family));
    asked(questionPath(family, 'adjustments'), family, requireJson, body, adjustmentsOf(reports, family));
    asked(questionPath(family, 'reconcile'), family, comparisonOf(family));
  }
  if (deps.ownSchedules) {
    const own = { schedules: deps.ownSchedules, authenticated: forReports, limited, body, log };
    app.route('/', ownScheduleRoutes(own));
  }
  const byPassword = basicAuthentication(deps.accounts);
  const byLink = linkAuthentication(deps.accounts, deps.links);
  const forExports = { ...reports, limited, body };
  app.route(
    '/',
    exportRoutes({ ...forExports, authenticated: authentication(logins, [byLink, byPassword]) }),
  );
  app.route('/', manifestRoutes({ ...deps, authenticated, limited }));
  app.route('/', linkRoutes({ ...forExports, authenticated: authentication(logins, [byPassword]) }));
  app.route(
    '/',
    mcpRoutes({
      catalog: deps.catalog,
      version: runningVersion().version,
      ownUrl: deps.ownUrl,
      authenticated,
      limited,
      body,
      onError: (err) => log.warn({ err }, 'a message to /mcp was refused'),
    }),
  );

  app.notFound((c) => problemResponse(c, new Problem('not_found')));
  app.onError((error, c) => {
    const { destroyed } = c.env.incoming.socket;
    // Where the caller has left, most requests failed for that.
    if (destroyed && !(error instanceof ClickHouseError)) return new Response(null, { status: callerLeft });
    const problem = asProblem(error, c.get('refused'));
    if (statusOf(problem.code) === 429) metrics.limited.inc({ code: problem.code });
    // Of damage that is known the log tells once, and not with each request.
    if (statusOf(problem.code) === 500 && !(error instanceof DamagedFigures)) {
      log.error({ err: error, request: c.get('requestId') }, 'request failed');
    }
    if (destroyed) return new Response(null, { status: callerLeft });
    return problemResponse(c, problem);
  });
  return app;
}

/** The message of the ClickHouse client when ClickHouse is silent for too long. */
const silence = 'Timeout error.';

/** `hit`, `collapsed`, or why the answer was not in memory. */
function cacheLabel(status: string): string {
  return status.split(/; |fwd=/).at(-1) ?? status;
}

const refusals: Partial<Record<Refusal, string>> = {
  other_family: 'this login token does not open the reports of this family',
  other_account: 'whoever signed in may not see this account',
  other_purpose: 'this token is for a program that sends events or runs operations, and opens no report',
  forged_link: 'this link is not whole, or its address was changed: it opens one report as it was made',
  expired_link: 'this link has ended: make a new one',
};

function asProblem(error: unknown, refused?: Refusal): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof InvalidRequest)
    return new Problem('invalid_request', error.message, { field: error.field });
  if (error instanceof MonthNotClosed)
    return new Problem('month_not_closed', error.message, { field: 'as_of' });
  const part = unreadablePart(error);
  const damage = part ? new DamagedFigures([part]) : error;
  if (damage instanceof DamagedFigures) return new Problem('figures_damaged', damage.message);
  if (error instanceof AsOfTooOld) return new Problem('as_of_too_old', error.message, { field: 'as_of' });
  // Only the bearer middleware throws these. Callers without a valid token are not told why; callers whose token opens
  // the other family, or whose session another account, are.
  if (error instanceof HTTPException) return notAuthorized(refused && refusals[refused], error);
  if (error instanceof Error && 'type' in error && error.type === 'TIMEOUT_EXCEEDED') {
    return new Problem('report_timeout');
  }
  // The only cast in the statement of a report that can fail is that of a count.
  if (error instanceof Error && 'type' in error && error.type === 'CANNOT_CONVERT_TYPE') {
    return new Problem(
      'not_acceptable',
      'a count of this report is above 9223372036854775807, the greatest that Arrow and Parquet can hold; ask for JSON, NDJSON or CSV',
    );
  }
  if (error instanceof TooManyRows) return new Problem('not_acceptable', error.message);
  const isAway = error instanceof Error && (isTransient(error) || error.message === silence);
  if (isAway || lacksMemory(error) === 'server') return storeUnavailable();
  return new Problem('internal_error');
}
