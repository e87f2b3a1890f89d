import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import {
  createToken,
  limits,
  linkReport,
  listCurrencies,
  revokeToken,
  setCurrency,
  setLimit,
  tokens,
} from '../../operations/access.ts';
import { usage } from '../command/arguments.ts';
import { line, print, say } from '../command/command.ts';
import { addOperation, operate } from './operate.ts';

/** `token`, `limit` and `currency`: who may ask, how often, and what the money of the answer is. */
export function addAccountCommands(program: Command): void {
  const token = program.command('token').description('create, list or revoke login tokens, and make links');
  addOperation(token, createToken, ['account'], (given) =>
    operate(
      createToken,
      given,
      ({ token, expires }) => {
        print(token);
        if (expires === null) say('this token never expires; --expires gives it an end');
      },
      { mayBeNew: true },
    ),
  );
  addOperation(token, tokens, ['account'], (given) =>
    operate(tokens, given, (list) => {
      if (given.json) return print(JSON.stringify(list));
      for (const each of list) print(line(Object.values(each)));
    }),
  ).option('--json', 'print JSON');
  addOperation(token, linkReport, ['token', 'address'], (given) =>
    operate(linkReport, given, ({ link }) => {
      const { origin } = new URL(String(given.address), 'http://none');
      print(origin === 'http://none' ? link : origin + link);
    }),
  );
  addOperation(token, revokeToken, ['token'], async (given) => {
    const named = given.token === '-' ? (await text(process.stdin)).trim() : given.token;
    await operate(revokeToken, { ...given, token: named }, ({ revoked }) => {
      for (const id of revoked) say(`token ${id} is revoked`);
      if (given.person !== undefined) say(`${given.person} is signed out everywhere`);
    });
  }).addHelpText('after', '\nThe token - is read from standard input.');
  program
    .command('limit')
    .description("set an account's own request limit, or list those set")
    .argument('[account]', 'advertiser or publisher')
    .option('--requests <n>', 'how many requests it may send per window')
    .option('--default', 'go back to the limit of all accounts')
    .option('--json', 'list as JSON')
    .action(limitRequests);
  program
    .command('currency')
    .description("say which currency an account's money is in, or list those set; nothing is converted")
    .argument('[account]', 'advertiser or publisher')
    .argument('[code]', 'of ISO 4217, such as EUR')
    .option('--unknown', 'the currency is not known any more')
    .option('--json', 'list as JSON')
    .action(nameCurrency);
}

/** `limit`: sets an account's own limit, takes it back, or lists those that are set. */
async function limitRequests(
  account: string | undefined,
  { requests, default: isDefault, json }: { requests?: string; default?: boolean; json?: boolean },
): Promise<void> {
  if (requests !== undefined && isDefault) throw usage('use either --requests N or --default, not both');
  if (requests === undefined && !isDefault) {
    return operate(limits, { account }, (own) => {
      if (json) return print(JSON.stringify(own));
      for (const { account, requests } of own) print(line([account, requests]));
    });
  }
  await operate(
    setLimit,
    { account, requests: requests ?? null },
    ({ account, requests }) => {
      const limit =
        requests === null ? 'has the limit of all accounts' : `may send ${requests} requests per window`;
      say(`${account} ${limit}; services apply it within 5 seconds`);
    },
    { mayBeNew: true },
  );
}

/** `currency`: says what an account's money is, or lists what was said. */
async function nameCurrency(
  account: string | undefined,
  code: string | undefined,
  { unknown: isUnknown, json }: { unknown?: boolean; json?: boolean },
): Promise<void> {
  if (code !== undefined && isUnknown) throw usage('use either a code or --unknown, not both');
  if (code === undefined && !isUnknown) {
    return operate(listCurrencies, { account }, (known) => {
      if (json) return print(JSON.stringify(known));
      for (const { account, currency } of known) print(line([account, currency]));
    });
  }
  await operate(
    setCurrency,
    { account, currency: code ?? null },
    ({ account, currency }) =>
      say(
        `the money of ${account} is ${currency === null ? 'in a currency that is not known' : `in ${currency}`}; services say so within 5 seconds`,
      ),
    { mayBeNew: true },
  );
}
