import type { Store } from '../../clickhouse/client.ts';
import { limitAccount, listLimits } from '../accounts/request-limits.ts';
import { usage } from './arguments.ts';

export interface LimitFlags {
  readonly requests?: number;
  readonly default?: boolean;
  readonly json?: boolean;
}

/** `limit`: sets or takes away the own limit of an account, or lists those that have one. */
export async function limitRequests(
  store: Store,
  account: string | undefined,
  flags: LimitFlags,
): Promise<void> {
  const changes = flags.requests !== undefined || flags.default === true;
  if (flags.requests !== undefined && flags.default)
    throw usage('error: it is either --requests N or --default');
  if (!changes) return list(store, account, flags.json ?? false);
  if (account === undefined) throw usage('error: whose limit? adtally limit ACCOUNT --requests N');
  await limitAccount(store, account, flags.requests ?? null);
  const limit =
    flags.requests === undefined ? 'the same limit as all' : `${flags.requests} requests a window`;
  process.stderr.write(`${account} has ${limit}; services know within 5 seconds\n`);
}

async function list(store: Store, only: string | undefined, json: boolean): Promise<void> {
  const own = (await listLimits(store))
    .filter(({ account, requests }) => requests !== null && (only ?? account) === account)
    .map(({ account, requests }) => ({ account, requests }));
  const lines = own.map(({ account, requests }) => `${account}\t${requests}\n`).join('');
  process.stdout.write(json ? `${JSON.stringify(own)}\n` : lines);
}
