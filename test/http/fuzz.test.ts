import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { fuzz, prepareFuzz } from '../long/fuzz.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db, { RATE_LIMIT_REQUESTS: '1000000' });

test('no malformed request ends in a 5xx, in an answer without problem details, or in a leak', async () => {
  const seed = Number(process.env.FUZZ_SEED ?? randomBytes(4).readUInt32BE());
  const token = await prepareFuzz(db.address);
  const { statuses, faults } = await fuzz({ url: service.url, token, requests: 3_000, seed });
  console.info(`fuzz: seed ${seed}, answers by status ${JSON.stringify(statuses)}`);
  expect(faults, `seed ${seed}`).toEqual([]);
  expect(Object.keys(statuses)).toEqual(expect.arrayContaining(['200', '400', '401', '404', '405', '415']));
  expect((await service.report('/v1/campaigns', 'fuzzer', '2026-03-01', '2026-03-31')).rows).toEqual([]);
});
