import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { openLog } from '../../../src/observe/log.ts';
import { insertLarge } from '../../support/accounts.ts';
import { openReport } from '../../support/process.ts';
import { metric, type TestService, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();

// 7 MB each: more than the buffers of a connection take.
beforeAll(() => insertLarge(db.store, ['a', 'b', 'third', 'fourth'], 21_000));

/** Asks for the largest report, waits for its first bytes and reads no more. */
async function unread(service: TestService, account: string): Promise<IncomingMessage> {
  const answer = await openReport(service.url, { token: await service.token(account) });
  await once(answer, 'readable');
  return answer;
}

/** How an answer ends, once all of it is read. */
function endOf(answer: IncomingMessage): Promise<string | undefined> {
  return new Promise((resolve) => {
    answer.once('end', () => resolve('whole'));
    answer.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
    answer.resume();
  });
}

describe('callers of two accounts that read nothing', () => {
  const service = useService(db);

  test('keep no place from the reports of others, and are not broken off while nobody has to wait', async () => {
    const held: IncomingMessage[] = [];
    for (const account of ['a', 'b']) {
      for (let n = 0; n < 3; n++) held.push(await unread(service, account));
    }
    const waits: number[] = [];
    for (const account of ['third', 'fourth', 'third']) {
      const startedAt = performance.now();
      const answer = await openReport(service.url, { token: await service.token(account) });
      waits.push(Math.round(performance.now() - startedAt));
      expect(answer.statusCode).toBe(200);
      expect(await endOf(answer)).toBe('whole');
    }
    const startedAt = performance.now();
    expect((await service.report('/v1/campaigns', 'nobody', '2026-01-01', '2026-01-31')).rows).toEqual([]);
    waits.push(Math.round(performance.now() - startedAt));
    console.info(`large and small reports of others began after ${waits} ms`);
    expect(Math.max(...waits)).toBeLessThan(4_000);

    await expect.poll(() => metric(service.url, 'adtally_reports_held')).toBe(6);
    expect(await metric(service.url, 'adtally_reports_running')).toBe(0);
    const [first] = held;
    if (first) expect(await endOf(first)).toBe('whole');
    for (const answer of held) answer.destroy();
    await expect.poll(() => metric(service.url, 'adtally_reports_held')).toBe(0);
  });
});

describe('a caller that is too slow', () => {
  const lines: string[] = [];
  const service = useService(
    db,
    { MAX_CONCURRENT_REPORTS: '4' },
    openLog('info', { write: (line) => void lines.push(line) }),
    {
      pace: {
        tickMs: 50,
        held: { bytesPerSecond: 1024 * 1024, ms: 250 },
        tooSlow: { bytesPerSecond: 64 * 1024, ms: 1_000 },
        rememberMs: 60_000,
      },
    },
  );
  const broken = () => metric(service.url, 'adtally_answers_broken_total{outcome="caller_too_slow"}');

  test('is cut off when somebody waits, and the operator is told why', async () => {
    const slow = await unread(service, 'a');
    const startedAt = performance.now();
    await expect.poll(() => performance.now() - startedAt, { timeout: 10_000 }).toBeGreaterThan(2_000);
    expect([slow.destroyed, await broken()]).toEqual([false, 0]);

    // An account may have one large report at a time.
    const next = await openReport(service.url, { token: await service.token('a') });
    expect(next.statusCode).toBe(200);
    expect(await endOf(next)).toBe('whole');
    expect(await endOf(slow)).toBe('ECONNRESET');

    const request = String(slow.headers['x-request-id']);
    const line = await vi.waitUntil(() =>
      lines.map((text) => JSON.parse(text)).find((each) => each.request === request && each.err),
    );
    expect(line).toMatchObject({ msg: 'answer broken off', outcome: 'caller_too_slow' });
    expect(line.err.message).toMatch(/too slowly while others waited: less than 64 KiB\/s for 1 s/);
    // Counted after it is logged.
    await expect.poll(broken).toBe(1);
  });
});
