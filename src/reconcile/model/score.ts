import type { Compared } from './sides.ts';

/** By how much values of each measure can differ, in the smallest unit. */
export interface Scale {
  /** All values of both sides are multiples of it; 0: the measure is no evidence. */
  readonly steps: readonly string[];
  /** The unit that they round to; 0: they do not round. */
  readonly units: readonly string[];
}

/**
 * What an explanation has to score, in bits. A coincidence that is looked for in a million pairs of reports is found once: the
 * score of one is above `s` with a chance of at most 2^-s, see `score`.
 */
const leastBits = 20;

/** @param tried how many explanations of this kind were tried */
export const enough = (tried: number): number => leastBits + Math.log2(Math.max(1, tried));

const list = (values: readonly string[]) => `[${values.map((value) => `toUInt256('${value}')`).join(', ')}]`;

/** SQL: their value is `expected`, but for rounding. `unit` is that of the measure, `n` their records. */
const fits = (expected: string) => `2 * abs(t - ${expected}) <= n * unit`;

/**
 * SQL of how much better a row of theirs is predicted by `p`, what ours would be if an explanation were true, than by `o`,
 * what ours is: in bits, for arrays `o`, `t`, `p`, and `n`.
 *
 * Each value that the explanation moves is a prediction. Were it wrong, theirs would hit it by chance, one time in as many as
 * theirs and ours are steps apart: a hit scores the logarithm of that, less one, and a miss costs one, so that the expected
 * value of 2^score is at most 1 where there is no such cause. A value that is moved away from theirs costs as much as one that
 * is moved as far to theirs scores. A row that theirs does not have proves nothing: whole campaigns are left out of reports.
 * Amounts follow from counts, so they are no evidence of their own beside them.
 */
export function score({ steps, units }: Scale): string {
  const apart = (distance: string) =>
    `log2(1 + toFloat64(${distance}) / toFloat64(greatest(step, n * unit)))`;
  const scored = `multiIf(step = 0 OR o = p, 0.,
    ${fits('p')}, if(n = 0 OR ${fits('o')}, 0., greatest(0., ${apart('abs(t - o)')} - 1)),
    abs(t - p) > abs(t - o), -1 - ${apart('abs(t - p) - abs(t - o)')},
    -1.)`;
  return `arraySum((o, t, p, step, unit) -> ${scored}, o, t, p, ${list(steps)}, ${list(units)})`;
}

/** SQL, for each value of a row: theirs differs from ours by what rounding can do. */
export const roundedBy = ({ units }: Scale, ours = 'o', theirs = 't'): string =>
  `arrayMap((o, t, unit) -> o != t AND ${fits('o')}, ${ours}, ${theirs}, ${list(units)})`;

/** SQL of what a row scores where rounding is the explanation of what is left: how near their values are to ours. */
export function roundingScore({ steps, units }: Scale): string {
  const hit = 'greatest(0., log2(1 + toFloat64(abs(t)) / toFloat64(greatest(step, n * unit))) - 1)';
  return `arraySum((o, t, step, unit) -> multiIf(unit = 0 OR o = t, 0., ${fits('o')}, ${hit}, -1.), o, t, ${list(steps)}, ${list(units)})`;
}

/** Measures that are evidence: counts, or amounts where no count is compared. */
export function evidence({ used }: Pick<Compared, 'used'>, isMoney: readonly boolean[]): readonly boolean[] {
  const counts = used.map((is, n) => is && !isMoney[n]);
  return counts.some(Boolean) ? counts : used;
}
