import type { Command } from 'commander';
import { catalog } from '../../../catalog/catalog.ts';
import type { Store } from '../../../clickhouse/client.ts';
import { Reader } from '../../../clickhouse/reader.ts';
import { requireSettings } from '../../../clickhouse/settings.ts';
import { canonicalText, unconfirmedDays } from '../../close/canonical-text.ts';
import { type Closed, closeMonth } from '../../close/close-month.ts';
import { type Close, closesOf } from '../../close/closes.ts';
import { daysOfMonth, type Month, monthName, monthNamed } from '../../close/month.ts';
import { accountsOf, openRejectsOf, requireSoundMonth } from '../../close/unready.ts';
import { routingOf } from '../../close/verify-closes.ts';
import { accountId, usage } from '../command/arguments.ts';
import { config, counted, line, print, say, withStore } from '../command/command.ts';
import { exclusively } from './exclusively.ts';

export interface CloseFlags {
  readonly all?: boolean;
  /** Also a month that has not ended, with unconfirmed days or open rejected rows. */
  readonly anyway?: boolean;
  readonly json?: boolean;
}

/** `close`, and `closes` with what was closed. */
export function addCloseCommands(program: Command): void {
  program
    .command('close')
    .description(
      'keep the figures and names of a month as they are: reports with as_of answer from them for ever',
    )
    .argument('<what...>', 'ACCOUNT and month, yyyy-mm; with --all the month alone')
    .option('--all', 'of every account that has rows in the month')
    .option('--anyway', 'although days are unconfirmed, rejected rows are open or the month has not ended')
    .option('--json', 'print JSON')
    .action((what: string[], flags: CloseFlags) => {
      const { account, month } = named(what, flags.all ?? false);
      return withStore((store) => close(store, month, account, flags, new Date()));
    });
  const closes = program
    .command('closes')
    .description('list what was closed, newest first')
    .argument('[account]', 'only of this account', accountId)
    .option('--json', 'print JSON')
    .action((account: string | undefined, { json = false }: CloseFlags) =>
      withStore(async (store) => list(await closesOf(store, account === undefined ? {} : { account }), json)),
    );
  closes
    .command('rows')
    .description('print the rows of a revision as NDJSON: its sha256 is the name of the revision')
    .argument('<revision>', 'as closes lists it')
    .action((revision: string) => withStore((store) => writeRows(store, revision)));
}

function named(what: readonly string[], all: boolean): { account?: string; month: Month } {
  const month = monthNamed(what.at(-1) ?? '');
  if (what.length !== (all ? 1 : 2)) {
    throw usage(all ? '--all takes the month alone' : 'give an account and a month, or --all and a month');
  }
  if (month === undefined) throw usage(`${what.at(-1)} is no month: give one as yyyy-mm`);
  return all ? { month } : { account: accountId(what[0] ?? ''), month };
}

/**
 * Closes a month of one account or of all. All others are closed where an account is not ready.
 * @throws when the month is not sound, before anything was closed; when an account was not ready, after the others were closed
 */
export async function close(
  store: Store,
  month: Month,
  account: string | undefined,
  { anyway = false, json = false }: CloseFlags,
  now: Date,
): Promise<void> {
  const name = monthName(month);
  const { timezone } = await requireSettings(store);
  const routing = await routingOf(store);
  const unready: string[] = [];
  const closed: Closed[] = [];
  await withReader(store, (reader) =>
    exclusively(store, 'close', `close ${account ?? 'all accounts'} ${name}`, async (load) => {
      await requireSoundMonth(store, catalog, month, account);
      const having = await accountsOf(store, catalog, month);
      if (account !== undefined && !having.includes(account)) {
        throw new Error(`${account} has no rows in ${name}: there is nothing to close`);
      }
      for (const each of account === undefined ? having : [account]) {
        const which = { account: each, month, routing };
        const openRejects = await openRejectsOf(store, { account: each, month, timezone });
        const unconfirmed = await unconfirmedDays(reader, catalog, which);
        const days = new Set(unconfirmed.map(({ day }) => day)).size;
        const reasons = [
          ...(isOver(month, now, timezone) ? [] : ['the month has not ended']),
          ...(days > 0 ? [`${counted(days, 'day')} unconfirmed`] : []),
          ...(openRejects > 0 ? [`${counted(openRejects, 'rejected row')} open that may be of it`] : []),
        ];
        if (reasons.length > 0 && !anyway)
          unready.push(`${each} ${name} is not closed: ${reasons.join(', ')}`);
        else {
          const beforeLast = () => load.assertTurnHeld();
          closed.push(
            await closeMonth(store, reader, catalog, which, { unconfirmed, openRejects, beforeLast }),
          );
        }
      }
    }),
  );
  if (json) print(JSON.stringify(closed.map(told)));
  else {
    for (const { before, ...each } of closed) {
      say(
        before
          ? `${each.account} ${name} is closed with these rows since ${each.closed_at} UTC`
          : `closed ${each.account} ${name}: ${counted(each.rows, 'row')}`,
      );
      print(each.revision);
    }
  }
  if (unready.length > 0)
    throw new Error([...unready, '--anyway closes it, and keeps that in mind'].join('\n'));
}

/** By the clock of the account's days. */
function isOver(month: Month, now: Date, timeZone: string): boolean {
  const today = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' }).format(now);
  return today > daysOfMonth(month).end;
}

const told = <Told extends Close>({ month, closed_at, ...more }: Told) => ({
  ...more,
  month: monthName(month),
  closed_at: `${closed_at.replace(' ', 'T')}Z`,
});

function list(closes: readonly Close[], json: boolean): void {
  if (json) {
    print(JSON.stringify(closes.map(told)));
    return;
  }
  for (const { account, month, closed_at, rows, unconfirmed, open_rejects, revision } of closes) {
    const left = [
      ...(unconfirmed.length > 0 ? [`${counted(unconfirmed.length, 'day')} unconfirmed`] : []),
      ...(open_rejects > 0 ? [`${counted(open_rejects, 'rejected row')} open`] : []),
    ];
    print(
      line([
        account,
        monthName(month),
        `${closed_at.slice(0, 19)} UTC`,
        counted(rows, 'row'),
        left.join(', '),
        revision,
      ]),
    );
  }
}

async function writeRows(store: Store, revision: string): Promise<void> {
  const [close] = await closesOf(store, { revision });
  if (!close) throw new Error(`there is no revision ${revision}: adtally closes lists them`);
  const routing = await routingOf(store);
  await withReader(store, async (reader) => {
    const text = canonicalText(reader, catalog, { ...close, routing }, close.unconfirmed);
    for await (const bytes of text) {
      if (!process.stdout.write(bytes)) await new Promise((resolve) => process.stdout.once('drain', resolve));
    }
  });
}

/** A reader of this store while `work` runs. */
export async function withReader<T>(store: Store, work: (reader: Reader) => Promise<T>): Promise<T> {
  const reader = new Reader(store.address, config().reportTimeoutSeconds * 1000);
  try {
    return await work(reader);
  } finally {
    reader.close();
  }
}
