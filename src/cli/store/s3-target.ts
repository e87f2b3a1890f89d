import { quoted } from '../../../clickhouse/quoted.ts';
import { bucketAddress } from '../../../ingest/objects/s3.ts';
import { usage } from '../command/arguments.ts';

/**
 * What ClickHouse is told of `s3://BUCKET/PATH`, or of an address that begins with http; undefined for anything else.
 * Keys and region come from the variables that the AWS tools read; without keys ClickHouse uses its own.
 */
export function s3Target(
  place: string,
  env: NodeJS.ProcessEnv,
): { readonly target: string; readonly name: string } | undefined {
  const url = addressOf(place, env);
  if (!url) return undefined;
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = env;
  if (!id !== !secret)
    throw usage('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together: one of them is not set');
  if (id && env.AWS_SESSION_TOKEN)
    throw usage('AWS_SESSION_TOKEN is set: for backups ClickHouse takes no keys that need a session token');
  const keys = id && secret ? [id, secret] : [];
  return { target: `S3(${[url, ...keys].map(quoted).join(', ')})`, name: place };
}

function addressOf(place: string, env: NodeJS.ProcessEnv): string | undefined {
  if (/^https?:\/\//.test(place)) return place;
  const [, bucket, path] = /^s3:\/\/([^/]+)\/(.+)$/.exec(place) ?? [];
  if (bucket === undefined || path === undefined) {
    if (place.startsWith('s3:')) throw usage(`${place}: give s3://BUCKET/PATH`);
    return undefined;
  }
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL;
  return `${bucketAddress(bucket, endpoint, env.AWS_REGION || env.AWS_DEFAULT_REGION)}/${path}`;
}
