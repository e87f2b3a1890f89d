import { readFile } from 'node:fs/promises';
import { childrenOf, textOf, xmlOf } from '../wire/xml.ts';
import { type Keys, KeysFailed } from './keys.ts';

/** A token of somebody else's that a role trusts, as pods of Kubernetes have it. */
export interface WebIdentity {
  readonly roleArn?: string;
  readonly tokenFile?: string;
  readonly session?: string;
}

const answerWithinMs = 10_000;
/** Where there is no such endpoint, nothing answers. */
const machineAnswersWithinMs = 1_000;

/** Asks the token service of AWS for keys of a role. */
export async function keysOfWebIdentity(
  { roleArn, tokenFile, session = `adtally-${process.pid}` }: WebIdentity,
  env: NodeJS.ProcessEnv,
  region: string,
): Promise<Keys | undefined> {
  if (!roleArn || !tokenFile) return undefined;
  const token = (await readFile(tokenFile, 'utf8')).trim();
  const suffix = region.startsWith('cn-') ? '.cn' : '';
  const url = env.AWS_ENDPOINT_URL_STS || `https://sts.${region}.amazonaws.com${suffix}/`;
  const body = new URLSearchParams({
    ...{ Action: 'AssumeRoleWithWebIdentity', Version: '2011-06-15' },
    ...{ RoleArn: roleArn, RoleSessionName: session, WebIdentityToken: token },
  });
  const text = await asked('the token service of AWS (AWS_ROLE_ARN)', url, { method: 'POST', body });
  return keysIn('the token service of AWS', () => {
    const [result] = childrenOf(
      xmlOf(text, 'AssumeRoleWithWebIdentityResponse'),
      'AssumeRoleWithWebIdentityResult',
    );
    const [given] = childrenOf(result, 'Credentials');
    return {
      AccessKeyId: textOf(given, 'AccessKeyId'),
      SecretAccessKey: textOf(given, 'SecretAccessKey'),
      Token: textOf(given, 'SessionToken'),
      Expiration: textOf(given, 'Expiration'),
    };
  });
}

/** Addresses that may be asked without TLS: this machine, and those that ECS and EKS have for it. */
const ofContainers = new Set([
  'localhost',
  '127.0.0.1',
  '[::1]',
  '169.254.170.2',
  '169.254.170.23',
  '[fd00:ec2::23]',
]);

/** Asks the endpoint that ECS and EKS name to a container. */
export async function keysOfContainer(env: NodeJS.ProcessEnv): Promise<Keys | undefined> {
  const { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: path, AWS_CONTAINER_CREDENTIALS_FULL_URI: full } = env;
  if (!path && !full) return undefined;
  const url = new URL(path ? `http://169.254.170.2${path}` : (full ?? ''));
  if (url.protocol !== 'https:' && !ofContainers.has(url.hostname)) {
    throw new Error(
      `AWS_CONTAINER_CREDENTIALS_FULL_URI names ${url.hostname}, which is not asked without TLS`,
    );
  }
  const file = env.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE;
  const authorization = file ? (await readFile(file, 'utf8')).trim() : env.AWS_CONTAINER_AUTHORIZATION_TOKEN;
  const what = 'the endpoint of the container (AWS_CONTAINER_CREDENTIALS_…)';
  const text = await asked(what, url, { headers: { ...(authorization && { authorization }) } });
  return keysIn(what, () => JSON.parse(text));
}

/** Asks the instance endpoint of EC2, with a token (version 2). */
export async function keysOfMachine(env: NodeJS.ProcessEnv): Promise<Keys | undefined> {
  if (env.AWS_EC2_METADATA_DISABLED?.toLowerCase() === 'true') return undefined;
  const base = (env.AWS_EC2_METADATA_SERVICE_ENDPOINT || 'http://169.254.169.254').replace(/\/$/, '');
  const token = await fetch(`${base}/latest/api/token`, {
    ...{ method: 'PUT', redirect: 'error', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '300' } },
    signal: AbortSignal.timeout(machineAnswersWithinMs),
  }).then(
    (answer) => (answer.ok ? answer.text() : undefined),
    () => undefined,
  );
  if (token === undefined) return undefined;
  const headers = { 'x-aws-ec2-metadata-token': token };
  const what = 'the instance endpoint of EC2';
  const roles = `${base}/latest/meta-data/iam/security-credentials/`;
  const [role = ''] = (await asked(what, roles, { headers })).split('\n');
  const text = await asked(what, roles + encodeURIComponent(role.trim()), { headers });
  return keysIn(what, () => JSON.parse(text));
}

/** @throws {KeysFailed}, or an error that stays; without any of what was sent or answered, which may be secret */
async function asked(what: string, url: string | URL, init: RequestInit): Promise<string> {
  if (!URL.canParse(`${url}`)) throw new Error(`the address of ${what} is not valid`);
  const signal = AbortSignal.timeout(answerWithinMs);
  const answered = fetch(url, { ...init, redirect: 'error', signal }).then(async (answer) => ({
    status: answer.status,
    text: await answer.text(),
  }));
  const { status, text } = await answered.catch((error: Error) => {
    throw new KeysFailed(`${what} does not answer (${Object(error.cause).code ?? error.name})`);
  });
  if (status >= 200 && status < 300) return text;
  const message = `${what} gives no keys (${status})`;
  throw status === 429 || status >= 500 ? new KeysFailed(message) : new Error(message);
}

interface GivenKeys {
  readonly AccessKeyId?: string;
  readonly SecretAccessKey?: string;
  readonly Token?: string;
  readonly Expiration?: string;
}

function keysIn(what: string, read: () => GivenKeys): Keys {
  let given: GivenKeys = {};
  try {
    given = read();
  } catch {
    // What a parser says of an answer would show some of it.
  }
  const { AccessKeyId, SecretAccessKey, Token, Expiration } = given;
  if (!AccessKeyId || !SecretAccessKey) throw new Error(`${what} gives no keys`);
  const expiresAt = Date.parse(Expiration ?? '');
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    ...(Token && { sessionToken: Token }),
    ...(!Number.isNaN(expiresAt) && { expiresAt }),
  };
}
