import type { Fault } from './connection.ts';
import type { Loader, Schedule } from './rounds.ts';

/** A loader of two chunks sends no more statements before it ends; and where it has to mend both. */
const steps = { asItWas: 36, restarted: 130 };
const moments = ['killed before it', 'killed while it is under way', 'killed behind it'] as const;

const loader = (startsAt: number, sends: Loader['sends'], at: number, kind: Fault['kind']): Loader => ({
  ...{ startsAt, sends, isHere: true, runs: 1 },
  faults: [{ at, kind, ms: 0 }],
});

/** Meets an engine that dies, and dies, too. */
const restarts: Loader = {
  ...{ startsAt: 1_000, sends: 'alone', isHere: true, runs: 1 },
  faults: [
    { at: 0, kind: 'engine dies before it', ms: 0 },
    { at: 1, kind: 'killed before it', ms: 0 },
  ],
};

/**
 * Two loaders of the same two chunks, each killed at one of its statements: before it is sent, while it is under
 * way, or when it is done. The same where the engine is another one when the second begins, so that it mends what the first has left.
 * @param every leaves out all but each nth, counted from `start`
 */
export function* crashesAtEveryStep(every = 1, start = 0): Generator<Schedule> {
  let n = 0;
  for (const engine of ['asItWas', 'restarted'] as const)
    for (const sends of ['alone', 'together', 'counted'] as const)
      for (let first = 0; first < steps.asItWas; first++)
        for (let second = 0; second < steps[engine]; second++)
          for (const [a, b] of moments.flatMap((one) => moments.map((other) => [one, other] as const)))
            if (n++ % every === start) {
              const killed = loader(0, sends, first, a);
              const loaders =
                engine === 'restarted'
                  ? [killed, restarts, loader(2_000, sends, second, b)]
                  : [killed, loader(40, sends, second, b)];
              yield { seed: n, wayMs: 10, loaders };
            }
}
