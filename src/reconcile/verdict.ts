import { usedMeasures } from './model/sides.ts';
import type { Explained, Gap, Reconciled } from './reconcile.ts';

/** What a reconciliation came to, without its rows. */
export type Verdict = ReturnType<typeof verdictOf>;

export function verdictOf(reconciled: Reconciled) {
  const { compared, ours, theirs, gap, explained, unexplained, untried } = reconciled;
  const { account, family, first: from, last: to } = compared;
  const measures = usedMeasures(compared);
  /** Amounts are text with all digits, and `total` is the sum of the differences without signs. */
  const told = (each: Gap, { n, isMoney }: (typeof measures)[number]) => ({
    net: textOf(each.net[n], isMoney),
    total: textOf(each.total[n], isMoney),
  });
  return {
    ...{ account, family, from, to },
    figures: Object.fromEntries(
      measures.map((measure) => [
        measure.name,
        {
          ours: textOf(ours[measure.n], measure.isMoney),
          theirs: textOf(theirs[measure.n], measure.isMoney),
          gap: told(gap, measure),
          unexplained: told(unexplained, measure),
        },
      ]),
    ),
    explained: explained.map((each) => ({
      cause: each.cause,
      what: each.what,
      about: each.about,
      figures: Object.fromEntries(measures.map((measure) => [measure.name, told(each, measure)])),
    })),
    untried,
  };
}

/** The verdict in lines of plain English. */
export function describeVerdict(reconciled: Reconciled): string[] {
  const { gap, explained, unexplained, untried } = reconciled;
  const isNone = ({ total }: Gap) => total.every((amount) => amount === 0n);
  if (isNone(gap)) return ['Both sides are equal.'];
  const amounts = (each: Gap, after: (n: number) => string) =>
    usedMeasures(reconciled.compared)
      .filter(({ n }) => gap.total[n] !== 0n)
      .map(({ name, n, isMoney }) => `${name} ${textOf(each.total[n], isMoney)}${after(n)}`)
      .join(', ');
  const shares = (each: Gap) => amounts(each, (n) => ` (${percent(each.total[n], gap.total[n])} %)`);
  const line = ({ what, ...each }: Explained) => `Explained: ${what}. It accounts for ${shares(each)}.`;
  return [
    `The differences of all rows, without their signs, add up to ${amounts(gap, () => '')}.`,
    ...explained.map(line),
    ...(explained.length === 0 ? ['No explanation that was tried fits.'] : []),
    isNone(unexplained) ? 'Nothing is left unexplained.' : `Unexplained: ${shares(unexplained)}.`,
    ...untried.map((text) => `Not tried: ${text}.`),
  ];
}

const percent = (part = 0n, all = 1n): number => Number((part * 1000n) / all) / 10;

/** An amount in its smallest unit as text. */
function textOf(units = 0n, isMoney: boolean): string {
  if (!isMoney) return `${units}`;
  const digits = `${units < 0n ? -units : units}`.padStart(7, '0');
  const fraction = digits.slice(-6).replace(/0+$/, '');
  return `${units < 0n ? '-' : ''}${digits.slice(0, -6)}${fraction ? `.${fraction}` : ''}`;
}
