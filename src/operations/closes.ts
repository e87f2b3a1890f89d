import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import * as z from 'zod';
import { catalog } from '../../catalog/catalog.ts';
import { storeTime } from '../../clickhouse/client.ts';
import { localDay } from '../../clickhouse/local-time.ts';
import { monthName } from '../../clickhouse/months.ts';
import type { Reader } from '../../clickhouse/reader.ts';
import { requireSettings } from '../../clickhouse/settings.ts';
import { inTurn } from '../../ingest/history/in-turn.ts';
import { type AccountMonth, canonicalText, unconfirmedDays } from '../close/canonical-text.ts';
import { closeMonth } from '../close/close-month.ts';
import { type Close, closesOf, manifestText } from '../close/closes.ts';
import { daysOfMonth, type Month, monthNamed } from '../close/month.ts';
import { accountsOf, openRejectsIn, requireSoundMonth, requireWholeMonth } from '../close/unready.ts';
import { withReader } from '../close/with-reader.ts';
import { allShardsOf } from '../report/all-shards.ts';
import { InvalidRequest } from '../report/invalid-request.ts';
import { mediaTypes, waiting } from './history.ts';
import { type Context, type Operation, Rows } from './operation.ts';
import { account, ofAccount } from './values.ts';

/** Months that are kept as they are. */

const monthText = z
  .string('must be a month as yyyy-mm')
  .refine((given) => monthNamed(given) !== undefined, 'must be a month as yyyy-mm')
  .meta({ title: 'month', description: 'the month, yyyy-mm' });
const toClose = z
  .strictObject({
    month: monthText,
    account: account('close the month of this account').optional(),
    all: z
      .boolean('must be true or false')
      .default(false)
      .describe('close it of every account that has rows in the month'),
    anyway: z
      .boolean('must be true or false')
      .default(false)
      .describe('although days are unconfirmed, rejected rows are open or the month has not ended'),
  })
  .refine(({ account, all }) => (account !== undefined) !== all, {
    path: ['account'],
    message: 'is required, or all, and one of them alone',
  });

const close = z.strictObject({
  account: z.string(),
  month: z.string(),
  revision: z.string().describe('The sha256 of its rows.'),
  previous: z.string().describe('The revision that was closed before it; empty: none was.'),
  closed_at: z.iso.datetime(),
  rows: z.int(),
  unconfirmed: z
    .array(z.strictObject({ family: z.string(), day: z.iso.date() }))
    .describe('Days that were unconfirmed then.'),
  open_rejects: z.int().describe('Rejected rows that were open then and may have been of the month.'),
});
const outcome = z.strictObject({
  closed: z.array(
    close.extend({
      before: z.boolean().describe('It was closed before with the same rows: nothing is new.'),
    }),
  ),
  unready: z
    .array(z.strictObject({ account: z.string(), month: z.string(), reasons: z.array(z.string()) }))
    .describe('What was not closed, and why.'),
});

export const closeMonths: Operation<typeof toClose, z.infer<typeof outcome>> = {
  name: 'close',
  summary: 'keep the figures and names of a month as they are: reports with as_of answer from them for ever',
  input: toClose,
  answer: outcome,
  changes: 'something',
  async run(context, { month: name, account, anyway }) {
    const month = monthNamed(name) ?? 0;
    const file = `close ${account ?? 'all accounts'} ${name}`;
    return inTurn(context.store, file, new Date(), waiting(context), async (load) => {
      await requireSoundMonth(context.store, catalog, month, account);
      const having = await accountsOf(context.store, catalog, month);
      if (account !== undefined && !having.includes(account))
        throw new InvalidRequest('account', `${account} has no rows in ${name}: there is nothing to close`);
      return withReader(context.store, (reader) =>
        closeEach(context, reader, account === undefined ? having : [account], month, {
          anyway,
          beforeLast: async () => {
            load.assertTurnHeld();
            await requireWholeMonth(context.store, catalog, month);
          },
        }),
      );
    });
  },
  recordedAnswer: ({ closed, unready }) => ({
    closed: closed.flatMap(({ before, account, revision }) => (before ? [] : { account, revision })),
    unready,
  }),
};

/** All others are closed where an account is not ready. */
async function closeEach(
  { store, signingKey }: Context,
  reader: Reader,
  accounts: readonly string[],
  month: Month,
  { anyway, beforeLast }: { readonly anyway: boolean; readonly beforeLast: () => void | Promise<void> },
): Promise<z.infer<typeof outcome>> {
  const { timezone } = await requireSettings(store);
  const today = localDay(new Date(`${await storeTime(store)}Z`), timezone);
  const hasEnded = today > daysOfMonth(month).end;
  const rejectsOf = await openRejectsIn(store, month);
  const routing = await allShardsOf(store);
  const done: z.infer<typeof outcome> = { closed: [], unready: [] };
  for (const account of accounts) {
    const which: AccountMonth = { account, month, routing };
    const openRejects = rejectsOf(account);
    const unconfirmed = await unconfirmedDays(reader, catalog, which);
    const days = daysOf(unconfirmed);
    const reasons = [
      ...(hasEnded ? [] : ['the month has not ended']),
      ...(days > 0 ? [`${days} ${days === 1 ? 'day' : 'days'} unconfirmed`] : []),
      ...(openRejects > 0
        ? [`${openRejects} rejected ${openRejects === 1 ? 'row' : 'rows'} open that may be of it`]
        : []),
    ];
    const isUnready = (reasons: string[]) => done.unready.push({ account, month: monthName(month), reasons });
    if (reasons.length > 0 && !anyway) {
      isUnready(reasons);
      continue;
    }
    const options = { unconfirmed, openRejects, timezone, key: signingKey, beforeLast };
    const closed = await closeMonth(store, reader, catalog, which, options);
    if (closed) done.closed.push({ ...told(closed), before: closed.before });
    else isUnready(['its names were loaded meanwhile: close it again']);
  }
  return done;
}

/** How many days these are: one may be unconfirmed in both families. */
export const daysOf = (unconfirmed: Close['unconfirmed']): number =>
  new Set(unconfirmed.map(({ day }) => day)).size;

const told = ({ month, closed_at, unconfirmed, ...more }: Close): z.infer<typeof close> => ({
  ...more,
  month: monthName(month),
  closed_at: `${closed_at.replace(' ', 'T')}Z`,
  unconfirmed: [...unconfirmed],
});

export const closes: Operation<typeof ofAccount, z.infer<typeof close>[]> = {
  name: 'closes',
  summary: 'list what was closed, newest first',
  input: ofAccount,
  answer: z.array(close),
  changes: 'nothing',
  async run({ store }, { account }) {
    return (await closesOf(store, account === undefined ? {} : { account })).map(told);
  },
};

const ofRevision = z.strictObject({
  revision: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be a revision: 64 hex digits')
    .describe('its name in the list of closes'),
});
const unknown = (revision: string) =>
  new InvalidRequest('revision', `${revision} is not in the list of closes`);

export const closedRows: Operation<typeof ofRevision, Rows> = {
  name: 'closes rows',
  summary: 'print the rows of a revision as NDJSON: its sha256 is the name of the revision',
  input: ofRevision,
  changes: 'nothing',
  async run({ store }, { revision }) {
    const [close] = await closesOf(store, { revision });
    if (!close) throw unknown(revision);
    const routing = await allShardsOf(store);
    return new Rows(mediaTypes.ndjson, (out) =>
      withReader(store, (reader) => {
        const text = canonicalText(reader, catalog, { ...close, routing }, close.unconfirmed);
        return pipeline(Readable.from(text), out, { end: false });
      }),
    );
  },
};

export const manifest: Operation<typeof ofRevision, Rows> = {
  name: 'closes manifest',
  summary: 'print what the last close with a revision says of itself: its sums and loads, and who signed it',
  input: ofRevision,
  changes: 'nothing',
  async run({ store }, { revision }) {
    const text = await manifestText(store, { revision });
    if (text === undefined) throw unknown(revision);
    return new Rows(mediaTypes.ndjson, async (out) => void out.write(text));
  },
};
