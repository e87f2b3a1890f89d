/** One side of a comparison. */
export interface Side {
  readonly name: string;
  /** Puts back what a run changed; not timed. */
  readonly prepare?: () => Promise<void>;
  readonly run: () => Promise<void>;
}

export interface Comparison {
  readonly name: string;
  /** Seconds of each run, in the order they ran. */
  readonly ours: readonly number[];
  readonly theirs: readonly number[];
  /** Median of ours / theirs, pair by pair, so that a drift of the machine cancels. */
  readonly ratio: number;
}

/** Runs two sides in turn, A B A B …, after one run of each that does not count. */
export async function compare(name: string, ours: Side, theirs: Side, runs: number): Promise<Comparison> {
  const samples: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  for (let run = 0; run <= runs; run++) {
    const times = { ours: await timed(ours), theirs: await timed(theirs) };
    if (run === 0) continue;
    samples.ours.push(times.ours);
    samples.theirs.push(times.theirs);
  }
  const ratios = samples.ours.map((seconds, n) => seconds / (samples.theirs[n] ?? Number.NaN));
  return { name, ...samples, ratio: median(ratios) };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

async function timed({ prepare, run }: Side): Promise<number> {
  await prepare?.();
  const startedAt = performance.now();
  await run();
  return (performance.now() - startedAt) / 1000;
}
