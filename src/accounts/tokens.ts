import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type Store, select } from '../../clickhouse/client.ts';
import { insertTargetOnAllNodes } from '../../clickhouse/cluster/on-nodes.ts';

/** A login token as it is stored: never the token itself. Times are ISO 8601, UTC. */
export interface StoredToken {
  readonly id: string;
  readonly account: string;
  /** sha256 of the token, hex. */
  readonly hash: string;
  readonly label: string;
  readonly created: string;
  readonly expires: string | null;
  readonly revoked: string | null;
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const prefix = 'adt_';

/** A new secret: `adt_`, 30 random base62 characters, 6 of checksum, so that typing errors are detected. */
export function newToken(): string {
  const secret = randomText(30);
  return `${prefix}${secret}${checksum(secret)}`;
}

/** Whether a text can be a token at all; ClickHouse is never asked about one that cannot. */
export function isWellFormed(token: string): boolean {
  const [, secret, sum] = /^adt_([0-9A-Za-z]{30})([0-9A-Za-z]{6})$/.exec(token) ?? [];
  return secret !== undefined && checksum(secret) === sum;
}

export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Stores the hash of a new token and returns the token; it cannot be shown again. */
export async function createToken(
  store: Store,
  options: { account: string; label: string; expires?: Date },
): Promise<string> {
  const token = newToken();
  await store.command({
    query: `INSERT INTO ${await insertTargetOnAllNodes(store, 'tokens')} (id, account_id, hash, label, created_at, expires_at)
            SELECT {id:String}, {account:String}, {hash:String}, {label:String}, now64(3),
                   fromUnixTimestamp64Milli({expires:Nullable(Int64)}, 'UTC')`,
    query_params: {
      id: randomText(10),
      account: options.account,
      hash: hashToken(token),
      label: options.label,
      expires: options.expires?.getTime() ?? null,
    },
  });
  return token;
}

/** All tokens, or those of one account, oldest first; with `since`, those changed at or after it. */
export async function listTokens(
  store: Store,
  { account, since }: { account?: string; since?: string | undefined } = {},
): Promise<(StoredToken & { version: string })[]> {
  const iso = (column: string) =>
    `if(isNull(${column}), NULL, formatDateTime(${column}, '%Y-%m-%dT%H:%i:%SZ', 'UTC'))`;
  return select(
    store,
    `SELECT id, account_id AS account, hash, label, ${iso('created_at')} AS created,
            ${iso('expires_at')} AS expires, ${iso('revoked_at')} AS revoked, toString(t.version) AS version
     FROM tokens AS t FINAL
     WHERE ({account:Nullable(String)} IS NULL OR account_id = {account:Nullable(String)})
       AND t.version >= toDateTime64({since:String}, 6, 'UTC')
     ORDER BY created_at, id`,
    { account: account ?? null, since: since ?? '1970-01-01 00:00:00' },
  );
}

/** Revokes a token from now on; false if there is no such id. Revoking twice keeps the first time. */
export async function revokeToken(store: Store, id: string): Promise<boolean> {
  const [found] = await select(store, 'SELECT 1 FROM tokens WHERE id = {id:String} LIMIT 1', { id });
  if (!found) return false;
  await store.command({
    query: `INSERT INTO ${await insertTargetOnAllNodes(store, 'tokens')} (id, account_id, hash, label, created_at, expires_at, revoked_at)
            SELECT id, account_id, hash, label, created_at, expires_at, ifNull(revoked_at, now64(3))
            FROM tokens FINAL WHERE id = {id:String}`,
    query_params: { id },
  });
  return true;
}

function randomText(length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
}

function checksum(secret: string): string {
  let rest = crc32(secret);
  let text = '';
  for (let place = 0; place < 6; place++) {
    text = `${alphabet[rest % alphabet.length]}${text}`;
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
}
