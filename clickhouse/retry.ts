import { setTimeout as delay } from 'node:timers/promises';
import { ClickHouseError } from '@clickhouse/client';

export interface RetryOptions {
  /** How long to keep trying; the default is two minutes, enough for a ClickHouse that restarts. */
  readonly giveUpAfterMs?: number | undefined;
  /** Ends the waiting, with an AbortError. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the first failure only. */
  readonly onRetry?: ((error: Error) => void) | undefined;
}

/** Types of errors of a server that cannot reach another node of its cluster, or lost it. */
const awayTypes = [
  'NETWORK_ERROR',
  'SOCKET_TIMEOUT',
  'DNS_ERROR',
  'ALL_CONNECTION_TRIES_FAILED',
  'NO_REMOTE_SHARD_AVAILABLE',
  'SHARD_HAS_NO_CONNECTIONS',
  'TOO_MANY_UNAVAILABLE_SHARDS',
];

/** Types of errors that a later attempt may not meet, by what is the matter with a server. */
const transientTypes = new Set([
  // It starts.
  'ASYNC_LOAD_WAIT_FAILED',
  // It shuts down, also by a fatal error, and ends what it was at.
  'ABORTED',
  // It is overloaded.
  'TOO_MANY_SIMULTANEOUS_QUERIES',
  'TOO_MANY_PARTS',
  'SERVER_OVERLOADED',
  'NO_FREE_CONNECTION',
  'TCP_CONNECTION_LIMIT_REACHED',
  'HTTP_CONNECTION_LIMIT_REACHED',
  'RECEIVED_ERROR_TOO_MANY_REQUESTS',
  // It is without its disk, its coordination or its replicas for a moment.
  'TABLE_IS_READ_ONLY',
  'KEEPER_EXCEPTION',
  'NO_ZOOKEEPER',
  'ALL_REPLICAS_ARE_STALE',
  'NO_AVAILABLE_REPLICA',
  'NO_ACTIVE_REPLICAS',
  'TOO_FEW_LIVE_REPLICAS',
  ...awayTypes,
]);

/** Another node of a cluster went away in the middle of an answer, if it says so; a truncated file has these types, too. */
const cutOffTypes = new Set(['ATTEMPT_TO_READ_AFTER_EOF', 'CANNOT_READ_ALL_DATA']);

const transientCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** What load balancers and ingresses answer while no ClickHouse stands behind them: nginx, HAProxy, Envoy, Traefik. */
const noServerBehind =
  /bad gateway|service (temporarily )?unavailable|gateway time-?out|no healthy upstream|upstream (connect error|request timeout)|no available server/i;

/**
 * Does the work, and does it again with growing pauses while it fails with a transient error. The work must be
 * safe to repeat.
 * @throws the last failure when the time is up, and any other failure at once
 */
export async function retrying<T>(
  work: () => Promise<T>,
  { giveUpAfterMs = 120_000, signal, onRetry }: RetryOptions = {},
): Promise<T> {
  const deadline = performance.now() + giveUpAfterMs;
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, 5_000)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Error) || !isTransient(error) || performance.now() + pauseMs > deadline)
        throw error;
      if (pauseMs === 100) onRetry?.(error);
      await delay(pauseMs, undefined, { signal });
    }
  }
}

/** Whether an error is one of the connection or of a busy server, which a later attempt may not meet. */
export function isTransient(error: Error): boolean {
  if (error instanceof ClickHouseError) {
    const type = error.type ?? '';
    return transientTypes.has(type) || (cutOffTypes.has(type) && / packet from /.test(error.message));
  }
  if (isOfConnection(error) || noServerBehind.test(error.message)) return true;
  return /socket hang up|aborted|premature close/i.test(error.message);
}

/** Who had too little memory: one statement, which reached its own limit, or all of them; undefined for other errors. */
export function lacksMemory(error: unknown): 'statement' | 'server' | undefined {
  if (!(error instanceof ClickHouseError && error.type === 'MEMORY_LIMIT_EXCEEDED')) return undefined;
  return /\bQuery memory limit|\(for query\)/.test(error.message) ? 'statement' : 'server';
}

/**
 * The title of the page, or the reason in the JSON, that a web server answered with in the place of ClickHouse, as one line;
 * undefined for other errors.
 */
export function titleOfPage({ message }: Error): string | undefined {
  const isPage = /^\s*<|^Unexpected token '<'/.test(message);
  const title = isPage ? (/<(?:title|Message)>([^<]+)/i.exec(message)?.[1] ?? '') : reasonInJson(message);
  if (title === undefined) return undefined;
  return title.replace(/[\s\p{Cc}]+/gu, ' ').trim() || 'a page';
}

/** The beginning of the JSON where it gives none; undefined for other text. */
function reasonInJson(text: string): string | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  try {
    const { detail, message, title } = JSON.parse(text);
    return (
      [detail, message, title].find((reason) => typeof reason === 'string' && reason.trim()) ??
      text.slice(0, 200)
    );
  } catch {
    return undefined;
  }
}

/** Whether a server says that it cannot reach another node of its cluster, or lost it. */
export const isOfNode = (error: unknown): boolean =>
  error instanceof ClickHouseError && awayTypes.includes(error.type ?? '');

/** Whether an error is one of a connection that was not made, or broke. */
export const isOfConnection = (error: Error): boolean =>
  'code' in error && transientCodes.has(String(error.code));

/** That the certificate of a server is not accepted, in words; undefined for other errors. Another attempt does not mend it. */
export function certificateRefused(cause: Error, server: string): Error | undefined {
  const code = 'code' in cause ? String(cause.code) : '';
  if (!/^(?:ERR_TLS_CERT_|CERT_|UNABLE_TO_)|SELF_SIGNED/.test(code)) return undefined;
  const isUnknown = /^UNABLE_TO_|SELF_SIGNED/.test(code);
  const advice = isUnknown ? ': NODE_EXTRA_CA_CERTS names the authority that vouches for it' : '';
  // For a wrong address the first line has the names of the certificate.
  const [reason] = cause.message.split('\n', 1);
  return new Error(`the certificate of ${server} is not accepted (${reason || code})${advice}`, { cause });
}
