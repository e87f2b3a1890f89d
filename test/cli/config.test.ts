import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config/config.ts';
import { useFolder } from '../support/folder.ts';

/** The message of a configuration with these variables. */
function refusal(env: Record<string, string>): string {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'accepted';
}

test('SIGNING_KEY is refused where a private key would not be read, or not sign', () => {
  const pair = generateKeyPairSync('ed25519');
  const signs = pair.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  const open = pair.publicKey.export({ format: 'pem', type: 'spki' }).toString();
  const locked = pair.privateKey
    .export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'secret' })
    .toString();
  expect(locked).toContain('ENCRYPTED');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ofAnotherKind = privateKey.export({ format: 'pem', type: 'sec1' }).toString();
  for (const pem of [open, signs, signs + open]) expect(refusal({ SIGNING_KEY: pem })).toBe('accepted');
  for (const pem of [open + signs, signs + signs, locked + open, open + locked, ofAnotherKind + open]) {
    expect(refusal({ SIGNING_KEY: pem })).toMatch(
      /^SIGNING_KEY: has no keys of Ed25519 in PEM, others beside them, or a private one that is not the first$/,
    );
  }
});

type Refused = [name: string, value: string, reason: string];
const noNetworks = 'is not a list of addresses and networks, such as 10.0.0.0/8,fd00::/8';

test.each<Refused>([
  ['CLICKHOUSE_URL', 'ftp://x', 'is not the address of a ClickHouse server, such as http://localhost:8123'],
  [
    'CLICKHOUSE_URL',
    'localhost:8123',
    'is not the address of a ClickHouse server, such as http://localhost:8123',
  ],
  ['CLICKHOUSE_URL', 'nonsense', 'is not the address of a ClickHouse server, such as http://localhost:8123'],
  ['CLICKHOUSE_DATABASE', 'a b', 'is not a database name: letters, digits and _, not starting with a digit'],
  ['CLICKHOUSE_CLUSTER', '-', 'is not a cluster name: letters, digits, _ - and ., not starting with - or .'],
  ['CLICKHOUSE_CLUSTER', 'ads', "needs CLICKHOUSE_URL, the address of one of the cluster's nodes"],
  ...['localhost:6379', 'redis:localhost', 'redis:///1', 'REDISS://h', '\x01redis://h', 'redis://?path='].map(
    (url): Refused => [
      'REDIS_URL',
      url,
      'is not the address of a Redis server, such as redis://localhost:6379',
    ],
  ),
  ...['/abc', '/1/2', '/1.5', '/-1', '/%31', '//', '/1234567890', '?db=abc', '/?db=1.5', '?db=1&db='].map(
    (path): Refused => [
      'REDIS_URL',
      `redis://localhost${path}`,
      'has a database that is no number of at most nine digits: redis://localhost:6379/1 names one',
    ],
  ),
  ...[':50%off', 'us%:41', ':%E9'].map(
    (login): Refused => [
      'REDIS_URL',
      `redis://${login}@localhost`,
      'has an escape in user or password that is no UTF-8, or a lone %, which is written %25',
    ],
  ),
  ...['proxy', '10.0.0.0/8/9', '10.0.0.0/1e1', '10.0.0.0/', '10.0.0.1,', '::/129'].map(
    (networks): Refused => ['TRUSTED_PROXIES', networks, noNetworks],
  ),
  ['PORT', 'abc', 'is not a port: a whole number from 0 to 65535'],
  ['PORT', '-1', 'is not a port: a whole number from 0 to 65535'],
  ['PORT', '70000', 'is not a port: a whole number from 0 to 65535'],
  ['PORT', '80.5', 'is not a port: a whole number from 0 to 65535'],
  ['PORT', ' 80', 'is not a port: a whole number from 0 to 65535'],
  [
    'SMTP_URL',
    'smtp://',
    'is not the address of a mail server, such as smtps://USER:PASSWORD@smtp.example.com',
  ],
  [
    'SMTP_URL',
    'smtp:localhost',
    'is not the address of a mail server, such as smtps://USER:PASSWORD@smtp.example.com',
  ],
  [
    'MAIL_FROM',
    'a@example.com,b@example.com',
    'is not an address of mail, such as Reports <reports@example.com>',
  ],
  ['MAIL_FROM', 'mailto:a@example.com', 'is not an address of mail, such as Reports <reports@example.com>'],
  ['SERVICE_URL', 'http://a/?b', 'has a ? or #, but the paths of reports are appended to it'],
  ['REPORT_TIMEZONE', 'Mars', 'is not an IANA time zone, such as Europe/Vienna or UTC'],
  ['RATE_LIMIT_REQUESTS', '0', 'is not a count: a whole number, 1 or more'],
  [
    'RATE_LIMIT_WINDOW_SECONDS',
    '1m',
    'is not a time of at most 24 days: a whole number of seconds from 1 to 2073600',
  ],
  [
    'RATE_LIMIT_WINDOW_SECONDS',
    '2073601',
    'is not a time of at most 24 days: a whole number of seconds from 1 to 2073600',
  ],
  ['MAX_CONCURRENT_REPORTS', 'many', 'is not a count: a whole number, 1 or more'],
  ['REPORT_TIMEOUT_SECONDS', '0', 'is not a timeout: a whole number of seconds from 1 to 86400'],
  ['SEND_TIMEOUT_SECONDS', '99999999', 'is not a timeout: a whole number of seconds from 1 to 86400'],
  [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'localhost:4318',
    'is not the address of a collector, such as http://localhost:4318',
  ],
  [
    'OIDC_ISSUER',
    'https://me:pass-word@login.example.com',
    'is not the address of an OpenID provider, such as https://login.example.com: https, or http on this machine',
  ],
  ['BRAND_NAME', '  ', 'is empty'],
  ['BRAND_NAME', 'a'.repeat(61), 'is longer than 60 characters'],
  ['LOG_LEVEL', 'loud', 'is not a log level: one of trace, debug, info, warn, error, fatal, silent'],
])('%s=%s is refused in words of our own', (name, value, reason) => {
  // An address can hold a password: its value is not shown.
  const shown = /_(URL|ENDPOINT|ISSUER)$/.test(name) ? name : `${name}=${value}`;
  expect(refusal({ [name]: value })).toBe(`${shown}: ${reason}`);
});

test.each([
  [String.raw`"Acme \"X\" Inc" <a@example.com>`, 'Acme "X" Inc'],
  ['Acme "The" Co <a@example.com>', 'Acme "The" Co'],
  ['A\u2028B <a@example.com>', 'A\u2028B'],
])('MAIL_FROM %s is a name and an address', (text, name) => {
  expect(loadConfig({ MAIL_FROM: text }).mail.from).toEqual({ name, address: 'a@example.com' });
});

test('nothing of OpenTelemetry is read where it is off', () => {
  const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' };
  expect(loadConfig({ ...collector, OTEL_SDK_DISABLED: 'True' }).tracing).toBe(false);
  expect(() => loadConfig({ ...collector, OTEL_SDK_DISABLED: 'false' })).toThrow('collector');
});

test.each([
  'http://me:pass-word@host:8123',
  'http://me@host',
  'http://:pass-word@host',
  'http://host/?password=pass-word',
  'http://host#pass-word',
  'http://host:8123/pass-word',
])('an address that brings a user, a database or more is refused, and is not repeated: %s', (value) => {
  expect(refusal({ CLICKHOUSE_URL: value })).toBe(
    'CLICKHOUSE_URL: has more than protocol, host and port: user, password and database go into CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE',
  );
});

describe('a secret in a file', () => {
  const folder = useFolder();
  const fileOf = (text: string) => {
    const file = join(folder, randomUUID());
    writeFileSync(file, text);
    return file;
  };

  test('is read without its line end, and blanks that belong to it stay', () => {
    const redis = fileOf('rediss://:secret@redis:6379');
    expect(
      loadConfig({ CLICKHOUSE_NAMES_USER: 'names', CLICKHOUSE_NAMES_PASSWORD_FILE: fileOf('n') }).clickhouse,
    ).toMatchObject({ user: 'default', names: { user: 'names', password: 'n' } });
    expect(
      loadConfig({ CLICKHOUSE_PASSWORD_FILE: fileOf(' s=cret \n'), REDIS_URL_FILE: redis }),
    ).toMatchObject({
      clickhouse: { password: ' s=cret ' },
      redisUrl: 'rediss://:secret@redis:6379',
    });
    for (const url of [
      'redis://h/',
      'redis://[::1]:6379/2/',
      'rediss://:50%25off@h/0?family=6&db=6',
      'redis://?db=1&path=/s',
      'redis:///1?path=/s',
    ])
      expect(loadConfig({ REDIS_URL: url }).redisUrl).toBe(url);
    const { password } = loadConfig({ CLICKHOUSE_PASSWORD_FILE: fileOf('windows\r\n') }).clickhouse;
    expect(password).toBe('windows');
  });

  test('is not shown when it is wrong', () => {
    expect(refusal({ REDIS_URL_FILE: fileOf('secret') })).toBe(
      'REDIS_URL: is not the address of a Redis server, such as redis://localhost:6379',
    );
  });

  test('that is missing, empty or given twice is refused', () => {
    const [file, empty] = [fileOf('secret'), fileOf('\n')];
    expect(refusal({ CLICKHOUSE_PASSWORD_FILE: '/nowhere' })).toBe(
      'CLICKHOUSE_PASSWORD_FILE=/nowhere: cannot be read (ENOENT)',
    );
    expect(refusal({ CLICKHOUSE_PASSWORD_FILE: empty })).toBe(`CLICKHOUSE_PASSWORD_FILE=${empty}: is empty`);
    expect(refusal({ CLICKHOUSE_PASSWORD: 'other', CLICKHOUSE_PASSWORD_FILE: file })).toBe(
      `CLICKHOUSE_PASSWORD_FILE=${file}: CLICKHOUSE_PASSWORD is set, too; set one of them`,
    );
    expect(
      loadConfig({ CLICKHOUSE_PASSWORD: 'other', CLICKHOUSE_PASSWORD_FILE: '' }).clickhouse.password,
    ).toBe('other');
  });
});

describe('a configuration', () => {
  test('has a default for every variable, also for an empty one', () => {
    const config = loadConfig({});
    expect(config).toMatchObject({ port: 8080, rateLimit: { requests: 120, windowSeconds: 60 } });
    expect(loadConfig({ PORT: '', CLICKHOUSE_URL: '', LOG_LEVEL: '' })).toEqual(config);
  });

  test('holds what the variables say', () => {
    expect(
      loadConfig({ PORT: '0', SEND_TIMEOUT_SECONDS: '86400', REDIS_URL: 'rediss://u:p@h' }),
    ).toMatchObject({
      port: 0,
      sendTimeoutSeconds: 86_400,
      redisUrl: 'rediss://u:p@h',
    });
  });

  test('has the public address as browsers write it', () => {
    expect(loadConfig({ PUBLIC_URL: 'https://Reports.example.com:443/' }).publicUrl).toBe(
      'https://reports.example.com',
    );
    expect(refusal({ PUBLIC_URL: 'https://reports.example.com/panel' })).toMatch(/^PUBLIC_URL: is not/);
  });
});
