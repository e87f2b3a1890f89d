import type { Store } from '../../clickhouse/client.ts';
import { createToken, listTokens, revokeToken } from '../accounts/tokens.ts';

/** `token create`: the token alone on standard output. */
export async function createLogin(
  store: Store,
  account: string,
  flags: { readonly expires?: Date; readonly label: string },
): Promise<void> {
  process.stdout.write(`${await createToken(store, { account, ...flags })}\n`);
}

/** `token list`: a line each, or JSON. */
export async function listLogins(
  store: Store,
  only: string | undefined,
  { json }: { readonly json?: boolean },
): Promise<void> {
  const tokens = (await listTokens(store, only === undefined ? {} : { account: only })).map(
    ({ id, account, label, created, expires, revoked }) => ({
      id,
      account,
      label,
      created,
      expires,
      revoked,
    }),
  );
  const line = (token: object) =>
    Object.values(token)
      .map((value) => value || '-')
      .join('\t');
  process.stdout.write(
    json ? `${JSON.stringify(tokens)}\n` : tokens.map((token) => `${line(token)}\n`).join(''),
  );
}

/** `token revoke`. @throws when there is no such token */
export async function revokeLogin(store: Store, id: string): Promise<void> {
  if (!(await revokeToken(store, id)))
    throw new Error(`there is no token ${id}; adtally token list shows them`);
  process.stderr.write(`token ${id} is revoked\n`);
}
