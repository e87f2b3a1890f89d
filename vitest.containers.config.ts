import { defineConfig } from 'vitest/config';

/** `npm run test:containers`: what needs replicas and a Keeper, on Docker. */
export default defineConfig({
  test: {
    include: ['test/long/containers.ts'],
    globalSetup: ['test/support/docker.ts'],
    testTimeout: 300_000,
    hookTimeout: 600_000,
  },
});
