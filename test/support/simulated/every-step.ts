import type { Fault } from './connection.ts';
import type { Loader, Schedule } from './rounds.ts';

/** A loader of two chunks sends no more statements before it ends. */
const steps = 36;
const moments = ['killed before it', 'killed while it is under way', 'killed behind it'] as const;

const loader = (startsAt: number, sends: Loader['sends'], at: number, kind: Fault['kind']): Loader => ({
  ...{ startsAt, sends, isHere: true, runs: 1 },
  faults: [{ at, kind, ms: 0 }],
});

/**
 * Two loaders of the same two chunks, each killed at one of its statements: before it is sent, while it is under
 * way, or when it is done.
 * @param every leaves out all but each nth
 */
export function* crashesAtEveryStep(every = 1): Generator<Schedule> {
  let n = 0;
  for (const sends of ['alone', 'together', 'counted'] as const)
    for (let first = 0; first < steps; first++)
      for (let second = 0; second < steps; second++)
        for (const [a, b] of moments.flatMap((one) => moments.map((other) => [one, other] as const)))
          if (n++ % every === 0)
            yield {
              ...{ seed: n, wayMs: 10 },
              loaders: [loader(0, sends, first, a), loader(40, sends, second, b)],
            };
}
