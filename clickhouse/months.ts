/** The month of a day, `yyyymm`. */
export const monthOf = (day: string): number => Number(day.slice(0, 7).replace('-', ''));

/** The months of days, `yyyymm`. */
export function monthsWithin(ranges: readonly { readonly from: string; readonly to: string }[]): number[] {
  const months = new Set<number>();
  for (const { from, to } of ranges) {
    for (let month = monthOf(from); month <= monthOf(to); month += month % 100 === 12 ? 89 : 1)
      months.add(month);
  }
  return [...months];
}
