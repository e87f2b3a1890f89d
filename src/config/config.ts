import { readFileSync } from 'node:fs';
import { BlockList } from 'node:net';
import * as z from 'zod';
import { longestTimerSeconds } from '../../clickhouse/timings.ts';
import { mailVariables } from './mail.ts';
import { addNetwork } from './networks.ts';
import { pageVariables } from './page-settings.ts';
import { signInConfig, signInVariables } from './sign-in.ts';
import { signingVariables } from './signing.ts';

const wholeNumber = (reason: string, min: number, max = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .refine((text) => /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max, reason)
    .transform(Number);
const port = wholeNumber('is not a port: a whole number from 0 to 65535', 0, 65_535);
const count = wholeNumber('is not a count: a whole number, 1 or more', 1);
const megabytes = (what: string, min: number) =>
  wholeNumber(`is not a size: a whole number of megabytes, ${what}`, min, 1_048_576);
/** Hours and days of alerts: ten years are never. */
const period = (what: string, max: number) =>
  wholeNumber(`is not a number of ${what}: a whole number, 0 for no alert`, 0, max);
const timerSeconds = wholeNumber(
  `is not a time of at most 24 days: a whole number of seconds from 1 to ${longestTimerSeconds}`,
  1,
  longestTimerSeconds,
);
/** A day is plenty. */
const timeout = wholeNumber('is not a timeout: a whole number of seconds from 1 to 86400', 1, 86_400);
const address = (protocol: RegExp, reason: string) => z.url({ protocol, error: reason, abort: true });
const noRedis = 'is not the address of a Redis server, such as redis://localhost:6379';
/** A wrong address would only be noticed when somebody misses its spans. */
const collector = address(
  /^https?$/,
  'is not the address of a collector, such as http://localhost:4318',
).optional();
const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Each message completes the sentence that begins with the variable and its value. */
const environment = z.object({
  CLICKHOUSE_URL: address(
    /^https?$/,
    'is not the address of a ClickHouse server, such as http://localhost:8123',
  )
    // Two clients read it, and would not agree on who logs in and on the database, which one takes from the path; it is
    // also shown in messages.
    .refine(
      isAddressAlone,
      'has more than protocol, host and port: user, password and database go into CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE',
    )
    .optional(),
  CLICKHOUSE_USER: z.string().default('default'),
  CLICKHOUSE_PASSWORD: z.string().default(''),
  CLICKHOUSE_NAMES_USER: z.string().optional(),
  CLICKHOUSE_NAMES_PASSWORD: z.string().default(''),
  CLICKHOUSE_SESSIONS_USER: z.string().optional(),
  CLICKHOUSE_SESSIONS_PASSWORD: z.string().default(''),
  CLICKHOUSE_DATABASE: z
    .string()
    .regex(
      /^[A-Za-z_][A-Za-z0-9_]*$/,
      'is not a database name: letters, digits and _, not starting with a digit',
    )
    .default('adtally'),
  CLICKHOUSE_CLUSTER: z
    .string()
    .regex(
      /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/,
      'is not a cluster name: letters, digits, _ - and ., not starting with - or .',
    )
    .optional(),
  REDIS_URL: address(/^rediss?$/, noRedis)
    // Without a host or a socket the client would take this machine, and no TLS for REDISS.
    .regex(/^rediss?:\/\/([^/?#]|[^?#]*\?(.*&)?path=.)/, noRedis)
    .refine(
      (text) => isPossible(() => decodeURIComponent(`${new URL(text).username} ${new URL(text).password}`)),
      'has an escape in user or password that is no UTF-8, or a lone %, which is written %25',
    )
    // The client would read the digits that it begins with, or take database 0, which another installation may count in.
    .refine((text) => {
      const { pathname, searchParams } = new URL(text);
      const isNamed = searchParams.getAll('db').every((database) => /^\d{1,9}$/.test(database));
      return isNamed && /^(\/(\d{1,9}\/?)?)?$/.test(pathname);
    }, 'has a database that is no number of at most nine digits: redis://localhost:6379/1 names one')
    .optional(),
  HOST: z.string().default('127.0.0.1'),
  PORT: port.default(8080),
  ADMIN_PORT: port.optional(),
  RECEIVE_PORT: port.default(8081),
  RECEIVE_MEGABYTES: megabytes('128 or more', 128).default(256),
  MAPPINGS_DIR: z.string().optional(),
  TRUSTED_PROXIES: z
    .string()
    .transform((text) => text.split(',').map((network) => network.trim()))
    .refine(
      (networks) => isPossible(() => networks.map((network) => addNetwork(new BlockList(), network))),
      'is not a list of addresses and networks, such as 10.0.0.0/8,fd00::/8',
    )
    .default([]),
  DATA_DIR: z.string().default('.data'),
  REPORT_TIMEZONE: z
    .string()
    .refine(
      (timeZone) => isPossible(() => new Intl.DateTimeFormat('en', { timeZone })),
      'is not an IANA time zone, such as Europe/Vienna or UTC',
    )
    .optional(),
  RATE_LIMIT_REQUESTS: count.default(120),
  RATE_LIMIT_WINDOW_SECONDS: timerSeconds.default(60),
  MAX_CONNECTIONS: count.default(1_000),
  MAX_CONCURRENT_REPORTS: count.default(8),
  ANSWER_CACHE_MEGABYTES: megabytes('0 for none', 0).default(64),
  ANSWER_TRUST_MS: wholeNumber(
    'is not a time: a whole number of milliseconds from 0 to 60000',
    0,
    60_000,
  ).default(50),
  REPORT_TIMEOUT_SECONDS: timeout.default(300),
  SEND_TIMEOUT_SECONDS: timeout.default(60),
  ALERT_NO_EVENTS_HOURS: period('hours', 87_600).default(26),
  ALERT_LOAD_HOURS: period('hours', 87_600).default(6),
  ALERT_UNCONFIRMED_DAYS: period('days', 3_650).default(60),
  ALERT_LOW_DAY_PERCENT: wholeNumber(
    'is not a percentage: a whole number from 0, for no alert, to 100',
    0,
    100,
  ).default(50),
  ALERT_LOW_DAY_EVENTS: count.default(100),
  ALERT_LOW_DAY_AFTER_HOURS: wholeNumber(
    'is not a number of hours: a whole number, 0 or more',
    0,
    87_600,
  ).default(12),
  LINK_SECRET: z.string().min(32, 'is shorter than 32 characters').optional(),
  ...signInVariables,
  ...mailVariables,
  ...pageVariables,
  ...signingVariables,
  OTEL_EXPORTER_OTLP_ENDPOINT: collector,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector,
  LOG_LEVEL: z
    .enum(logLevels, { error: `is not a log level: one of ${logLevels.join(', ')}` })
    .default('info'),
});

/** Frozen configuration; units are in the names. */
export type Config = ReturnType<typeof loadConfig>;

/** From when on `status` and the metrics say that something is amiss; infinite where no alert is wanted. */
export type AlertLimits = Config['alerts'];

/** An environment variable has a value that cannot be used; the message is one line that names it. */
export class ConfigError extends Error {}

/** Variables that hold a secret. With `_FILE` behind the name they name a file that holds it. */
const secrets = [
  'CLICKHOUSE_PASSWORD',
  'CLICKHOUSE_NAMES_PASSWORD',
  'CLICKHOUSE_SESSIONS_PASSWORD',
  'REDIS_URL',
  'LINK_SECRET',
  'SIGNING_KEY',
  'SMTP_URL',
  'OIDC_CLIENT_SECRET',
] as const;

/**
 * Reads the configuration from environment variables, and from the files that some of them name; an empty value counts
 * as absent.
 * @throws {ConfigError} naming the first wrong variable
 */
export function loadConfig(env: NodeJS.ProcessEnv) {
  const withoutTraces = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true';
  const given = Object.entries(env).filter(
    ([name, value]) => value !== '' && !(withoutTraces && name.startsWith('OTEL_')),
  );
  const present = withSecrets(Object.fromEntries(given));
  const parsed = environment.safeParse(present);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const name = String(issue?.path[0]);
    // An address can hold a password.
    const value = /_(URL|SECRET|KEY|ENDPOINT|ISSUER)$/.test(name) ? '' : `=${present[name]}`;
    throw new ConfigError(`${name}${value}: ${issue?.message}`);
  }
  const values = parsed.data;
  if (values.CLICKHOUSE_CLUSTER && !values.CLICKHOUSE_URL) {
    throw new ConfigError(
      `CLICKHOUSE_CLUSTER=${values.CLICKHOUSE_CLUSTER}: needs CLICKHOUSE_URL, the address of one of the cluster's nodes`,
    );
  }
  const signIn = signInConfig(values);
  if (signIn === 'incomplete') {
    throw new ConfigError(
      `OIDC_ISSUER=${values.OIDC_ISSUER}: needs PUBLIC_URL, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET, too`,
    );
  }
  if (values.ACCOUNT_MAILS === 'on' && values.CLICKHOUSE_URL && !values.LINK_SECRET) {
    throw new ConfigError('ACCOUNT_MAILS=on: needs LINK_SECRET, too');
  }
  return Object.freeze({
    clickhouse: Object.freeze({
      /** Absent: the embedded ClickHouse of `dataDir`. */
      url: values.CLICKHOUSE_URL,
      user: values.CLICKHOUSE_USER,
      password: values.CLICKHOUSE_PASSWORD,
      /** Whom the name dictionaries read as, for `migrate`; absent: the user who migrates. */
      names: userOf(values.CLICKHOUSE_NAMES_USER, values.CLICKHOUSE_NAMES_PASSWORD),
      /** Who notes that a person signed out everywhere; absent: the user of the service. */
      sessions: userOf(values.CLICKHOUSE_SESSIONS_USER, values.CLICKHOUSE_SESSIONS_PASSWORD),
      database: values.CLICKHOUSE_DATABASE,
      /** Only `migrate` needs it: a migrated database knows its cluster. */
      cluster: values.CLICKHOUSE_CLUSTER,
    }),
    redisUrl: values.REDIS_URL,
    host: values.HOST,
    port: values.PORT,
    /** Of `/readyz` and `/metrics`, on the same host; absent: they are on `port`. */
    adminPort: values.ADMIN_PORT,
    /** Of `receive`. */
    receivePort: values.RECEIVE_PORT,
    /** For bodies of events that arrive or are being loaded. */
    receiveMegabytes: values.RECEIVE_MEGABYTES,
    /** The folder of the mappings that bodies may name; absent: they may name none. */
    mappingsDir: values.MAPPINGS_DIR,
    /** Whose X-Forwarded-For is believed. */
    trustedProxies: Object.freeze(values.TRUSTED_PROXIES),
    dataDir: values.DATA_DIR,
    /** Absent: the time zone the database was created with, or UTC for a new one. */
    reportTimezone: values.REPORT_TIMEZONE,
    rateLimit: Object.freeze({
      requests: values.RATE_LIMIT_REQUESTS,
      windowSeconds: values.RATE_LIMIT_WINDOW_SECONDS,
    }),
    maxConnections: values.MAX_CONNECTIONS,
    maxConcurrentReports: values.MAX_CONCURRENT_REPORTS,
    /** For answers that are kept in memory; 0 keeps none. */
    answerCacheMegabytes: values.ANSWER_CACHE_MEGABYTES,
    /** For how long what the store told of its state is believed; what changes the store waits as long. */
    answerTrustMs: values.ANSWER_TRUST_MS,
    reportTimeoutSeconds: values.REPORT_TIMEOUT_SECONDS,
    /** How long a caller may leave an answer unread. */
    sendTimeoutSeconds: values.SEND_TIMEOUT_SECONDS,
    alerts: Object.freeze({
      /** For how long no events may come. */
      noEventsHours: values.ALERT_NO_EVENTS_HOURS || Number.POSITIVE_INFINITY,
      /** How long a load may take. */
      loadHours: values.ALERT_LOAD_HOURS || Number.POSITIVE_INFINITY,
      /** How old a day may get until its money is confirmed. */
      unconfirmedDays: values.ALERT_UNCONFIRMED_DAYS || Number.POSITIVE_INFINITY,
      lowDay: Object.freeze({
        percent: values.ALERT_LOW_DAY_PERCENT,
        events: values.ALERT_LOW_DAY_EVENTS,
        afterHours: values.ALERT_LOW_DAY_AFTER_HOURS,
      }),
    }),
    /** What links to reports are signed with. */
    linkSecret: values.LINK_SECRET,
    /** What closes are signed with; absent: they are not. */
    signing: values.SIGNING_KEY,
    /** The origin of this service in browsers. */
    publicUrl: values.PUBLIC_URL,
    /** Whether accounts may have reports of theirs sent by mail. */
    accountMails: values.ACCOUNT_MAILS === 'on',
    /** What `mail` needs beside the store. */
    mail: Object.freeze({
      smtpUrl: values.SMTP_URL,
      from: values.MAIL_FROM,
      /** Where the service of reports is asked. */
      serviceUrl: values.SERVICE_URL ?? `http://127.0.0.1:${values.PORT}`,
    }),
    /** Where people sign in; absent: with tokens alone. */
    signIn,
    /** How the page for people looks, and who may frame it. */
    page: Object.freeze({
      brand: Object.freeze({
        name: values.BRAND_NAME,
        colour: values.BRAND_COLOR,
        logo: values.BRAND_LOGO,
      }),
      frameAncestors: Object.freeze(values.FRAME_ANCESTORS),
    }),
    logLevel: values.LOG_LEVEL,
    /** Whether the variables of OpenTelemetry name a collector of spans. */
    tracing: tracingIsOn(present),
  });
}

const userOf = (user: string | undefined, password: string) =>
  user === undefined ? undefined : Object.freeze({ user, password });

function withSecrets(given: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const values = { ...given };
  for (const name of secrets) {
    const file = given[`${name}_FILE`];
    if (file === undefined) continue;
    if (given[name] !== undefined) {
      throw new ConfigError(`${name}_FILE=${file}: ${name} is set, too; set one of them`);
    }
    values[name] = contentOf(file, `${name}_FILE`);
  }
  return values;
}

/** The content of a file without the line end that editors add. */
function contentOf(file: string, variable: string): string {
  let content: string;
  try {
    content = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'no such text';
    throw new ConfigError(`${variable}=${file}: cannot be read (${reason})`);
  }
  if (content === '') throw new ConfigError(`${variable}=${file}: is empty`);
  return content;
}

function isAddressAlone(address: string): boolean {
  const { username, password, pathname, search, hash } = new URL(address);
  return username + password + pathname + search + hash === '/';
}

function isPossible(attempt: () => unknown): boolean {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
}

/** Whether the environment names a collector. */
function tracingIsOn(env: NodeJS.ProcessEnv): boolean {
  const named = env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  return Boolean(named) && env.OTEL_TRACES_EXPORTER !== 'none';
}
