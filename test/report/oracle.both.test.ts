import { thorough } from '../support/mode.ts';
import { recountInNewYork, recountRandomEvents, somePairs } from '../support/oracle-suite.ts';
import { testSeed } from '../support/random.ts';
import { useStore } from '../support/store.ts';

if (thorough) {
  recountRandomEvents(useStore, [testSeed]);
  recountInNewYork(useStore, somePairs);
} else {
  recountRandomEvents(useStore, [1], somePairs);
  recountInNewYork(useStore, (path) => somePairs(path).filter((_, n) => n % 4 === path % 4));
}
