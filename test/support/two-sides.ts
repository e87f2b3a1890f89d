import { catalog } from '../../catalog/catalog.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { plainReading } from '../../ingest/event/reading.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import type { Status } from '../../src/reconcile/model/about.ts';
import { reconcile } from '../../src/reconcile/reconcile.ts';
import { compileRows, countRows, type RowCounts } from '../../src/reconcile/rows.ts';
import { readTheirs } from '../../src/reconcile/their-rows.ts';
import { type Verdict, verdictOf } from '../../src/reconcile/verdict.ts';
import { allShardsOf } from '../../src/report/all-shards.ts';
import { withFile } from './events.ts';
import { micros } from './oracle.ts';
import type { TestStore } from './store.ts';

const figures = ['impressions', 'conversions', 'referrals', 'spent'] as const;
type Figure = (typeof figures)[number];

/** What happened at a time in a campaign; money in millionths. */
export interface Happened extends Record<Figure, number> {
  readonly at: Date;
  readonly campaign: string;
  /** Which load brings it. */
  readonly load: number;
}

/** A row of their report; money in millionths. */
export interface TheirRow extends Record<Figure, number> {
  readonly day: string;
  readonly campaign: string;
}

const money = (amount: number): string => {
  const digits = `${Math.abs(amount)}`.padStart(7, '0');
  return `${amount < 0 ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
};

/** An hour of each campaign on days from 2026-03-01 on, spread over loads by `loadOf`. */
export function hours(
  random: () => number,
  days: number,
  campaigns: readonly string[],
  loadOf: (day: number, campaign: number) => number,
): Happened[] {
  const upTo = (most: number) => Math.floor(random() * most);
  const all: Happened[] = [];
  for (let day = 0; day < days; day++)
    for (const [n, campaign] of campaigns.entries())
      for (let hour = 0; hour < 24; hour += 1 + upTo(2)) {
        const impressions = 100 + upTo(900);
        all.push({
          at: new Date(Date.UTC(2026, 2, 1 + day, hour, upTo(60))),
          campaign,
          load: loadOf(day, n),
          impressions,
          conversions: upTo(4),
          referrals: upTo(40),
          spent: upTo(4_000_000),
        });
      }
  return all;
}

/** Loads what happened for an account, a load after the other. */
export async function loadHappened(db: TestStore, account: string, all: readonly Happened[]): Promise<void> {
  for (const load of [...new Set(all.map((each) => each.load))].sort((a, b) => a - b)) {
    const lines = all
      .filter((each) => each.load === load)
      .map(({ at, campaign, impressions, conversions, referrals, spent }) =>
        JSON.stringify({
          ...{ event_time: at.toISOString(), advertiser_id: account, campaign_id: campaign },
          ...{ impressions, conversions, referrals, spend: money(spent) },
        }),
      );
    await withFile(`feed-${load}.ndjson`, `${lines.join('\n')}\n`, (file) =>
      loadEvents({ store: db.store, input: new LocalFile(file), now: () => new Date() }),
    );
  }
}

/** What they would report: by day of their clock and campaign. @param offset hours */
export function reported(all: readonly Happened[], offset = 0): TheirRow[] {
  const rows = new Map<string, TheirRow>();
  for (const { at, campaign, ...each } of all) {
    const day = new Date(at.getTime() + offset * 3_600_000).toISOString().slice(0, 10);
    const row = rows.get(`${day} ${campaign}`) ?? { day, campaign, ...zeros };
    for (const figure of figures) row[figure] += each[figure];
    rows.set(`${day} ${campaign}`, row);
  }
  return [...rows.values()];
}

const zeros = { impressions: 0, conversions: 0, referrals: 0, spent: 0 };

export interface Outcome {
  readonly verdict: Verdict;
  readonly causes: readonly string[];
  /** Those that are listed. */
  readonly rows: readonly Row[];
}

/** Compares their report with what the store has, and checks that all parts of the gap, and its rows, add up to it. */
export async function compare(
  db: TestStore,
  account: string,
  theirs: readonly TheirRow[],
  {
    first,
    last,
    timezone = 'UTC',
  }: { readonly first: string; readonly last: string; readonly timezone?: string },
): Promise<Outcome> {
  const rowsOfDays = theirs.filter(({ day }) => day >= first && day <= last);
  const lines = rowsOfDays.map(({ day, campaign, impressions, conversions, referrals, spent }) =>
    [day, account, campaign, impressions, conversions, referrals, money(spent)].join(','),
  );
  const header = 'event_time,advertiser_id,campaign_id,impressions,conversions,referrals,spend';
  const reader = new Reader(db.address, 60_000);
  try {
    return await withFile('theirs.csv', `${[header, ...lines].join('\n')}\n`, async (file) => {
      const report = await readTheirs(reader, catalog, 'campaigns', {
        input: new LocalFile(file),
        reading: plainReading(file),
        judge: { reportTimezone: timezone, timezone, roundMoney: false, requireEventId: false },
      });
      const routing = await allShardsOf(db.store);
      const used = figures.map(() => true);
      const compared = {
        reader,
        catalog,
        family: 'campaigns',
        account,
        timezone,
        routing,
        namesFiles: true,
        first,
        last,
        used,
      };
      const reconciled = await reconcile(compared, report);
      const verdict = verdictOf(reconciled);
      const rows = await reader.rows<Row>(compileRows(reconciled, '0'));
      requireSums(verdict, rows);
      requireCounts(await countRows(reconciled, '0'), rows);
      for (const figure of figures) {
        const sum = rowsOfDays.reduce((all, row) => all + row[figure], 0);
        const text = verdict.figures[figure]?.theirs;
        if (micros(text) !== micros(figure === 'spent' ? money(sum) : `${sum}`))
          throw new Error(`theirs has ${figure} ${text}, not ${sum}`);
      }
      return {
        ...{ verdict, rows },
        causes: verdict.explained.map(({ cause }) => cause),
      };
    });
  } finally {
    reader.close();
  }
}

type Row = Record<Figure, Record<'ours' | 'theirs' | 'difference' | 'unexplained', string>> & {
  readonly day: string;
  readonly campaign_id: string;
  readonly status: Status;
};

/** What is explained and what is not is the gap, and both are what the rows add up to, to the last digit. */
function requireSums({ figures: told, explained }: Verdict, rows: readonly Row[]) {
  for (const figure of figures) {
    const { gap, unexplained } = told[figure] ?? {};
    for (const kind of ['net', 'total'] as const) {
      const parts = [...explained.map((each) => each.figures[figure]?.[kind]), unexplained?.[kind]];
      const sum = parts.reduce((all, part) => all + micros(part ?? '?'), 0n);
      if (sum !== micros(gap?.[kind] ?? '?'))
        throw new Error(`${figure}: ${parts.join(' + ')} is not the ${kind} gap ${gap?.[kind]}`);
      const size = (amount: bigint) => (kind === 'total' && amount < 0n ? -amount : amount);
      for (const [member, whole] of [
        ['difference', gap],
        ['unexplained', unexplained],
      ] as const) {
        const ofRows = rows.reduce((all, row) => all + size(micros(row[figure][member])), 0n);
        if (ofRows !== micros(whole?.[kind] ?? '?'))
          throw new Error(`${figure}: rows have ${member} ${ofRows}, not ${whole?.[kind]}`);
      }
    }
  }
}

/** As many rows are listed as are counted, in all and of each status. */
function requireCounts({ of, listed }: RowCounts, rows: readonly Row[]) {
  if (listed !== rows.length) throw new Error(`${rows.length} rows are listed, not ${listed}`);
  for (const status of ['within', 'differs', 'only_ours', 'only_theirs'] as const) {
    const found = rows.filter((row) => row.status === status).length;
    if (found !== of[status]) throw new Error(`${found} rows are ${status}, not ${of[status]}`);
  }
}
