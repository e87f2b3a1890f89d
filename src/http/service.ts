import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { catalog } from '../../catalog/catalog.ts';
import { closing, connect, type Store } from '../../clickhouse/client.ts';
import { adviceOn } from '../../clickhouse/consistency/damaged-parts.ts';
import { appliedMigrations, requireTimezone } from '../../clickhouse/migrate/migrate.ts';
import { Reader } from '../../clickhouse/reader.ts';
import type { Refreshed } from '../../clickhouse/refreshed.ts';
import { limitToldWithinMs } from '../../clickhouse/timings.ts';
import { linksOf } from '../accounts/links.ts';
import { signOutEverywhere } from '../accounts/sign-outs.ts';
import type { Config } from '../config/config.ts';
import type { OpenStore } from '../config/store.ts';
import { runningVersion } from '../config/version.ts';
import { throttledErrorLog } from '../observe/log.ts';
import { Metrics } from '../observe/metrics.ts';
import { ReportOutcomes } from '../observe/report-outcomes.ts';
import { type FigureTimes, StoreFigures } from '../observe/store-figures.ts';
import { openTraces } from '../observe/traces.ts';
import { defaultHoldBackMs } from '../report/changes/changed-until.ts';
import { Damage } from '../report/damage.ts';
import { Answers } from '../report/kept/answers.ts';
import { StoreVersion } from '../report/kept/store-version.ts';
import { timestampIn } from '../report/time/timestamp.ts';
import { OwnSchedules } from '../schedules/own.ts';
import { agree, unsubscribe } from '../schedules/schedules.ts';
import { AccountCache } from './access/account-cache.ts';
import { Limiter } from './access/limiter.ts';
import { KnownSignOuts } from './access/sign-in/known-sign-outs.ts';
import { Provider } from './access/sign-in/provider.ts';
import { Sessions } from './access/sign-in/sessions.ts';
import { createApp } from './app.ts';
import { AccountPlacements } from './report/account-placements.ts';
import type { PaceRules } from './report/gate/pace.ts';
import { ReportGate } from './report/gate/report-gate.ts';
import { lastLoadOf } from './report/last-load.ts';
import { callersBehind } from './request/caller-address.ts';
import { storeUnavailable } from './request/problems.ts';
import { createOperatorApp, Readiness } from './server/health.ts';
import { listen } from './server/listen.ts';
import { readyNowOrLater } from './server/ready-later.ts';

export interface Service {
  readonly url: string;
  /** Of ADMIN_PORT, if that is set. */
  readonly adminUrl?: string;
  /** Stops accepting, lets running answers finish for up to `stopSeconds`, then closes everything it opened. */
  stop(): Promise<void>;
}

/** How long ClickHouse may say nothing to a question that is not a report: nobody waits for one that hangs. */
const shortMs = 10_000;

/** How long running answers may take after a stop was asked for. */
const stopSeconds = 30;

/** What is not as usual. */
export interface ServiceTimes {
  /** How fast callers must take reports. */
  readonly pace?: PaceRules;
  readonly figureTimes?: FigureTimes;
}

/**
 * Wires the service to ClickHouse and listens; resolves once it accepts requests.
 * @throws when it cannot listen on HOST and PORT, or the schema does not fit
 */
export async function startService(
  config: Config,
  opened: OpenStore,
  log: Logger,
  { pace, figureTimes }: ServiceTimes = {},
): Promise<Service> {
  const store = connect(opened.reporter, { idleTimeoutMs: shortMs, unlogged: true });
  const reader = new Reader(opened.reporter, config.reportTimeoutSeconds * 1000 + limitToldWithinMs);
  const stopping = new AbortController();
  // The service goes on without what it could not read, so these are warnings.
  const warnOf = (message: string) => throttledErrorLog(log, message, 'warn', stopping.signal);
  const accounts = new AccountCache({
    store,
    onError: warnOf('tokens, limits and currencies not refreshed'),
  });
  // Few people sign out everywhere, or decide about mails, and the user of reports may not write.
  const withWriter = <T>(work: (writer: Store) => Promise<T>) => {
    const address = { ...opened.address, ...config.clickhouse.sessions };
    return closing(connect(address, { idleTimeoutMs: shortMs }), work);
  };
  const noting = (note: typeof unsubscribe) => (schedule: string, recipient: string) =>
    withWriter((writer) => note(writer, schedule, recipient, store));
  const signOuts = config.signIn && new KnownSignOuts(store, warnOf('sign-outs everywhere not refreshed'));
  const signIn = config.signIn &&
    signOuts && {
      provider: new Provider(config.signIn),
      sessions: new Sessions(config.signIn, signOuts),
      signOutEverywhere: async (person: string) => {
        await withWriter((writer) => signOutEverywhere(writer, person));
        await signOuts.refresh();
      },
    };
  const lastLoad = lastLoadOf(store, warnOf('time of the last load not refreshed'));
  const placements = new AccountPlacements({
    store,
    onError: warnOf('placements not refreshed: reports read all shards'),
  });
  const readiness = new Readiness(store, () => reader.close());
  const figures = new StoreFigures({
    store,
    alerts: config.alerts,
    now: () => new Date(),
    times: figureTimes,
    onError: warnOf(
      'a figure of the store not read; its user needs the grants of clickhouse/config/server/users.xml',
    ),
  });
  const outcomes = new ReportOutcomes(reader, {
    onError: warnOf('outcomes of reports not read from system.query_log'),
  });
  const redis = await redisOf(config, log);
  const traces = await openTraces(config);
  const closeAll = async () => {
    stopping.abort();
    for (const refreshed of [accounts, signOuts, lastLoad, placements, readiness, figures]) refreshed?.stop();
    redis?.disconnect();
    await outcomes.stop();
    await traces?.stop().catch((err) => log.warn({ err }, 'spans not sent'));
    reader.close();
    await store.close();
  };
  try {
    let timezone: string | undefined;
    let timestamp: ((time: Date) => string) | undefined;
    const prepare = async () => {
      // Of a restore that was interrupted, some of it may be there.
      await appliedMigrations(store);
      timezone = await requireTimezone(store, config.reportTimezone);
      timestamp = timestampIn(timezone);
      const refreshed = [accounts, signOuts, lastLoad, placements, readiness];
      await Promise.all(refreshed.map((each) => each?.start()));
      figures.start(timezone);
    };
    await readyNowOrLater(prepare, log, stopping.signal);
    const gate = new ReportGate({ maxConcurrent: config.maxConcurrentReports, pace });
    const { database } = store.address;
    const damage = new Damage({
      reader,
      database,
      onFound: (part) => log.error(part, adviceOn(part)),
    });
    const answers = new Answers({
      reader,
      damage,
      timeoutSeconds: config.reportTimeoutSeconds,
      version: new StoreVersion({
        reader,
        catalog,
        database,
        damage,
        trustMs: config.answerTrustMs,
        onError: warnOf('state of the store not read: every report is computed'),
      }),
      maxBytes: config.answerCacheMegabytes * 2 ** 20,
    });
    const quota = { ...config.rateLimit, redis };
    const metrics = measure(gate, answers, readiness, redis, lastLoad);
    figures.addTo(metrics);
    const forOperator = { readiness, metrics };
    let ownUrl = '';
    const app = createApp({
      ...(config.adminPort === undefined && { operator: forOperator }),
      store,
      reader,
      catalog,
      answers,
      damage,
      holdBackMs: defaultHoldBackMs + config.answerTrustMs,
      accounts,
      links: linksOf(config),
      signing: config.signing,
      signIn,
      recipients: { unsubscribe: noting(unsubscribe), agree: noting(agree) },
      ...(config.accountMails && {
        ownSchedules: new OwnSchedules(store, withWriter, () => {
          if (!timezone) throw storeUnavailable();
          return timezone;
        }),
      }),
      page: { ...config.page, mails: config.accountMails, signIn: config.signIn },
      ownUrl: () => ownUrl,
      callerOf: callersBehind(config.trustedProxies),
      log,
      traces,
      timeoutSeconds: config.reportTimeoutSeconds,
      gate,
      routingOf: (account) => placements.routingOf(account),
      currencyOf: (account) => accounts.currencyOf(account),
      metrics,
      outcomes,
      requests: new Limiter({ name: 'requests', ...quota }),
      failures: new Limiter({ name: 'failures', ...quota }),
      sendTimeoutSeconds: config.sendTimeoutSeconds,
      lastUpdateTime: () => {
        if (!timestamp) throw storeUnavailable();
        return timestamp(new Date());
      },
      lastLoad: () => lastLoad.value,
    });
    // What fails is logged, and tried again.
    await redis?.connect().catch(() => undefined);
    const listening = [await listen(app, config, log)];
    ownUrl = reachable(listening[0]?.url ?? '');
    const stopAll = async () => {
      await Promise.all(listening.map(({ connections }) => connections.stop(stopSeconds)));
      await closeAll();
    };
    try {
      if (config.adminPort !== undefined) {
        const admin = { ...config, port: config.adminPort, setting: 'ADMIN_PORT' };
        listening.push(await listen(createOperatorApp(forOperator), admin, log));
      }
    } catch (error) {
      await Promise.all(listening.map(({ connections }) => connections.stop(0)));
      throw error;
    }
    const [{ url } = { url: '' }, admin] = listening;
    return { url, ...(admin && { adminUrl: admin.url }), stop: stopAll };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** An address that reaches what listens on `url`, which may be every address of the machine. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/** Loads the client only where there is a Redis: it takes 4 MB. */
async function redisOf({ redisUrl }: Config, log: Logger): Promise<Redis | undefined> {
  if (!redisUrl) return undefined;
  const { openRedis } = await import('./access/redis.ts');
  return openRedis(redisUrl, log);
}

function measure(
  gate: ReportGate,
  answers: Answers,
  readiness: Readiness,
  redis: Redis | undefined,
  lastLoad: Refreshed<Date | undefined>,
): Metrics {
  const metrics = new Metrics();
  metrics.gauge('adtally_reports_running', 'Reports that run now.', () => gate.running);
  metrics.gauge('adtally_reports_held', 'Reports held up by callers that take them slowly.', () => gate.held);
  metrics.gauge('adtally_reports_waiting', 'Reports that wait for a slot.', () => gate.waiting);
  metrics.gauge('adtally_answers_kept', 'Answers in memory.', () => answers.count);
  metrics.gauge('adtally_answers_kept_bytes', 'Bytes of answers in memory.', () => answers.bytes);
  metrics.gauge('adtally_clickhouse_up', 'Whether ClickHouse responds.', () =>
    readiness.finding === 'unreachable' ? 0 : 1,
  );
  if (redis) {
    metrics.gauge('adtally_redis_up', 'Whether Redis is connected.', () =>
      redis.status === 'ready' ? 1 : 0,
    );
  }
  metrics.gauge(
    'adtally_last_load_timestamp_seconds',
    'When the last load, or the unload after it, ended, since 1970.',
    () => (lastLoad.value?.getTime() ?? Number.NaN) / 1000,
  );
  metrics.gauge('process_resident_memory_bytes', 'Memory of this process.', () => process.memoryUsage.rss());
  const labels = { node: process.version, ...runningVersion() };
  metrics.gauges('adtally_build_info', 'What runs here; always 1.', Object.keys(labels), () => [
    { labels, value: 1 },
  ]);
  return metrics;
}
