import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/stores.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores, and most files drive a database: more workers only wait for each other.
    maxWorkers: 2,
  },
});
