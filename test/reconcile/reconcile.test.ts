import { beforeAll, describe, expect, test } from 'vitest';
import { all, causeless, causes, days, knownCauses, theirs } from '../support/known-causes.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { useStore } from '../support/store.ts';
import { compare, loadHappened } from '../support/two-sides.ts';

const db = useStore();
const account = 'acme';
beforeAll(() => loadHappened(db, account, all));

test('of equal reports nothing is explained', async () => {
  const { verdict, causes: found } = await compare(db, account, theirs([]), days);
  expect(found).toEqual([]);
  expect(verdict.figures.impressions?.gap).toEqual({ net: '0', total: '0' });
});

describe('a cause by itself', () => {
  test.each(knownCauses)('%s is found, and explains all', async (cause) => {
    const { verdict, causes: found } = await compare(db, account, theirs([cause]), days);
    expect(found).toEqual([cause]);
    expect(verdict.explained[0]?.what).toMatch(causes[cause].what);
    for (const { unexplained } of Object.values(verdict.figures)) {
      expect(unexplained.total).toBe('0');
    }
  });
});

describe('two causes at a time', () => {
  test.each([
    ['time_zone', 'missing_load'],
    ['other_name', 'rounding'],
  ] as const)('%s and %s are both found, and explain all', async (...both) => {
    const { verdict, causes: found } = await compare(db, account, theirs(both), days);
    expect(found.toSorted()).toEqual(both.toSorted());
    for (const { unexplained } of Object.values(verdict.figures)) expect(unexplained.total).toBe('0');
  });
});

test.each(Object.keys(causeless).slice(0, 3))(`%s is never explained (seed ${testSeed})`, async (name) => {
  const { verdict, causes: found } = await compare(
    db,
    account,
    causeless[name]?.(seededRandom(testSeed)) ?? [],
    days,
  );
  expect(found).toEqual([]);
  for (const { gap, unexplained } of Object.values(verdict.figures)) expect(unexplained).toEqual(gap);
});
