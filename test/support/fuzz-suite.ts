import { expect, test } from 'vitest';
import { fuzz, prepareFuzz } from '../long/fuzz.ts';
import { testSeed as seed } from './random.ts';
import { useService } from './service.ts';
import { useStore } from './store.ts';

/** Sends so many malformed requests to a service. */
export function fuzzService(requests: number): void {
  const db = useStore();
  const service = useService(db, { RATE_LIMIT_REQUESTS: '1000000' });

  test(`no malformed request ends in a 5xx, in an answer without problem details, or in a leak (seed ${seed})`, async () => {
    const token = await prepareFuzz(db.address);
    const { statuses, faults } = await fuzz({ url: service.url, token, requests, seed });
    console.info(`fuzz: answers by status ${JSON.stringify(statuses)}`);
    expect(faults).toEqual([]);
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(['200', '400', '401', '404', '405', '415']));
    expect((await service.report('/v1/campaigns', 'fuzzer', '2026-03-01', '2026-03-31')).rows).toEqual([]);
  });
}
