import * as z from 'zod';
import { catalog } from '../../catalog/catalog.ts';
import { currencies, requestLimits } from '../accounts/own-settings.ts';
import { signOutEverywhere } from '../accounts/sign-outs.ts';
import { issueToken, listTokens, purposeOf, revokeTokens, tokenPurposes } from '../accounts/tokens.ts';
import { ConfigError } from '../config/config.ts';
import { InvalidRequest } from '../report/invalid-request.ts';
import { listSchedules, tokenOf } from '../schedules/schedules.ts';
import type { Operation } from './operation.ts';
import { account, instant, ofAccount, text, wholeNumber } from './values.ts';

const families = Object.keys(catalog.families);
const tokenId = z
  .string()
  .regex(/^[0-9A-Za-z]{1,16}$/, 'must be an id of the list of tokens')
  .describe('its id in the list');

/** Who may ask, how often, and what currency the answer is in. */

const newToken = z
  .strictObject({
    account: account(
      'the account whose reports it opens; of ingest and operator the name of the program, which logs show',
    ),
    for: z
      .enum(tokenPurposes, `must be one of ${tokenPurposes.join(', ')}`)
      .default('report')
      .describe(
        'ingest sends events to adtally receive, operator runs operations there; neither opens a report',
      )
      .meta({ title: 'purpose' }),
    family: z
      .enum(families, `must be one of ${families.join(', ')}`)
      .optional()
      .describe('open only these reports of the account'),
    expires: instant('when it expires, yyyy-mm-dd or ISO 8601; never if absent').optional(),
    label: z
      .string()
      .max(1000, 'must have at most 1000 characters')
      .default('')
      .describe('what it is for')
      .meta({ title: 'text' }),
  })
  .refine(({ family, for: purpose }) => family === undefined || purpose === 'report', {
    path: ['family'],
    message: 'is for tokens that open reports',
  });

const issued = z.strictObject({
  id: z.string().describe('Its id in the list.'),
  token: z.string().describe('The token itself. It cannot be shown again.'),
  expires: z.iso.datetime().nullable(),
});

function requireFuture(expires: Date | undefined): void {
  if (expires && expires.getTime() <= Date.now())
    throw new InvalidRequest('expires', 'must be in the future: it would have expired already');
}

export const createToken: Operation<typeof newToken, z.infer<typeof issued>> = {
  name: 'token create',
  summary: 'create a token; it cannot be shown again',
  input: newToken,
  answer: issued,
  changes: 'something',
  async run({ store, by }, { for: purpose, ...given }) {
    // One that was stolen must not live on in others.
    if (purpose === 'operator' && by.token !== undefined) {
      throw new InvalidRequest('for', 'must not be operator: the command line alone makes such tokens');
    }
    requireFuture(given.expires);
    const { id, token } = await issueToken(store, { ...given, purpose });
    return { id, token, expires: given.expires?.toISOString() ?? null };
  },
  recordedAnswer: ({ id }) => ({ id }),
};

const stored = z.strictObject({
  id: z.string(),
  account: z.string(),
  label: z.string(),
  created: z.iso.datetime(),
  expires: z.iso.datetime().nullable(),
  revoked: z.iso.datetime().nullable(),
  family: z.enum(families).nullable(),
  purpose: z.enum(tokenPurposes),
});

export const tokens: Operation<typeof ofAccount, z.infer<typeof stored>[]> = {
  name: 'token list',
  summary: 'list tokens: id, account, label, created, expires, revoked, family, purpose',
  input: ofAccount,
  answer: z.array(stored),
  changes: 'nothing',
  async run({ store }, { account: only }) {
    const found = await listTokens(store, only === undefined ? {} : { account: only });
    return found.map(({ id, account, label, created, expires, revoked, family, purpose }) => ({
      id,
      account,
      label,
      created,
      expires,
      revoked,
      family,
      purpose,
    }));
  },
};

const choice = z
  .strictObject({
    token: z
      .string()
      .refine((given) => tokenId.safeParse(given).success || purposeOf(given) !== undefined, {
        message: 'is no id of the list of tokens and no whole token, or is mistyped',
      })
      .optional()
      .describe('its id in the list, or the token itself'),
    account: account('all tokens of this account').optional(),
    person: text(
      255,
      'the sessions of this person, as the log of the service names them; no token',
    ).optional(),
  })
  .refine((given) => Object.values(given).filter((each) => each !== undefined).length === 1, {
    path: ['token'],
    message: 'is required, or account, or person, and one of them alone',
  });
const revoked = z.strictObject({
  revoked: z.array(z.string()).describe('The ids of the tokens; none if it was a person.'),
});

export const revokeToken: Operation<typeof choice, z.infer<typeof revoked>> = {
  name: 'token revoke',
  summary: 'revoke a token, or all of an account, or end the sessions of a person; holds within 5 seconds',
  input: choice,
  answer: revoked,
  changes: 'something',
  async run({ store }, { token = '', account, person }) {
    if (person !== undefined) {
      await signOutEverywhere(store, person);
      return { revoked: [] };
    }
    const isWhole = purposeOf(token) !== undefined;
    const chosen = account !== undefined ? { account } : isWhole ? { token } : { id: token };
    const ids = await revokeTokens(store, chosen);
    if (account !== undefined) {
      // A schedule that has sent nothing has no token yet, and would get one with its first mail. So it gets one now, which ends.
      const goOn = (await listSchedules(store, account)).filter(({ state }) => state !== 'ended');
      for (const schedule of goOn) {
        const opens = await tokenOf(store, schedule);
        if (!opens) throw new Error(`the token ${schedule.token} of schedule ${schedule.id} is not there`);
        ids.push(...(await revokeTokens(store, { id: opens.id })));
      }
    }
    if (ids.length > 0) return { revoked: ids };
    if (account !== undefined) throw new InvalidRequest('account', `${account} has no token`);
    throw new InvalidRequest('token', `${isWhole ? '' : `${token} `}is not in the list of tokens`);
  },
  recordedInput: ({ token, ...rest }) =>
    token === undefined || purposeOf(token) !== undefined ? rest : { token },
};

const linked = z.strictObject({
  token: tokenId,
  address: text(8000, 'path and parameters of an export'),
  expires: instant('when it expires, yyyy-mm-dd or ISO 8601; in a week unless given').optional(),
});
const link = z.strictObject({
  link: z.string().describe('To be put behind the address of the service of reports.'),
  expires: z.iso.datetime(),
});

export const linkReport: Operation<typeof linked, z.infer<typeof link>> = {
  name: 'token link',
  summary: 'make a link to one report, for whoever has no token; it ends with the token that makes it',
  input: linked,
  answer: link,
  changes: 'something',
  async run({ store, links }, { token: id, address, expires }) {
    requireFuture(expires);
    const [token] = await listTokens(store, { id });
    const hasExpired = token?.expires != null && Date.parse(token.expires) <= Date.now();
    if (token?.purpose !== 'report' || token.revoked !== null || hasExpired) {
      throw new InvalidRequest('token', `${id} is no valid token that opens reports`);
    }
    const { linkOf } = await import('../http/export/link-of.ts');
    const made = linkOf({ links, catalog }, token, address, expires);
    const { pathname } = new URL(address, 'http://none');
    if (token.family && !pathname.startsWith(`/v1/export/${token.family}`)) {
      throw new InvalidRequest(
        'address',
        `must be one of ${token.family}: token ${id} opens no other reports`,
      );
    }
    if (made === undefined) throw new ConfigError('LINK_SECRET: is needed to make links');
    return { link: made.link, expires: made.expires.toISOString() };
  },
  // Whoever has an address with a link in it has its report.
  recordedInput: ({ address, ...rest }) => ({
    ...rest,
    report: URL.canParse(address, 'http://none') ? new URL(address, 'http://none').pathname : '',
  }),
  recordedAnswer: ({ expires }) => ({ expires }),
};

const limit = z.strictObject({
  account: account(),
  requests: wholeNumber('how many requests it may send per window; null: as many as all others').nullable(),
});
const ownLimit = z.strictObject({ account: z.string(), requests: z.int() });

export const setLimit: Operation<typeof limit, z.infer<typeof limit>> = {
  name: 'limit set',
  summary: "set an account's own request limit, or take it away; services apply it within 5 seconds",
  input: limit,
  answer: limit,
  changes: 'something',
  async run({ store }, { account, requests }) {
    await requestLimits.set(store, account, requests);
    return { account, requests };
  },
};

export const limits: Operation<typeof ofAccount, z.infer<typeof ownLimit>[]> = {
  name: 'limit list',
  summary: 'list the request limits that accounts have of their own',
  input: ofAccount,
  answer: z.array(ownLimit),
  changes: 'nothing',
  async run({ store }, { account: only }) {
    return (await requestLimits.list(store)).flatMap(({ account, value: requests }) =>
      requests !== null && (only ?? account) === account ? [{ account, requests }] : [],
    );
  },
};

const code = z
  .string()
  .regex(/^[A-Z]{3}$/, 'must be a code of ISO 4217, such as EUR')
  .describe('a code of ISO 4217; null: the currency is not known')
  .meta({ title: 'code' });
const currency = z.strictObject({ account: account(), currency: code.nullable() });
const ownCurrency = z.strictObject({ account: z.string(), currency: z.string() });

export const setCurrency: Operation<typeof currency, z.infer<typeof currency>> = {
  name: 'currency set',
  summary: "say which currency an account's money is in, or that it is not known; nothing is converted",
  input: currency,
  answer: currency,
  changes: 'something',
  async run({ store }, { account, currency }) {
    await currencies.set(store, account, currency);
    return { account, currency };
  },
};

export const listCurrencies: Operation<typeof ofAccount, z.infer<typeof ownCurrency>[]> = {
  name: 'currency list',
  summary: 'list the currencies of accounts',
  input: ofAccount,
  answer: z.array(ownCurrency),
  changes: 'nothing',
  async run({ store }, { account: only }) {
    return (await currencies.list(store)).flatMap(({ account, value: currency }) =>
      currency !== null && (only ?? account) === account ? [{ account, currency }] : [],
    );
  },
};
