import { once } from 'node:events';
import { connect as dial } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { insertLarge } from '../../support/accounts.ts';
import { openReport } from '../../support/process.ts';
import { metric, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { readAt } from '../slow-callers.ts';

const range = '{"start_time":"2026-01-01","end_time":"2026-12-31"}';

describe('with two places', () => {
  const db = useStore();
  const service = useService(db, { MAX_CONCURRENT_REPORTS: '2', SEND_TIMEOUT_SECONDS: '60' });
  const ask = async (account: string, signal?: AbortSignal) =>
    fetch(`${service.url}/v1/campaigns/breakdowns/device_creative_date`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await service.token(account)}`,
        'content-type': 'application/json',
        'accept-encoding': 'identity',
      },
      body: range,
      ...(signal && { signal }),
    });
  const message = async (account: string) =>
    [
      'POST /v1/campaigns/breakdowns/device_creative_date HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${await service.token(account)}`,
      'Content-Type: application/json',
      `Content-Length: ${range.length}`,
      '',
      range,
    ].join('\r\n');
  const gauge = (name: string) => metric(service.url, `adtally_reports_${name}`);
  const openLarge = async (account: string) => {
    const answer = await openReport(service.url, { token: await service.token(account) });
    await once(answer, 'readable');
    return answer;
  };
  const nothingHeld = () =>
    expect
      .poll(async () => [await gauge('running'), await gauge('held'), await gauge('waiting')], {
        timeout: 10_000,
      })
      .toEqual([0, 0, 0]);

  beforeAll(async () => {
    await insertLarge(db.store, ['huge', 'vast']);
    await Promise.all(['huge', 'vast', 'little'].map(service.token));
  });

  test('too many are refused with a time to come back, a small one passes, and every place comes back', async () => {
    // Fast enough to need its place.
    const streaming = readAt(await openLarge('huge'), 4_000_000);
    const queued = Array.from({ length: 8 }, (_, n) => ask(n % 2 ? 'vast' : 'huge'));
    await expect.poll(() => gauge('waiting'), { timeout: 10_000 }).toBeGreaterThan(0);
    const startedAt = performance.now();
    const passed = await ask('little');
    expect(passed.status).toBe(200);
    expect(JSON.parse(await passed.text()).result.rows).toEqual([]);
    expect(performance.now() - startedAt).toBeLessThan(4_000);

    const refused = await Promise.all(queued);
    expect(refused.map(({ status }) => status)).toEqual(Array(8).fill(429));
    for (const answer of refused) {
      expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(answer.headers.get('content-type')).toBe('application/problem+json');
      expect(await answer.json()).toMatchObject({ status: 429, code: 'too_many_reports' });
    }
    streaming.hurry();
    expect(JSON.parse(await streaming.text).result.rows).toHaveLength(200_000);
    await nothingHeld();
    expect(JSON.parse(await (await ask('vast')).text()).result.rows).toHaveLength(200_000);
  });

  test('callers that go away while they wait or read take no place with them', async () => {
    await nothingHeld();
    const streaming = await openLarge('huge');
    const gone = new AbortController();
    const waiting = Array.from({ length: 4 }, () => ask('huge', gone.signal).catch(() => 'gone'));
    await expect.poll(() => gauge('waiting'), { timeout: 10_000 }).toBe(4);
    gone.abort();
    expect(await Promise.all(waiting)).toEqual(Array(4).fill('gone'));
    await expect.poll(() => gauge('waiting'), { timeout: 2_000 }).toBe(0);
    streaming.destroy();
    await nothingHeld();
    for (let n = 0; n < 6; n++) (await openLarge(n % 2 ? 'vast' : 'huge')).destroy();
    await nothingHeld();
    expect(JSON.parse(await (await ask('huge')).text()).result.rows).toHaveLength(200_000);
  });

  test('a caller that goes away with several requests on one connection takes no place with it', async () => {
    await nothingHeld();
    for (let round = 0; round < 3; round++) {
      const socket = dial(Number(new URL(service.url).port), '127.0.0.1').pause();
      for (const account of ['huge', 'vast']) socket.write(await message(account));
      // The second waits for the answer to the first.
      await expect.poll(() => gauge('held'), { timeout: 20_000 }).toBe(1);
      expect(await gauge('running')).toBe(0);
      socket.destroy();
      await nothingHeld();
    }
    expect(JSON.parse(await (await ask('vast')).text()).result.rows).toHaveLength(200_000);
  });
});
