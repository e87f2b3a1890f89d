import { beforeAll, expect, test } from 'vitest';
import { useCalledService } from '../../support/called-service.ts';
import { harmOf, inHalfAGibibyte, messages } from '../../support/floods.ts';
import { useStore } from '../../support/store.ts';

const service = useCalledService(useStore(), inHalfAGibibyte);

beforeAll(async () => {
  // It is made when it is first asked for.
  await (await fetch(`${service.url}/docs`)).text();
});

// Every path and way is in floods.thorough.test.ts.
test.each(['/docs', 'reports with a token', 'the shortest request'])(
  '100 connections with 1,200 unread requests each harm nobody: %s',
  async (what) => {
    const sends = (messages(service.token)[what] ?? '').repeat(1_200);
    const { growthMb, slowestMs } = await harmOf(service, { connections: 100, sends }, 2_000);
    expect(growthMb).toBeLessThan(100);
    expect(slowestMs).toBeLessThan(1_000);
  },
  60_000,
);
