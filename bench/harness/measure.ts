/** One side of a comparison. */
export interface Side {
  readonly name: string;
  /** Undoes what a run changed; not timed. */
  readonly prepare?: () => Promise<void>;
  /** Does the work once and returns the measurement. */
  readonly run: () => Promise<number>;
}

/** The measurements of a side, in the order they were taken. */
export interface Samples {
  readonly name: string;
  readonly samples: readonly number[];
}

/**
 * Runs the sides in turn, A B A B …, after one run of each that does not count. With 0 runs that one is the sample.
 * @param check runs after the first run of each side, before any counts
 */
export async function runInTurn(
  sides: readonly Side[],
  runs: number,
  check?: () => Promise<void>,
): Promise<Samples[]> {
  const results = sides.map(({ name }) => ({ name, samples: [] as number[] }));
  for (let turn = 0; turn <= runs; turn++) {
    for (const [n, side] of sides.entries()) {
      await side.prepare?.();
      const sample = await side.run();
      if (turn > 0 || runs === 0) results[n]?.samples.push(sample);
    }
    if (turn === 0) await check?.();
  }
  return results;
}

export interface Ratio {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** a / b, run by run, so that a drift of the machine cancels out. */
export function ratio(a: readonly number[], b: readonly number[]): Ratio {
  return spread(a.map((value, n) => value / (b[n] ?? Number.NaN)));
}

/** Median, minimum and maximum. */
export function spread(values: readonly number[]): Ratio {
  return { median: percentile(values, 0.5), min: Math.min(...values), max: Math.max(...values) };
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** The percentile, interpolated between the two nearest values. @param part from 0 to 1 */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const position = (sorted.length - 1) * part;
  const lower = sorted[Math.floor(position)] ?? Number.NaN;
  const upper = sorted[Math.ceil(position)] ?? Number.NaN;
  return lower + (upper - lower) * (position % 1);
}

/** The seconds that some work takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1000;
}
