import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type Store, select } from '../../clickhouse/client.ts';
import { everyCopyOf, insertTargetOnAllNodes, nodeTables } from '../../clickhouse/cluster/on-nodes.ts';
import { isTransient } from '../../clickhouse/retry.ts';
import { digestOf, knownTokens, type Versioned, versionAfter } from './versions.ts';

/** What a token is for, and how its text begins: it is refused elsewhere before anything is looked up. */
const prefixes = { report: 'adt_', ingest: 'adi_', operator: 'ado_' } as const;

/**
 * `report` opens the reports of an account. `ingest` sends events and `operator` runs operations; `account` is then only the
 * name of who does.
 */
export type TokenPurpose = keyof typeof prefixes;

export const tokenPurposes = ['report', 'ingest', 'operator'] as const satisfies readonly TokenPurpose[];

/** A login token as it is stored: never the token itself. Times are ISO 8601, UTC. */
export interface StoredToken extends Versioned {
  readonly id: string;
  readonly account: string;
  readonly purpose: TokenPurpose;
  /** The only family whose reports it opens; null: it opens all of the account. */
  readonly family: string | null;
  /** sha256 of the token, hex. */
  readonly hash: string;
  readonly label: string;
  readonly created: string;
  readonly expires: string | null;
  readonly revoked: string | null;
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** A new secret: `adt_`, `adi_` or `ado_`, 30 random base62 characters, 6 of checksum, so that typing errors are detected. */
export function newToken(purpose: TokenPurpose = 'report'): string {
  const secret = randomText(30);
  return `${prefixes[purpose]}${secret}${checksum(secret)}`;
}

/** What a text is for, if it can be a token at all; ClickHouse is never asked about one that cannot. */
export function purposeOf(token: string): TokenPurpose | undefined {
  const [, prefix, secret, sum] = /^(ad[tio]_)([0-9A-Za-z]{30})([0-9A-Za-z]{6})$/.exec(token) ?? [];
  if (secret === undefined || checksum(secret) !== sum) return undefined;
  return tokenPurposes.find((purpose) => prefixes[purpose] === prefix);
}

export function hashToken(token: string): string {
  return hash('sha256', token);
}

export interface NewToken {
  readonly account: string;
  readonly label: string;
  readonly purpose?: TokenPurpose | undefined;
  readonly family?: string | undefined;
  readonly expires?: Date | undefined;
}

/** Stores the hash of a new token and returns the token; it cannot be shown again. */
export async function createToken(store: Store, options: NewToken): Promise<string> {
  return (await issueToken(store, options)).token;
}

/** The same, with its id. */
export async function issueToken(store: Store, options: NewToken): Promise<{ id: string; token: string }> {
  const { purpose = 'report' } = options;
  const id = randomText(10);
  const token = newToken(purpose);
  await store.command({
    query: `INSERT INTO ${await insertTargetOnAllNodes(store, 'tokens')} (id, account_id, purpose, family, hash, label, created_at, expires_at)
            SELECT {id:String}, {account:String}, {purpose:String}, {family:String}, {hash:String}, {label:String}, now64(3),
                   fromUnixTimestamp64Milli({expires:Nullable(Int64)}, 'UTC')`,
    query_params: {
      id,
      account: options.account,
      purpose,
      family: options.family ?? '',
      hash: hashToken(token),
      label: options.label,
      expires: options.expires?.getTime() ?? null,
    },
  });
  return { id, token };
}

/** Those that fit all that is given, oldest first. */
export async function listTokens(
  store: Store,
  given: { readonly id?: string; readonly account?: string; readonly label?: string } = {},
): Promise<StoredToken[]> {
  const columns = { id: 'id', account: 'account_id', label: 'label' } as const;
  const conditions = Object.keys(given).map(
    (name) => `${columns[name as keyof typeof given]} = {${name}:String}`,
  );
  return tokensWhere(store, ['true', ...conditions].join(' AND '), given);
}

/** What services know of them, see {@link knownTokens}; with `since`, those of that version or a later one. */
export function listKnownTokens(store: Store, since = '1970-01-01 00:00:00'): Promise<StoredToken[]> {
  return tokensWhere(store, `${knownTokens} AND t.version >= toDateTime64({since:String}, 6, 'UTC')`, {
    since,
  });
}

function tokensWhere(
  store: Store,
  condition: string,
  params: Record<string, unknown>,
): Promise<StoredToken[]> {
  const iso = (column: string) =>
    `if(isNull(${column}), NULL, formatDateTime(${column}, '%Y-%m-%dT%H:%i:%SZ', 'UTC'))`;
  return select(
    store,
    `SELECT id, account_id AS account, toString(t.purpose) AS purpose, nullIf(toString(t.family), '') AS family, hash, label, ${iso('created_at')} AS created,
            ${iso('expires_at')} AS expires, ${iso('revoked_at')} AS revoked, toString(t.version) AS version,
            ${digestOf('t.id, t.version')} AS digest
     FROM tokens AS t FINAL WHERE ${condition} ORDER BY created_at, id`,
    params,
  );
}

/** One token, by its id or by its own text, or all tokens of an account. */
export type TokenChoice = { readonly id: string } | { readonly token: string } | { readonly account: string };

/**
 * Revokes tokens from now on; one that is revoked keeps the time. Where a node of a cluster is down, those that are up
 * no longer accept the tokens when this throws.
 * @returns the ids of all that were chosen
 * @throws when one of them is still valid afterwards, on any node of a cluster
 */
export async function revokeTokens(store: Store, choice: TokenChoice): Promise<string[]> {
  try {
    return await revokeIn(store, choice, {
      copies: await everyCopyOf(store, 'tokens'),
      target: await insertTargetOnAllNodes(store, 'tokens'),
    });
  } catch (error) {
    const nodes = await nodeTables(store, 'tokens');
    if (!(error instanceof Error) || !isTransient(error) || nodes.length < 2) throw error;
    const revoked = new Set<string>();
    const missed: string[] = [];
    for (const { host, table } of nodes) {
      const tables = { copies: table, target: `FUNCTION ${table}` };
      try {
        for (const id of await revokeIn(store, choice, tables)) revoked.add(id);
      } catch {
        missed.push(host);
      }
    }
    if (missed.length === 0) return [...revoked].sort();
    throw new Error(`not revoked on ${missed.join(', ')}; repeat the command when all nodes respond`, {
      cause: error,
    });
  }
}

async function revokeIn(
  store: Store,
  choice: TokenChoice,
  { copies, target }: { copies: string; target: string },
): Promise<string[]> {
  const [column, value] =
    'id' in choice
      ? ['id', choice.id]
      : 'token' in choice
        ? ['hash', hashToken(choice.token)]
        : ['account_id', choice.account];
  const idsOf = async (condition: string, final = '') =>
    select<{ id: string }>(
      store,
      `SELECT DISTINCT id FROM ${copies} AS t ${final} WHERE ${column} = {value:String} AND ${condition} ORDER BY id`,
      { value },
    ).then((rows) => rows.map(({ id }) => id));
  const ids = await idsOf('true');
  await store.command({
    query: `INSERT INTO ${target}
              (id, account_id, purpose, family, hash, label, created_at, expires_at, revoked_at, version)
            SELECT t.id, t.account_id, t.purpose, t.family, t.hash, t.label, t.created_at, t.expires_at, ifNull(t.revoked_at, now64(3)),
                   ${versionAfter('t.version')}
            FROM ${copies} AS t WHERE ${column} = {value:String}
            ORDER BY t.id, t.version DESC, t.revoked_at IS NULL LIMIT 1 BY t.id`,
    query_params: { value },
  });
  const valid = await idsOf('revoked_at IS NULL', 'FINAL');
  if (valid.length > 0) throw new Error(`not revoked: ${valid.join(', ')}; repeat the command`);
  return ids;
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
