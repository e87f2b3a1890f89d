import { paths } from './oracle.ts';

/** Optional fields of a report. */
export const optionNames = [
  'filters',
  'metrics',
  'order_by',
  'limit',
  'totals',
  'time_grain',
  'ids',
  'compare_to',
] as const;
export type OptionName = (typeof optionNames)[number];

/** Each option alone. */
const alone: OptionName[][] = optionNames.map((name) => [name]);
/** Each option with each other. */
const inPairs: OptionName[][] = optionNames.flatMap((first, n) =>
  optionNames.slice(n + 1).map((second) => [first, second]),
);

/** All of them. */
export const everyCombination = (): OptionName[][] => [...alone, ...inPairs, [...optionNames]];
/** Each alone, each pair on three paths, of other accounts each, and all at once. A path without days takes no time grain. */
export const manyCombinations = (path: number): OptionName[][] => [
  ...alone,
  ...inPairs.filter(
    (pair, n) => pair.includes('time_grain') || (path + Math.floor(path / 6) - n) % (paths.length / 3) === 0,
  ),
  [...optionNames],
];
/** Two alone and a pair, others from path to path, and all at once. */
export const someCombinations = (path: number): OptionName[][] => [
  ...alone.filter((_, n) => (n - path) % alone.length === 0 || (n - path - 3) % alone.length === 0),
  ...inPairs.filter((_, n) => n % paths.length === path),
  [...optionNames],
];
