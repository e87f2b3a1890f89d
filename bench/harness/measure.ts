/** One side of a comparison. */
export interface Side {
  readonly name: string;
  /** Puts back what a run changed; not timed. */
  readonly prepare?: () => Promise<void>;
  /** Does the work once and returns what was measured. */
  readonly run: () => Promise<number>;
}

/** What each run of a side measured, in the order they ran. */
export interface Samples {
  readonly name: string;
  readonly samples: readonly number[];
}

/**
 * Runs the sides in turn, A B A B …, after one run of each that does not count; with 0 runs it is all there is.
 * @param check looks at what the first run of each came to, before any is counted
 */
export async function alternate(
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
  readonly least: number;
  readonly most: number;
}

/** a / b run by run, so that a drift of the machine cancels. */
export function ratio(a: readonly number[], b: readonly number[]): Ratio {
  return spread(a.map((value, n) => value / (b[n] ?? Number.NaN)));
}

export function spread(values: readonly number[]): Ratio {
  return { median: percentile(values, 0.5), least: Math.min(...values), most: Math.max(...values) };
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** Between the two nearest values, where the place falls between them. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * part;
  const lower = sorted[Math.floor(place)] ?? Number.NaN;
  const upper = sorted[Math.ceil(place)] ?? Number.NaN;
  return lower + (upper - lower) * (place % 1);
}

/** Seconds that some work takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1000;
}
