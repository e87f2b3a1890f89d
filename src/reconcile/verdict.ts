import { familyOf } from '../../catalog/breakdowns.ts';
import { measuresOf } from './model/sides.ts';
import type { Explained, Gap, Reconciled } from './reconcile.ts';

/** How a gap is told: amounts are text with all digits, and `total` is the sum of the differences without signs. */
export interface ToldAmount {
  readonly net: string;
  readonly total: string;
}

/** What a reconciliation came to, without its rows. */
export interface Verdict {
  readonly account: string;
  readonly family: string;
  readonly from: string;
  readonly to: string;
  readonly figures: Readonly<
    Record<string, { ours: string; theirs: string; gap: ToldAmount; unexplained: ToldAmount }>
  >;
  readonly explained: readonly {
    cause: string;
    what: string;
    figures: Readonly<Record<string, ToldAmount>>;
  }[];
  readonly untried: readonly string[];
}

export function verdictOf(reconciled: Reconciled): Verdict {
  const { compared, ours, theirs, gap, explained, unexplained, untried } = reconciled;
  const { account, family, first: from, last: to } = compared;
  const told = (each: Gap, n: number): ToldAmount => ({
    net: textOf(reconciled, each.net[n], n),
    total: textOf(reconciled, each.total[n], n),
  });
  const figures = usedNumbers(reconciled);
  return {
    ...{ account, family, from, to },
    figures: Object.fromEntries(
      figures.map(({ name, n }) => [
        name,
        {
          ours: textOf(reconciled, ours[n], n),
          theirs: textOf(reconciled, theirs[n], n),
          gap: told(gap, n),
          unexplained: told(unexplained, n),
        },
      ]),
    ),
    explained: explained.map((each) => ({
      cause: each.cause,
      what: each.what,
      figures: Object.fromEntries(figures.map(({ name, n }) => [name, told(each, n)])),
    })),
    untried,
  };
}

/** The verdict in lines of plain English. */
export function describeVerdict(reconciled: Reconciled): string[] {
  const { gap, explained, unexplained, untried } = reconciled;
  const isNone = ({ total }: Gap) => total.every((amount) => amount === 0n);
  if (isNone(gap)) return ['Both sides are equal.'];
  const amounts = (each: Gap) =>
    usedNumbers(reconciled)
      .filter(({ n }) => gap.total[n] !== 0n)
      .map(
        ({ name, n }) =>
          `${name} ${textOf(reconciled, each.total[n], n)}${shareOf(each.total[n], gap.total[n])}`,
      )
      .join(', ');
  const line = ({ what, ...each }: Explained) => `Explained: ${what}. It accounts for ${amounts(each)}.`;
  return [
    `The differences of all rows, without their signs, add up to ${amounts(gap).replaceAll(' (100 %)', '')}.`,
    ...explained.map(line),
    ...(explained.length === 0 ? ['No explanation that was tried fits.'] : []),
    isNone(unexplained) ? 'Nothing is left unexplained.' : `Unexplained: ${amounts(unexplained)}.`,
    ...untried.map((text) => `Not tried: ${text}.`),
  ];
}

function shareOf(part = 0n, all = 0n): string {
  if (all === 0n) return '';
  return ` (${Number((part * 1000n) / all) / 10} %)`;
}

function usedNumbers({ compared }: Reconciled) {
  return measuresOf(familyOf(compared.catalog, compared.family))
    .map((name, n) => ({ name, n }))
    .filter(({ n }) => compared.used[n]);
}

/** An amount in its smallest unit as text. */
function textOf({ compared }: Reconciled, units = 0n, n: number): string {
  const { measures } = familyOf(compared.catalog, compared.family);
  if (Object.values(measures)[n]?.type !== 'Money') return `${units}`;
  const digits = `${units < 0n ? -units : units}`.padStart(7, '0');
  const fraction = digits.slice(-6).replace(/0+$/, '');
  return `${units < 0n ? '-' : ''}${digits.slice(0, -6)}${fraction ? `.${fraction}` : ''}`;
}
