import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { awsKeys } from '../../../ingest/objects/keys/aws-keys.ts';
import { KeysFailed } from '../../../ingest/objects/keys/keys.ts';
import { regionOf } from '../../../ingest/objects/keys/profile.ts';

/** Keys come from where the tools of AWS look for them, in their order. */

let home = '';
let origin = '';
const asked: string[] = [];
let expiresInMs = 3_600_000;
/** Every endpoint answers with this, which says that it is too busy. */
let busy: number | undefined;
/** What the endpoints of containers, instances and of the token service answer. */
const server = createServer(async (request, response) => {
  let body = '';
  for await (const data of request) body += data;
  const { method, url = '', headers } = request;
  asked.push(`${method} ${url}`);
  if (busy !== undefined) {
    response.statusCode = busy;
    return void response.end();
  }
  const given = {
    AccessKeyId: `key-${asked.length}`,
    SecretAccessKey: 'secret',
    Token: 'session',
    Expiration: new Date(Date.now() + expiresInMs).toISOString(),
  };
  if (url === '/container') {
    if (headers.authorization !== 'Bearer pod') response.statusCode = 401;
    return void response.end(JSON.stringify(given));
  }
  if (method === 'PUT' && url === '/latest/api/token') return void response.end('imds-token');
  if (url.startsWith('/latest/meta-data/iam/security-credentials/')) {
    if (headers['x-aws-ec2-metadata-token'] !== 'imds-token') response.statusCode = 401;
    return void response.end(url.endsWith('/') ? 'role' : JSON.stringify(given));
  }
  const { RoleArn, WebIdentityToken, Action } = Object.fromEntries(new URLSearchParams(body));
  if (
    url !== '/sts' ||
    Action !== 'AssumeRoleWithWebIdentity' ||
    RoleArn !== 'role' ||
    WebIdentityToken !== 'jwt'
  ) {
    response.statusCode = 400;
  }
  response.end(
    `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>${given.AccessKeyId}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken><Expiration>${given.Expiration}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
  );
});
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'adtally-keys-'));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await writeFile(join(home, 'jwt'), 'jwt\n');
  await writeFile(
    join(home, 'credentials'),
    '[default]\naws_access_key_id = of-file\naws_secret_access_key = a=b\n# note\n[half]\naws_access_key_id = x\n',
  );
  await writeFile(
    join(home, 'config'),
    '[profile web]\nrole_arn = role\nweb_identity_token_file = JWT\nregion = eu-west-1\n[profile sso]\nsso_session = s\n'.replace(
      'JWT',
      join(home, 'jwt'),
    ),
  );
});
beforeEach(() => {
  asked.length = 0;
  expiresInMs = 3_600_000;
  busy = undefined;
});
afterEach(() => vi.useRealTimers());
afterAll(async () => {
  server.close();
  await rm(home, { recursive: true });
});

const files = () => ({
  AWS_SHARED_CREDENTIALS_FILE: join(home, 'credentials'),
  AWS_CONFIG_FILE: join(home, 'config'),
});
const web = () => ({
  AWS_ROLE_ARN: 'role',
  AWS_WEB_IDENTITY_TOKEN_FILE: join(home, 'jwt'),
  AWS_ENDPOINT_URL_STS: `${origin}/sts`,
});
const container = () => ({
  AWS_CONTAINER_CREDENTIALS_FULL_URI: `${origin}/container`,
  AWS_CONTAINER_AUTHORIZATION_TOKEN: 'Bearer pod',
});
const instance = () => ({ AWS_EC2_METADATA_SERVICE_ENDPOINT: origin });
const without = { HOME: '/nonexistent', AWS_EC2_METADATA_DISABLED: 'true' };
const keysOf = (env: Record<string, string>) => awsKeys(env, 'eu-west-1').get();

test('the environment comes before files, files before a web identity, that before container and instance', async () => {
  const last = { ...without, AWS_EC2_METADATA_DISABLED: 'false', ...instance() };
  const all = [
    { AWS_ACCESS_KEY_ID: 'of-env', AWS_SECRET_ACCESS_KEY: 'b', AWS_SESSION_TOKEN: 'c' },
    files(),
    web(),
    container(),
  ];
  const env = (from: number) => Object.assign({}, last, ...all.slice(from)) as Record<string, string>;
  expect(await keysOf(env(0))).toEqual({ accessKeyId: 'of-env', secretAccessKey: 'b', sessionToken: 'c' });
  expect(await keysOf(env(1))).toEqual({ accessKeyId: 'of-file', secretAccessKey: 'a=b' });
  expect(asked).toEqual([]);
  const temporary = { secretAccessKey: 'secret', sessionToken: 'session' };
  expect(await keysOf(env(2))).toMatchObject(temporary);
  expect(await keysOf(env(3))).toMatchObject(temporary);
  expect(await keysOf(env(4))).toMatchObject(temporary);
  expect(asked.map((line) => line.split('/').at(-1))).toEqual(['sts', 'container', 'token', '', 'role']);
});

test('a profile is taken by its name, also one of a web identity; its region holds', async () => {
  const env = { ...without, ...files(), AWS_PROFILE: 'web', AWS_ENDPOINT_URL_STS: `${origin}/sts` };
  expect(await keysOf(env)).toMatchObject({ secretAccessKey: 'secret' });
  expect(await regionOf(env)).toBe('eu-west-1');
  expect(await regionOf({ ...env, AWS_REGION: 'us-west-2' })).toBe('us-west-2');
  await expect(regionOf({ AWS_REGION: 'evil.example.com/' })).rejects.toThrow('no name such as');
});

test('keys are kept, fetched again before they expire, and when they are not accepted any more', async () => {
  const keys = awsKeys({ ...without, ...container() }, 'eu-west-1');
  const [first, same] = await Promise.all([keys.get(), keys.get()]);
  expect(same).toBe(first);
  expect(await keys.get()).toBe(first);
  keys.letGo();
  expect((await keys.get()).accessKeyId).not.toBe(first.accessKeyId);
  expiresInMs = -1;
  keys.letGo();
  const expired = await keys.get();
  expect((await keys.get()).accessKeyId).not.toBe(expired.accessKeyId);
});

test.each<[string, () => Record<string, string>, RegExp]>([
  ['container', container, /^the endpoint of the container .* gives no keys \(429\)$/],
  [
    'instance',
    () => ({ ...instance(), AWS_EC2_METADATA_DISABLED: 'false' }),
    /^the instance endpoint of EC2 does not answer$/,
  ],
])(
  'where the endpoint of the %s is too busy for new keys, the old ones go on while they hold',
  async (_, env, message) => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const keys = awsKeys({ ...without, ...env() }, 'eu-west-1');
    const first = await keys.get();
    vi.setSystemTime(Date.now() + 3_500_000);
    busy = 429;
    expect(await keys.get()).toBe(first);
    busy = undefined;
    // It is not asked again at once.
    expect(await keys.get()).toBe(first);
    vi.setSystemTime(Date.now() + 60_000);
    const second = await keys.get();
    expect(second.accessKeyId).not.toBe(first.accessKeyId);
    vi.setSystemTime(Date.now() + 3_700_000);
    busy = 429;
    const failed = keys.get();
    await expect(failed).rejects.toThrow(KeysFailed);
    await expect(failed).rejects.toThrow(message);
    // Nor do those that are not accepted any more.
    busy = undefined;
    await keys.get();
    keys.letGo();
    busy = 429;
    await expect(keys.get()).rejects.toThrow(message);
  },
);

test.each<[string, () => Record<string, string>, RegExp]>([
  ['nothing', () => ({}), /there are no keys to read it with: set AWS_ACCESS_KEY_ID/],
  ['a profile that is not there', () => ({ ...files(), AWS_PROFILE: 'none' }), /there is no profile none/],
  [
    'a profile of single sign-on',
    () => ({ ...files(), AWS_PROFILE: 'sso' }),
    /by sso_session.*export-credentials/,
  ],
  ['a token that is refused', () => ({ ...web(), AWS_ROLE_ARN: 'other' }), /gives no keys \(400\)$/],
  [
    'another address without TLS',
    () => ({ AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://10.0.0.1/' }),
    /is not asked without TLS$/,
  ],
])('%s gives no keys, and says why', async (_, env, message) => {
  const failed = keysOf({ ...without, ...env() });
  await expect(failed).rejects.toThrow(message);
  await expect(failed).rejects.not.toThrow(/jwt$|secret|Bearer/);
});
