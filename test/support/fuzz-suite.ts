import { expect, test } from 'vitest';
import { openLog } from '../../src/observe/log.ts';
import { fuzz, prepareFuzz } from '../long/fuzz.ts';
import { testSeed as seed } from './random.ts';
import { useService } from './service.ts';
import { useStore } from './store.ts';

/** Sends so many malformed requests to a service. */
export function fuzzService(requests: number): void {
  const db = useStore();
  const failures: string[] = [];
  const log = openLog('error', { write: (line) => void failures.push(line) });
  // Without a secret of its own it would look for one in the folder of an embedded store, and there is no such folder.
  const env = { RATE_LIMIT_REQUESTS: '1000000', LINK_SECRET: 'of these tests, which is long enough' };
  const service = useService(db, env, log);

  test(`no request that is malformed, old, broken or pipelined ends in a 5xx, in an answer without problem details or to another request, or in a leak (seed ${seed})`, async () => {
    const token = await prepareFuzz(db.address);
    const { statuses, kinds, faults } = await fuzz({ url: service.url, token, requests, seed });
    console.info(
      `fuzz: requests by kind ${JSON.stringify(kinds)}, answers by status ${JSON.stringify(statuses)}`,
    );
    expect(faults).toEqual([]);
    expect(failures).toEqual([]);
    await expect
      .poll(async () =>
        (await (await fetch(`${service.url}/metrics`)).text()).match(/^adtally_reports_\w+ .*$/gm),
      )
      .toEqual(['adtally_reports_running 0', 'adtally_reports_held 0', 'adtally_reports_waiting 0']);
    expect(Object.keys(statuses)).toEqual(
      expect.arrayContaining(['200', '400', '401', '404', '405', '415', '426']),
    );
    expect((await service.report('/v1/campaigns', 'fuzzer', '2026-03-01', '2026-03-31')).rows).toEqual([]);
  });
}
