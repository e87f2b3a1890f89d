/** The month of a day, `yyyymm`. */
export const monthOf = (day: string): number => Number(day.slice(0, 7).replace('-', ''));

/** `2026-10` */
export const monthName = (month: number): string =>
  `${String(Math.floor(month / 100)).padStart(4, '0')}-${String(month % 100).padStart(2, '0')}`;

/** The months of days, `yyyymm`. */
export function monthsWithin(ranges: readonly { readonly from: string; readonly to: string }[]): number[] {
  const months = new Set<number>();
  for (const { from, to } of ranges) {
    for (let month = monthOf(from); month <= monthOf(to); month += month % 100 === 12 ? 89 : 1)
      months.add(month);
  }
  return [...months];
}
