import { describe } from 'vitest';
import { useStore } from '../../support/store.ts';
import { expectTruth } from '../../support/truth-suite.ts';

describe.each([2, 3, 4])('on one node, seed %i', (seed) => {
  expectTruth(useStore(), { seed, changes: 60, services: 3 });
});
