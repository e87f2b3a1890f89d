import { keysOfContainer, keysOfMachine, keysOfWebIdentity } from './endpoints.ts';
import { KeptKeys, type Keys, KeysFailed } from './keys.ts';
import { profileOf } from './profile.ts';

/** Where the tools of AWS look for keys, in their order. */
const sources: readonly ((env: NodeJS.ProcessEnv, region: string) => Promise<Keys | undefined>)[] = [
  keysOfEnvironment,
  keysOfProfile,
  (env, region) =>
    keysOfWebIdentity(
      roleOf(env.AWS_ROLE_ARN, env.AWS_WEB_IDENTITY_TOKEN_FILE, env.AWS_ROLE_SESSION_NAME),
      env,
      region,
    ),
  keysOfContainer,
  keysOfMachine,
];

/** @throws an error that says where keys were looked for */
export function awsKeys(env: NodeJS.ProcessEnv, region: string): KeptKeys {
  let hadOfMachine = false;
  return new KeptKeys(async () => {
    for (const source of sources) {
      const keys = await source(env, region);
      hadOfMachine ||= source === keysOfMachine && keys !== undefined;
      if (keys) return keys;
    }
    // That of a machine is the last of them, and the only one whose silence may mean that it is not there.
    if (hadOfMachine) throw new KeysFailed('the instance endpoint of EC2 does not answer');
    throw new Error(
      'there are no keys to read it with: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; no web identity, container or instance gives any either',
    );
  });
}

/** Of Google Cloud Storage: HMAC keys. */
export function googleKeys({
  GS_ACCESS_KEY_ID: id,
  GS_SECRET_ACCESS_KEY: secret,
}: NodeJS.ProcessEnv): KeptKeys {
  return new KeptKeys(async () => {
    if (!id || !secret) {
      throw new Error(
        'set GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY to an HMAC key that may read the bucket',
      );
    }
    return { accessKeyId: id, secretAccessKey: secret };
  });
}

async function keysOfEnvironment({
  AWS_ACCESS_KEY_ID: id,
  AWS_SECRET_ACCESS_KEY: secret,
  AWS_SESSION_TOKEN: token,
}: NodeJS.ProcessEnv): Promise<Keys | undefined> {
  if (!id && !secret) return undefined;
  if (!id || !secret) throw new Error('of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set');
  return { accessKeyId: id, secretAccessKey: secret, ...(token && { sessionToken: token }) };
}

async function keysOfProfile(env: NodeJS.ProcessEnv, region: string): Promise<Keys | undefined> {
  const profile = await profileOf(env);
  if (!profile) return undefined;
  const { name, settings } = profile;
  const { aws_access_key_id: id, aws_secret_access_key: secret, aws_session_token: token } = settings;
  if (id && secret)
    return { accessKeyId: id, secretAccessKey: secret, ...(token && { sessionToken: token }) };
  const role = roleOf(settings.role_arn, settings.web_identity_token_file, settings.role_session_name);
  if (role.roleArn && role.tokenFile) return keysOfWebIdentity(role, env, region);
  const other = ['credential_process', 'sso_session', 'sso_start_url', 'role_arn'].find(
    (each) => settings[each],
  );
  if (other) {
    throw new Error(
      `profile ${name} gets its keys by ${other}, which adtally does not do: eval "$(aws configure export-credentials --format env)" sets them`,
    );
  }
  return undefined;
}

function roleOf(roleArn?: string, tokenFile?: string, session?: string) {
  return { ...(roleArn && { roleArn }), ...(tokenFile && { tokenFile }), ...(session && { session }) };
}
