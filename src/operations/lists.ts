import * as z from 'zod';
import { inOneVersion } from '../../ingest/input/one-version.ts';
import { confirmDays, confirmList, isKnownAccount } from '../../ingest/lists/confirmations.ts';
import { loadLookupList, lookupLists } from '../../ingest/lists/lookup-lists.ts';
import type { FileOperation, Operation } from './operation.ts';
import { account, eventDay } from './values.ts';

/** Names, and days whose money is final. */

const nothing = z.strictObject({});
const loaded = z.strictObject({ lines: z.int() });

const names = (name: Exclude<keyof typeof lookupLists, 'confirmations'>) => {
  const list = lookupLists[name];
  return {
    name: `ingest ${name}`,
    summary: `load ${name}: ${list.columns.join(', ')}`,
    file: list.columns.join(','),
    input: nothing,
    answer: loaded,
    changes: 'reports',
    async run({ store }, _, { input, ...reading }) {
      return { lines: await inOneVersion(input, () => loadLookupList(store, list, input, reading)) };
    },
  } satisfies FileOperation<typeof nothing, z.infer<typeof loaded>>;
};

const confirmed = z.strictObject({
  days: z.int(),
  changed: z.int().describe('So many of these days were unconfirmed, and this has made them confirmed.'),
  running: z
    .string()
    .optional()
    .describe(
      'A load that was running: what it loads is not confirmed by this. Confirm again when it has ended.',
    ),
});

const confirmations: FileOperation<typeof nothing, z.infer<typeof confirmed>> = {
  name: 'ingest confirmations',
  summary: `load confirmations: ${lookupLists.confirmations.columns.join(', ')}`,
  file: lookupLists.confirmations.columns.join(','),
  input: nothing,
  answer: confirmed,
  changes: 'reports',
  async run({ store }, _, { input, ...reading }) {
    return inOneVersion(input, () => confirmList(store, input, reading));
  },
};

/** Lists that are loaded from a file, by name. */
export const lists = {
  campaigns: names('campaigns'),
  creatives: names('creatives'),
  ad_units: names('ad_units'),
  sites: names('sites'),
  confirmations,
} satisfies Record<keyof typeof lookupLists, FileOperation>;

const days = z
  .strictObject({
    account: account(),
    from: eventDay('first day, yyyy-mm-dd'),
    to: eventDay('last day, yyyy-mm-dd'),
  })
  .refine(({ from, to }) => from <= to, { path: ['to'], message: 'must not be before the first day' });
const accountConfirmed = confirmed.extend({
  known: z.boolean().describe('Whether there is any event of the account. If not, its id may be misspelled.'),
});

export const confirm: Operation<typeof days, z.infer<typeof accountConfirmed>> = {
  name: 'confirm',
  summary: "declare an account's revenue for a range of days confirmed",
  input: days,
  answer: accountConfirmed,
  changes: 'reports',
  async run({ store }, { account, from, to }) {
    const done = await confirmDays(store, account, from, to);
    return { ...done, known: done.changed > 0 || (await isKnownAccount(store, account)) };
  },
};
