/** A figure in whole units of 10^-scale. */
export interface Figure {
  readonly units: bigint;
  readonly scale: number;
}

/** Places behind the point of every amount and ratio of the service. */
export const places = 6;

/** Whole units of 10^-scale as text, exact and without zeros at the end: `-12.5`. */
export function decimalText(units: bigint, scale: number): string {
  if (scale === 0) return String(units);
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, '0');
  const fraction = digits.slice(-scale).replace(/0+$/, '');
  return `${units < 0n ? '-' : ''}${digits.slice(0, -scale)}${fraction && `.${fraction}`}`;
}

/**
 * `times` · numerator / denominator with 6 places, as the service computes it: cut off after 7 places, then rounded
 * half away from zero; 0 where the denominator is 0.
 */
export function ratio(numerator: bigint, scale: number, denominator: bigint, times: number): bigint {
  if (denominator === 0n) return 0n;
  const cut = (numerator * BigInt(times) * 10n ** BigInt(places + 1 - scale)) / denominator;
  return (cut + (cut < 0n ? -5n : 5n)) / 10n;
}

/** The change from `then` to `now` in percent, for people; undefined where there is nothing to compare with. */
export function percentChange(now: bigint, then: bigint): number | undefined {
  if (then === 0n) return undefined;
  const base = then < 0n ? -then : then;
  return Number(((now - then) * 10_000n) / base) / 100;
}
