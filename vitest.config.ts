import { basename } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const thoroughOnly = 'test/**/*.thorough.test.ts';
/** Tests whose sizes `test/support/mode.ts` decides. */
const inBothModes = 'test/**/*.both.test.ts';

/**
 * Files that take minutes for their size, those that take most first. Without results of earlier runs Vitest begins with the
 * largest, and these would run alone at the end. No more than two clusters are among the first four: each is three servers.
 */
const longest = [
  ...['cluster-oracle', 'killed-commands', 'as-of-moment', 'cluster-crash', 'options', 'unload'],
  ...['cluster', 'cluster-explain', 'truth', 'cluster-replace', 'replace', 'reconcile', 'dedupe', 'bench'],
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const found = longest.indexOf(basename(moduleId).split('.')[0] ?? '');
      return found < 0 ? longest.length : found;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

/**
 * `npm test` tells within minutes whether a change is right. `npm run test:thorough` (`--mode thorough`) has what
 * takes long because it repeats: rounds, seeds, every moment of a kill, slow callers.
 */
export default defineConfig(({ mode }) => {
  const thorough = mode === 'thorough';
  return {
    test: {
      include: thorough ? [thoroughOnly, inBothModes] : ['test/**/*.test.ts'],
      exclude: [...configDefaults.exclude, ...(thorough ? [] : [thoroughOnly])],
      provide: { thorough },
      globalSetup: ['test/support/stores.ts'],
      sequence: { sequencer: LongestFirst },
      reporters: ['default', './test/support/repeat-reporter.ts'],
      // End what hangs: several times what a test takes on two busy cores.
      testTimeout: thorough ? 900_000 : 300_000,
      hookTimeout: 300_000,
      // Of two cores: while one file waits for the database or for a period, others go on.
      maxWorkers: 4,
      // Files that share a process load the modules once. The thorough ones are few, and take longer than that.
      isolate: thorough,
    },
  };
});
