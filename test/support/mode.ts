import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    thorough: boolean;
  }
}

/** Whether `npm run test:thorough` runs a file `*.both.test.ts`, which then tests all that `npm test` samples. */
export const thorough = inject('thorough');
