import type { Command } from 'commander';
import type { Store } from '../../clickhouse/client.ts';
import { listLimits, setRequestLimit } from '../accounts/request-limits.ts';
import { createToken, listTokens, revokeToken } from '../accounts/tokens.ts';
import { accountId, instant, positiveInteger, usage } from './arguments.ts';
import { print, say, withStore } from './command.ts';

interface LimitFlags {
  readonly requests?: number;
  readonly default?: boolean;
  readonly json?: boolean;
}

/** `token` and `limit`: who may ask, and how often. */
export function addAccountCommands(program: Command): void {
  const token = program.command('token').description('create, list or revoke login tokens');
  token
    .command('create')
    .description('create a token and print it; it cannot be shown again')
    .argument('<account>', 'the account whose reports it opens', accountId)
    .option('--expires <time>', 'when it expires, yyyy-mm-dd or ISO 8601', instant)
    .option('--label <text>', 'what it is for', '')
    .action((account: string, flags: { expires?: Date; label: string }) =>
      withStore(async (store) => print(await createToken(store, { account, ...flags }))),
    );
  token
    .command('list')
    .description('list tokens: id, account, label, created, expires, revoked')
    .argument('[account]', 'only those of this account')
    .option('--json', 'print JSON')
    .action((account: string | undefined, { json = false }: { json?: boolean }) =>
      withStore((store) => printTokens(store, account, json)),
    );
  token
    .command('revoke')
    .description('revoke a token; services refuse it within 5 seconds')
    .argument('<id>', 'its id in the list')
    .action((id: string) => withStore((store) => revoke(store, id)));
  program
    .command('limit')
    .description("set an account's own request limit, or list those set")
    .argument('[account]', 'advertiser or publisher', accountId)
    .option('--requests <n>', 'how many requests it may send per window', positiveInteger)
    .option('--default', 'go back to the limit of all accounts')
    .option('--json', 'list as JSON')
    .action(limitRequests);
}

async function printTokens(store: Store, only: string | undefined, json: boolean): Promise<void> {
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
  if (json) return print(JSON.stringify(tokens));
  for (const token of tokens) {
    print(
      Object.values(token)
        .map((value) => value || '-')
        .join('\t'),
    );
  }
}

async function revoke(store: Store, id: string): Promise<void> {
  if (!(await revokeToken(store, id)))
    throw new Error(`there is no token ${id}; list them with: adtally token list`);
  say(`token ${id} is revoked`);
}

/** `limit`: sets an account's own limit, takes it back, or lists those that are set. */
async function limitRequests(account: string | undefined, flags: LimitFlags): Promise<void> {
  const { requests, json = false } = flags;
  if (requests !== undefined && flags.default) throw usage('use either --requests N or --default, not both');
  if (requests === undefined && !flags.default) {
    return withStore((store) => printLimits(store, account, json));
  }
  if (account === undefined) throw usage('the account is missing: adtally limit ACCOUNT --requests N');
  await withStore((store) => setRequestLimit(store, account, requests ?? null));
  const limit =
    requests === undefined ? 'has the limit of all accounts' : `may send ${requests} requests per window`;
  say(`${account} ${limit}; services apply it within 5 seconds`);
}

async function printLimits(store: Store, only: string | undefined, json: boolean): Promise<void> {
  const own = (await listLimits(store))
    .filter(({ account, requests }) => requests !== null && (only ?? account) === account)
    .map(({ account, requests }) => ({ account, requests }));
  if (json) return print(JSON.stringify(own));
  for (const { account, requests } of own) print(`${account}\t${requests}`);
}
