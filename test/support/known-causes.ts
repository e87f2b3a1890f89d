import { seededRandom } from './random.ts';
import { type Happened, hours, reported, type TheirRow } from './two-sides.ts';

/** Their report is of these days; ours has a day more on either side. */
export const days = { first: '2026-03-02', last: '2026-03-11' };

const campaigns = ['alpha', 'beta', 'gamma', 'delta'];
const random = seededRandom(38);
const feeds = hours(random, 12, campaigns, (day, n) => (n < 2 ? 0 : day < 6 ? 1 : 2));
const late = hours(random, 12, campaigns, () => 3)
  .filter((_, n) => n % 9 === 0)
  .map((each) => ({ ...each, impressions: 0, referrals: 0, spent: 0, conversions: 1 + each.conversions }));
const fixes = hours(random, 12, campaigns, () => 4).filter((_, n) => n % 20 === 0);
/** What both sides counted: feeds in loads 0 to 2, late conversions in 3, corrections in 4. */
export const all: readonly Happened[] = [...feeds, ...late, ...fixes];

interface Side {
  readonly events: readonly Happened[];
  /** Hours. */
  readonly offset: number;
  readonly rows: (rows: readonly TheirRow[]) => readonly TheirRow[];
}

const same: Side = { events: all, offset: 0, rows: (rows) => rows };
const lacks =
  (...loads: number[]) =>
  (side: Side): Side => ({ ...side, events: side.events.filter(({ load }) => !loads.includes(load)) });
const changes =
  (change: (row: TheirRow) => TheirRow | undefined) =>
  (side: Side): Side => ({ ...side, rows: (rows) => side.rows(rows).flatMap((row) => change(row) ?? []) });
const doubled = ({ impressions, conversions, referrals, spent, ...row }: TheirRow): TheirRow => ({
  ...row,
  impressions: 2 * impressions,
  conversions: 2 * conversions,
  referrals: 2 * referrals,
  spent: 2 * spent,
});

/** What is done to their side, and what is said of it. */
export const causes = {
  time_zone: {
    does: (side: Side): Side => ({ ...side, offset: -5 }),
    what: /^their days are those of UTC-05:00, ours of UTC$/,
  },
  missing_day: {
    does: changes((row) => (row.day === '2026-03-05' ? undefined : row)),
    what: /^their report has nothing of 2026-03-05$/,
  },
  doubled_day: {
    does: changes((row) => (row.day === '2026-03-07' ? doubled(row) : row)),
    what: /^their report counts 2026-03-07 twice$/,
  },
  other_name: {
    does: changes((row) => (row.campaign === 'beta' ? { ...row, campaign: '4711' } : row)),
    what: /^their 4711 is beta of ours$/,
  },
  missing_load: { does: lacks(1), what: /^their report lacks load \S+ \(.*feed-1\.ndjson\)$/ },
  doubled_load: {
    does: (side: Side): Side => ({
      ...side,
      events: [...side.events, ...side.events.filter(({ load }) => load === 2)],
    }),
    what: /^their report counts twice load \S+ \(.*feed-2\.ndjson\)$/,
  },
  late_conversions: {
    does: (side: Side): Side => ({
      ...side,
      events: side.events.map((each) => (each.load < 3 ? each : { ...each, conversions: 0 })),
    }),
    what: /^their report lacks conversions that were loaded after \S+ \S+ UTC$/,
  },
  corrections: {
    does: lacks(3, 4),
    what: /^their report lacks what was loaded after .*feed-3\.ndjson.*feed-4\.ndjson/,
  },
  rounding: {
    does: changes((row) => ({ ...row, spent: Math.round(row.spent / 1e4) * 1e4 })),
    what: /^their report rounds spent$/,
  },
} as const;

export type KnownCause = keyof typeof causes;
export const knownCauses = Object.keys(causes) as readonly KnownCause[];

/** Their report where these are the causes of all that differs. */
export function theirs(which: readonly KnownCause[]): readonly TheirRow[] {
  const side = which.reduce((before, cause) => causes[cause].does(before), same);
  return side.rows(reported(side.events, side.offset));
}

/** Reports that differ from ours without any of these causes. */
export const causeless: Readonly<Record<string, (random: () => number) => readonly TheirRow[]>> = {
  'other figures altogether': (random) =>
    reported(all).map((row) => changed(row, (value) => Math.round(2 * random() * value))),
  'each figure up to a tenth off': (random) =>
    reported(all).map((row) => changed(row, (value) => Math.round(value * (0.9 + random() / 5)))),
  'each figure a little off': (random) =>
    reported(all).map((row) => changed(row, (value) => Math.max(0, value + Math.floor(random() * 7) - 3))),
  'a tenth more everywhere': () =>
    reported(all).map((row) => changed(row, (value) => Math.round(value * 1.1))),
  'other figures of other campaigns': (random) =>
    reported(all).map((row) => ({
      ...changed(row, (value) => Math.round(2 * random() * value)),
      campaign: `their ${row.campaign}`,
    })),
  'a part of all events': (random) => reported(all.filter(() => random() > 0.03)),
  'campaigns that have changed places': () =>
    reported(all).map((row) => ({
      ...row,
      campaign: campaigns[(campaigns.indexOf(row.campaign) + 1) % 4] ?? '',
    })),
};

const changed = (row: TheirRow, to: (value: number) => number): TheirRow => ({
  ...row,
  impressions: to(row.impressions),
  conversions: to(row.conversions),
  referrals: to(row.referrals),
  spent: to(row.spent),
});
