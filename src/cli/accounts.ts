import { text } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import { catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../clickhouse/client.ts';
import { linksOf } from '../accounts/links.ts';
import { listLimits, setRequestLimit } from '../accounts/request-limits.ts';
import { signOutEverywhere } from '../accounts/sign-outs.ts';
import {
  createToken,
  listTokens,
  purposeOf,
  restoredAt,
  revokeTokens,
  type TokenPurpose,
} from '../accounts/tokens.ts';
import { ConfigError } from '../config.ts';
import { InvalidRequest } from '../report/request.ts';
import { accountId, instant, positiveInteger, usage } from './arguments.ts';
import { config, line, print, say, withStore } from './command.ts';

interface LimitFlags {
  readonly requests?: number;
  readonly default?: boolean;
  readonly json?: boolean;
}

/** `token` and `limit`: who may ask, and how often. */
export function addAccountCommands(program: Command): void {
  const token = program.command('token').description('create, list or revoke login tokens, and make links');
  token
    .command('create')
    .description('create a token and print it; it cannot be shown again')
    .argument(
      '<account>',
      'the account whose reports it opens; of --for ingest a name for who sends',
      accountId,
    )
    .addOption(
      new Option(
        '--for <purpose>',
        'ingest: it sends events to adtally receive, and opens no report',
      ).choices(['ingest']),
    )
    .addOption(
      new Option('--family <family>', 'open only these reports of the account').choices(
        Object.keys(catalog.families),
      ),
    )
    .option('--expires <time>', 'when it expires, yyyy-mm-dd or ISO 8601', instant)
    .option('--label <text>', 'what it is for', '')
    .action(createAndPrint);
  token
    .command('list')
    .description('list tokens: id, account, label, created, expires, revoked, family, purpose')
    .argument('[account]', 'only those of this account')
    .option('--json', 'print JSON')
    .action((account: string | undefined, { json = false }: { json?: boolean }) =>
      withStore((store) => printTokens(store, account, json)),
    );
  token
    .command('link')
    .description('print a link to one report, for whoever has no token; it ends with the token that makes it')
    .argument('<token>', 'its id in the list')
    .argument('<address>', 'path and parameters of an export')
    .option('--expires <time>', 'when it expires, yyyy-mm-dd or ISO 8601; in a week unless given', instant)
    .action(printLink);
  token
    .command('revoke')
    .description(
      'revoke a token, or all of an account, or end the sessions of a person; holds within 5 seconds',
    )
    .argument('[token]', 'its id in the list, the token itself, or - for a token on standard input')
    .option('--account <account>', 'all tokens of this account', accountId)
    .option(
      '--person <subject>',
      'the sessions of this person, as the log of the service names them; no token',
    )
    .action(revoke);
  program
    .command('limit')
    .description("set an account's own request limit, or list those set")
    .argument('[account]', 'advertiser or publisher', accountId)
    .option('--requests <n>', 'how many requests it may send per window', positiveInteger)
    .option('--default', 'go back to the limit of all accounts')
    .option('--json', 'list as JSON')
    .action(limitRequests);
}

async function createAndPrint(
  account: string,
  { for: purpose, ...flags }: { for?: TokenPurpose; family?: string; expires?: Date; label: string },
): Promise<void> {
  if (purpose === 'ingest' && flags.family) throw usage('--family is for tokens that open reports');
  await withStore(async (store) => print(await createToken(store, { account, purpose, ...flags })), {
    mayBeNew: true,
  });
  if (!flags.expires) say('this token never expires; --expires gives it an end');
}

async function printLink(id: string, address: string, flags: { expires?: Date }): Promise<void> {
  const { linkOf } = await import('../http/export/link-of.ts');
  const links = linksOf(config());
  await withStore(async (store) => {
    const token = (await listTokens(store)).find((each) => each.id === id);
    if (token?.purpose !== 'report' || token.revoked !== null) {
      throw new Error(`there is no valid token ${id}; list them with: adtally token list`);
    }
    const made = asUsage(() => linkOf({ links, catalog }, token, address, flags.expires));
    const { pathname, origin } = new URL(address, 'http://none');
    if (token.family && !pathname.startsWith(`/v1/export/${token.family}`)) {
      throw usage(`token ${id} opens only the reports of ${token.family}`);
    }
    if (made === undefined) throw new ConfigError('LINK_SECRET: is needed to make links');
    print(origin === 'http://none' ? made.link : origin + made.link);
  });
}

function asUsage<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof InvalidRequest ? usage(error.message) : error;
  }
}

async function printTokens(store: Store, only: string | undefined, json: boolean): Promise<void> {
  const tokens = (await listTokens(store, only === undefined ? {} : { account: only })).map(
    ({ id, account, label, created, expires, revoked, family, purpose }) => ({
      id,
      account,
      label,
      created,
      expires,
      revoked,
      family,
      purpose,
    }),
  );
  const restored = await restoredAt(store);
  const valid = tokens.filter(
    ({ revoked, created }) => !revoked && restored && Date.parse(created) <= +restored,
  );
  if (restored && valid.length > 0) {
    say(
      `warning: the tokens were restored from a backup, or copied, at ${restored.toISOString()}: a token that was revoked after the backup was taken is valid again; revoke it again`,
    );
  }
  if (json) return print(JSON.stringify(tokens));
  for (const token of tokens) print(line(Object.values(token)));
}

async function revoke(
  given: string | undefined,
  { account, person }: { account?: string; person?: string },
): Promise<void> {
  if ([given, account, person].filter((each) => each !== undefined).length !== 1) {
    throw usage('give a token, --account ACCOUNT or --person SUBJECT: adtally token revoke TOKEN');
  }
  if (person !== undefined) {
    await withStore((store) => signOutEverywhere(store, person));
    return say(`${person} is signed out everywhere`);
  }
  const named = given === '-' ? (await text(process.stdin)).trim() : (given ?? '');
  const asToken = given === '-' || /^ad[ti]_/.test(named);
  if (asToken && !purposeOf(named)) throw usage('this is not a whole token, or it is mistyped');
  await withStore(async (store) => {
    const choice =
      account !== undefined ? { account } : asToken ? { token: named } : ({ id: named } as const);
    const ids = await revokeTokens(store, choice);
    if (ids.length === 0) {
      const what =
        account !== undefined ? `token of account ${account}` : `token ${asToken ? 'like it' : named}`;
      throw new Error(`there is no ${what}; list them with: adtally token list`);
    }
    for (const id of ids) say(`token ${id} is revoked`);
  });
}

/** `limit`: sets an account's own limit, takes it back, or lists those that are set. */
async function limitRequests(account: string | undefined, flags: LimitFlags): Promise<void> {
  const { requests, json = false } = flags;
  if (requests !== undefined && flags.default) throw usage('use either --requests N or --default, not both');
  if (requests === undefined && !flags.default) {
    return withStore((store) => printLimits(store, account, json));
  }
  if (account === undefined) throw usage('the account is missing: adtally limit ACCOUNT --requests N');
  await withStore((store) => setRequestLimit(store, account, requests ?? null), { mayBeNew: true });
  const limit =
    requests === undefined ? 'has the limit of all accounts' : `may send ${requests} requests per window`;
  say(`${account} ${limit}; services apply it within 5 seconds`);
}

async function printLimits(store: Store, only: string | undefined, json: boolean): Promise<void> {
  const own = (await listLimits(store))
    .filter(({ account, requests }) => requests !== null && (only ?? account) === account)
    .map(({ account, requests }) => ({ account, requests }));
  if (json) return print(JSON.stringify(own));
  for (const { account, requests } of own) print(line([account, requests]));
}
