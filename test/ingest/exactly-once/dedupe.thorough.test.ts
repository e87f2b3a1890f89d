import { expect, test } from 'vitest';
import { killedAndRepeated, useDedupedLoads } from '../../support/deduped-loads.ts';
import { useStore } from '../../support/store.ts';

const loads = useDedupedLoads(useStore());
const { lines, file, ingest, counted } = loads;

killedAndRepeated(loads, 4, 1_000);

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
