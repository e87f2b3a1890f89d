import fc from 'fast-check';
import { faultKinds } from './connection.ts';
import type { Loader, Schedule } from './rounds.ts';

/** Statements of a load that something can happen to, those of a second try included. */
const mostStatements = 70;

const fault = fc.record({
  kind: fc.constantFrom(...faultKinds),
  at: fc.nat(mostStatements),
  // Some about as long as a load may be silent.
  ms: fc.oneof(fc.nat(100), fc.nat(5_000), fc.integer({ min: 5_000, max: 12_000 }), fc.nat(40_000)),
});

const loader: fc.Arbitrary<Loader> = fc.record({
  startsAt: fc.oneof(fc.nat(300), fc.nat(30_000)),
  sends: fc.constantFrom('alone', 'together', 'counted', 'together, apart', 'in turn, apart'),
  isHere: fc.boolean(),
  runs: fc.integer({ min: 1, max: 3 }),
  faults: fc.uniqueArray(fault, { maxLength: 4, selector: ({ at }) => at }),
});

/** Up to four loaders, and whatever can happen to them. */
export const schedules: fc.Arbitrary<Schedule> = fc.record({
  seed: fc.nat(),
  wayMs: fc.constantFrom(1, 10, 200, 1_000),
  growsAt: fc.option(fc.nat(20_000), { nil: undefined }),
  forgetsAt: fc.option(fc.nat(30_000), { nil: undefined, freq: 3 }),
  loaders: fc.array(loader, { minLength: 1, maxLength: 4 }),
});
