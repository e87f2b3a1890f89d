import { beforeAll, expect, test } from 'vitest';
import { all, causeless, days, type KnownCause, knownCauses, theirs } from '../support/known-causes.ts';
import { seededRandom, testRounds, testSeed } from '../support/random.ts';
import { useStore } from '../support/store.ts';
import { compare, loadHappened } from '../support/two-sides.ts';

const db = useStore();
const account = 'acme';
beforeAll(() => loadHappened(db, account, all));

/** What is said of a pair, where it is not both: no report can tell them apart. */
const asOne: Readonly<Record<string, readonly KnownCause[]>> = {
  // What was corrected came after the late conversions.
  'late_conversions and corrections': ['corrections'],
};

const pairs = knownCauses.flatMap((one, n) => knownCauses.slice(n + 1).map((other) => [one, other] as const));

test.each(pairs)('%s and %s: what is told is true', async (one, other) => {
  const { verdict, causes } = await compare(db, account, theirs([one, other]), days);
  const told = asOne[`${one} and ${other}`] ?? [one, other];
  expect(causes.toSorted()).toEqual(told.toSorted());
  for (const { unexplained } of Object.values(verdict.figures)) expect(unexplained.total).toBe('0');
});

const random = seededRandom(testSeed);
const rounds = Array.from({ length: testRounds(1) }, () => Object.entries(causeless)).flat();

test.each(rounds)(`%s is never explained (seed ${testSeed})`, async (_, report) => {
  const { causes } = await compare(db, account, report(random), days);
  expect(causes).toEqual([]);
});
