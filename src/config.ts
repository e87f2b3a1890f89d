import { z } from 'zod';

const positive = (fallback: number) => z.coerce.number().int().positive().default(fallback);

const timezone = z
  .string()
  .refine(isTimezone, 'is not a time zone of the IANA database, such as Europe/Vienna');

const environment = z.object({
  CLICKHOUSE_URL: z.url({ protocol: /^https?$/, error: 'is not an http:// or https:// address' }).optional(),
  CLICKHOUSE_USER: z.string().default('default'),
  CLICKHOUSE_PASSWORD: z.string().default(''),
  CLICKHOUSE_DATABASE: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'may hold letters, digits and _ only')
    .default('adtally'),
  CLICKHOUSE_CLUSTER: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/, 'may hold letters, digits, _ - and . only')
    .optional(),
  REDIS_URL: z.url({ protocol: /^rediss?$/, error: 'is not a redis:// or rediss:// address' }).optional(),
  HOST: z.string().default('127.0.0.1'),
  PORT: z.coerce.number().int().min(0).max(65535).default(8080),
  DATA_DIR: z.string().default('.data'),
  REPORT_TIMEZONE: timezone.optional(),
  RATE_LIMIT_REQUESTS: positive(120),
  RATE_LIMIT_WINDOW_SECONDS: positive(60),
  MAX_CONCURRENT_REPORTS: positive(8),
  REPORT_TIMEOUT_SECONDS: positive(300),
  SEND_TIMEOUT_SECONDS: positive(60),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
});

/** Frozen configuration; units are in the names. */
export type Config = Readonly<{
  clickhouse: Readonly<{
    url?: string;
    user: string;
    password: string;
    database: string;
    /** Only `migrate` needs it; a migrated store knows its cluster. */
    cluster?: string;
  }>;
  redisUrl?: string;
  host: string;
  port: number;
  dataDir: string;
  /** Absent: what the store was created with, or UTC for a new store. */
  reportTimezone?: string;
  rateLimit: Readonly<{ requests: number; windowSeconds: number }>;
  maxConcurrentReports: number;
  reportTimeoutSeconds: number;
  /** How long a caller may leave an answer unread. */
  sendTimeoutSeconds: number;
  logLevel: z.infer<typeof environment>['LOG_LEVEL'];
}>;

/** A variable of the environment has a value that cannot be used; the message is one line that names it. */
export class ConfigError extends Error {}

/**
 * Reads the configuration from environment variables; an empty value counts as absent.
 * @throws {ConfigError} that names the first wrong variable
 */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const present = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = environment.safeParse(present);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const name = String(issue?.path[0]);
    // An address can hold a password.
    const value = name.endsWith('_URL') ? '' : `=${present[name]}`;
    throw new ConfigError(`${name}${value}: ${issue?.message}`);
  }
  const values = parsed.data;
  if (values.CLICKHOUSE_CLUSTER && !values.CLICKHOUSE_URL) {
    throw new ConfigError(
      `CLICKHOUSE_CLUSTER=${values.CLICKHOUSE_CLUSTER}: needs CLICKHOUSE_URL, the address of one of its nodes`,
    );
  }
  return Object.freeze({
    clickhouse: Object.freeze({
      ...(values.CLICKHOUSE_URL && { url: values.CLICKHOUSE_URL }),
      user: values.CLICKHOUSE_USER,
      password: values.CLICKHOUSE_PASSWORD,
      database: values.CLICKHOUSE_DATABASE,
      ...(values.CLICKHOUSE_CLUSTER && { cluster: values.CLICKHOUSE_CLUSTER }),
    }),
    ...(values.REDIS_URL && { redisUrl: values.REDIS_URL }),
    host: values.HOST,
    port: values.PORT,
    dataDir: values.DATA_DIR,
    ...(values.REPORT_TIMEZONE && { reportTimezone: values.REPORT_TIMEZONE }),
    rateLimit: Object.freeze({
      requests: values.RATE_LIMIT_REQUESTS,
      windowSeconds: values.RATE_LIMIT_WINDOW_SECONDS,
    }),
    maxConcurrentReports: values.MAX_CONCURRENT_REPORTS,
    reportTimeoutSeconds: values.REPORT_TIMEOUT_SECONDS,
    sendTimeoutSeconds: values.SEND_TIMEOUT_SECONDS,
    logLevel: values.LOG_LEVEL,
  });
}

function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
