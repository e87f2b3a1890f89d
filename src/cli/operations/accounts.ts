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
import { print, say } from '../command/command.ts';
import { addList, addOperation, operate } from './operate.ts';

/** `token`, `limit` and `currency`: who may ask, how often, and what the money of the answer is. */
export function addAccountCommands(program: Command): void {
  const token = program.command('token').description('create, list or revoke login tokens, and make links');
  addOperation(token, createToken, ['account'], (given) =>
    operate(
      createToken,
      given,
      async ({ id, token, expires }) => {
        await new Promise<void>((resolve) =>
          process.stdout.write(`${token}\n`, (error) => {
            if (error) say(`nobody has the token now: adtally token revoke ${id}`);
            resolve();
          }),
        );
        if (expires === null) say('this token never expires; --expires gives it an end');
      },
      { mayBeNew: true },
    ),
  );
  addList(token, tokens);
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
  const limit = program
    .command('limit')
    .description('set the request limit of an account, or list those set');
  addOperation(limit, setLimit, ['account', 'requests'], (given) =>
    operate(
      setLimit,
      given,
      ({ account, requests }) => {
        const own =
          requests === null ? 'has the limit of all accounts' : `may send ${requests} requests per window`;
        say(`${account} ${own}; services apply it within 5 seconds`);
      },
      { mayBeNew: true },
    ),
  );
  addList(limit, limits);
  const currency = program
    .command('currency')
    .description('say which currency the money of an account is in, or list those set');
  addOperation(currency, setCurrency, ['account', 'currency'], (given) =>
    operate(
      setCurrency,
      given,
      ({ account, currency }) =>
        say(
          `the money of ${account} is ${currency === null ? 'in a currency that is not known' : `in ${currency}`}; services say so within 5 seconds`,
        ),
      { mayBeNew: true },
    ),
  );
  addList(currency, listCurrencies);
}
