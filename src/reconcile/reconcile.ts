import { familyOf } from '../../catalog/breakdowns.ts';
import { monthName } from '../../clickhouse/months.ts';
import { type Found, onBoth, type State } from './causes/cause.ts';
import { doubledDays, missingDays } from './causes/days.ts';
import { corrections, lateConversions, loadOfMissingRows, singleLoads } from './causes/loads.ts';
import { otherNames } from './causes/names.ts';
import { laterLoadsElsewhere, timeZone } from './causes/time-zone.ts';
import { type Clock, clocksOf } from './model/clocks.ts';
import { oursBy, plainModel, theirsBy } from './model/model.ts';
import { enough, evidence, roundedBy, roundingScore, type Scale } from './model/score.ts';
import {
  bothSides,
  type Compared,
  measuresOf,
  resolvedRows,
  rollupRows,
  type Side,
  sent,
  sideFrom,
  statementOf,
  usedMeasures,
} from './model/sides.ts';
import type { TheirReport } from './their-rows.ts';

/** Of each measure, in its smallest unit: how far apart the sides are, with and without signs. */
export interface Gap {
  readonly net: readonly bigint[];
  readonly total: readonly bigint[];
}

/** How much of the gap an explanation explains. */
export type Explained = Gap & Omit<Found, 'model'>;

export interface Reconciled {
  readonly compared: Compared;
  readonly ours: readonly bigint[];
  readonly theirs: readonly bigint[];
  readonly gap: Gap;
  /** With `unexplained` they add up to the gap. */
  readonly explained: readonly Explained[];
  readonly unexplained: Gap;
  /** What could not be tried, in words. */
  readonly untried: readonly string[];
  /** Both sides as they are, and as the explanations have them. */
  readonly before: Sides;
  readonly after: Sides;
  readonly scale: Scale;
}

export interface Sides {
  readonly ours: Side;
  readonly theirs: Side;
}

/** What is seen in the sums alone; the others are told by raw events. */
const ofSums = [missingDays, doubledDays, otherNames];
const ofEvents = [corrections, lateConversions, laterLoadsElsewhere, singleLoads, loadOfMissingRows];
/** In the order in which they are tried. */
const causes = [timeZone, ...ofSums, ...ofEvents];
/** Causes are tried again after each one found, because one may hide another. Nobody reads a longer list than this. */
const mostExplanations = 20;

/** One side has nothing of what is asked for; the message says what. */
export class NothingToCompare extends Error {
  /** The end of the asked days that leaves none of their report. */
  readonly outside: 'from' | 'to' | undefined;

  constructor(message: string, outside?: 'from' | 'to') {
    super(message);
    this.outside = outside;
  }
}

/** Compares both sides, and looks for what explains the gap until nothing more fits. */
export async function reconcile(compared: Compared, report: TheirReport): Promise<Reconciled> {
  const ours = await sideFrom(compared, rollupRows(compared));
  if (ours.every(({ length }) => length === 0)) {
    const { account, family, first, last } = compared;
    const figures = usedMeasures(compared).map(({ name }) => name);
    throw new NothingToCompare(
      `${account} has no ${figures.join(' or ')} of ${family} from ${first} to ${last}: there is nothing to compare with`,
    );
  }
  const theirs = await sideFrom(compared, resolvedRows(compared, report.rows));
  const scale = await scaleOf(compared, report, { ours, theirs });
  let state: State = { compared, scale, model: plainModel, clocks: clocksFor(compared), ours, theirs };
  const sums = await measured(state);
  const explained: Explained[] = [];
  let gap: Gap = sums.gap;
  const pruned = await prunedMonths(compared);
  const tried = pruned.length === 0 ? causes : ofSums;
  for (let more = isOpen(gap); more; ) {
    more = false;
    for (const look of tried) {
      const found = isOpen(gap) && explained.length < mostExplanations ? await look(state) : undefined;
      if (!found) continue;
      more = true;
      const { model } = found;
      state = {
        ...state,
        model,
        ours: await sideFrom(compared, oursBy(compared, model)),
        theirs: await sideFrom(compared, theirsBy(compared, model, theirs)),
      };
      const left = (await measured(state)).gap;
      const { cause, what, about } = found;
      explained.push({ cause, what, about, ...difference(gap, left) });
      gap = left;
    }
  }
  const rounding = await roundingOf(state);
  if (rounding) {
    explained.push({ cause: 'rounding', ...rounding });
    gap = difference(gap, rounding);
  }
  return {
    compared,
    ours: sums.ours,
    theirs: sums.theirs,
    gap: sums.gap,
    explained,
    unexplained: gap,
    untried:
      pruned.length > 0
        ? [
            `time zones, loads, late conversions and corrections: raw events of ${pruned.join(', ')} were pruned`,
          ]
        : [],
    before: { ours, theirs },
    after: { ours: state.ours, theirs: state.theirs },
    scale,
  };
}

/** Computed once, when first asked for. */
function clocksFor({ first, last, timezone }: Compared): State['clocks'] {
  let clocks: Promise<readonly Clock[]> | undefined;
  return () => {
    clocks ??= clocksOf(first, last, timezone);
    return clocks;
  };
}

const isOpen = ({ total }: Gap): boolean => total.some((amount) => amount !== 0n);

const difference = (from: Gap, taken: Gap): Gap => {
  const minus = (a: readonly bigint[], b: readonly bigint[]) => a.map((amount, n) => amount - (b[n] ?? 0n));
  return { net: minus(from.net, taken.net), total: minus(from.total, taken.total) };
};

const bigints = (texts: readonly string[]) => texts.map(BigInt);

/** SQL of the sums of arrays, as text. */
const sumsOf = (values: string) => `arrayMap(x -> toString(x), sumForEach(${values}))`;

async function measured(state: State) {
  const { reader, used } = state.compared;
  const [row] = await reader.rows<Record<'ours' | 'theirs' | 'net' | 'total', string[]>>(
    onBoth(
      state,
      `SELECT ${sumsOf('o')} AS ours, ${sumsOf('t')} AS theirs, ${sumsOf('arrayMap((o, t) -> t - o, o, t)')} AS net, ${sumsOf('arrayMap((o, t) -> abs(t - o), o, t)')} AS total
       FROM (${bothSides(state.compared)})`,
    ),
  );
  const of = (name: 'ours' | 'theirs' | 'net' | 'total') =>
    row && row[name].length > 0 ? bigints(row[name]) : used.map(() => 0n);
  return { ours: of('ours'), theirs: of('theirs'), gap: { net: of('net'), total: of('total') } };
}

/** Values from which on it is no accident that all end in a zero. */
const enoughValues = 8;

async function scaleOf(
  compared: Compared,
  { figures }: TheirReport,
  { ours, theirs }: Sides,
): Promise<Scale> {
  const family = familyOf(compared.catalog, compared.family);
  const isMoney = Object.values(family.measures).map(({ type }) => type === 'Money');
  const counts = evidence(compared, isMoney);
  const values = (n: number) =>
    `groupUniqArrayIf(toUInt64(least(abs(x[${n + 1}]), toUInt256('9000000000000000000'))), x[${n + 1}] != 0)`;
  const step = (n: number) => `arrayFold((a, x) -> gcd(a, x), ${values(n)} AS values_${n}, values_${n}[1])`;
  const [row] = await compared.reader.rows<{ steps: string[] }>(
    statementOf(
      compared,
      `SELECT arrayMap(x -> toString(greatest(x, 1)), [${compared.used.map((_, n) => step(n)).join(', ')}]) AS steps
       FROM (SELECT f AS x FROM ours UNION ALL SELECT f AS x FROM theirs)`,
      { tables: { ours: sent(ours), theirs: sent(theirs) } },
    ),
  );
  return {
    steps: compared.used.map((_, n) => (counts[n] ? (row?.steps[n] ?? '1') : '0')),
    units: compared.used.map((_, n) => {
      const { values = 0, zeros = 0 } = figures[n] ?? {};
      return values >= enoughValues && zeros > 0 ? `${10n ** BigInt(zeros)}` : '0';
    }),
  };
}

/** What is left and no more than rounding can do, if that is likely to be it. */
async function roundingOf(state: State): Promise<Omit<Explained, 'cause'> | undefined> {
  const { compared, scale } = state;
  if (scale.units.every((unit) => unit === '0')) return undefined;
  const [row] = await compared.reader.rows<{ score: number; net: string[]; total: string[] }>(
    onBoth(
      state,
      `SELECT sum(${roundingScore(scale)}) AS score, ${sumsOf('arrayMap((o, t, is) -> (t - o) * is, o, t, is)')} AS net, ${sumsOf('arrayMap((o, t, is) -> abs(t - o) * is, o, t, is)')} AS total
       FROM (SELECT *, ${roundedBy(scale)} AS is FROM (${bothSides(compared)}))`,
    ),
  );
  if (!row || row.score < enough(1)) return undefined;
  const names = measuresOf(familyOf(compared.catalog, compared.family));
  const total = bigints(row.total);
  const rounded = names.filter((_, n) => total[n] !== 0n);
  if (rounded.length === 0) return undefined;
  const what = `their report rounds ${rounded.join(' and ')}`;
  return { what, about: { figures: rounded }, net: bigints(row.net), total };
}

async function prunedMonths(compared: Compared): Promise<string[]> {
  const rows = await compared.reader.rows<{ month: number }>(
    statementOf(
      compared,
      `SELECT DISTINCT month FROM pruned_months AS p
       WHERE p.month BETWEEN toYYYYMM(toDate32({first:Date}) - 1) AND toYYYYMM(toDate32({last:Date}) + 1) ORDER BY month`,
    ),
  );
  return rows.map(({ month }) => monthName(month));
}
