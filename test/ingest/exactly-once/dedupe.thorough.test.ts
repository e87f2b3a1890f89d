import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { useDedupedLoads } from '../../support/deduped-loads.ts';
import { testSeed as seed, seededRandom } from '../../support/random.ts';
import { useStore } from '../../support/store.ts';

const { lines, file, start, ingest, counted } = useDedupedLoads(useStore());

test(`killed four times and repeated, each event_id is counted once (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const repeated = (n: number) => lines(n * 1_000, n * 1_000 + 1_500, { device: `device-${n}` });
  const paths = await Promise.all([0, 1, 2, 3].map((n) => file(`${n}.ndjson`, repeated(n))));
  const args = ['--dedupe', '--chunk-bytes', '60000', ...paths];
  for (let kill = 0; kill < 4; kill++) {
    const load = start('ingest', 'events', ...args);
    await delay(300 + 2_000 * random());
    await load.kill('SIGKILL');
  }
  const { rows, repeated_rows, duplicate_rows } = await ingest(...args);
  expect(rows + repeated_rows + duplicate_rows).toBeLessThanOrEqual(6_000);
  expect(await counted(), `seed ${seed}`).toEqual({ events: 4_500, ids: 4_500 });
});

test('two such loads at once count each event_id once', async () => {
  const [first, second] = await Promise.all([
    file('first.ndjson', lines(0, 900)),
    file('second.ndjson', lines(300, 1_200, { device: 'mobile' })),
  ]);
  const loads = await Promise.all(
    [first, second].map((path) => ingest('--dedupe', '--chunk-bytes', '60000', path)),
  );
  expect(loads.reduce((sum, { rows }) => sum + rows, 0)).toBe(1_200);
  expect(loads.reduce((sum, { duplicate_rows }) => sum + duplicate_rows, 0)).toBe(600);
  expect(await counted()).toEqual({ events: 1_200, ids: 1_200 });
});
