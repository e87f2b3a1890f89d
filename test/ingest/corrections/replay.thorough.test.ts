import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { replay } from '../../../ingest/replay/replay.ts';
import { heldAt } from '../../support/held.ts';
import { testSeed as seed, seededRandom } from '../../support/random.ts';
import { now, useRejectedLoads } from '../../support/rejected-loads.ts';
import { onEveryShard, useStore } from '../../support/store.ts';

const db = useStore();
const loads = useRejectedLoads(db);
const { run, loadWithRejects, corrected, totals } = loads;

test.each(['csv', 'ndjson'] as const)(
  `rows corrected in %s count once when the replay is killed and repeated, also with other corrections (seed ${seed})`,
  async (kind) => {
    const random = seededRandom(seed);
    let fullMs = 0;
    // Round 0 is not disturbed: it shows how long a replay takes.
    for (let round = 0; round < 3; round++) {
      loads.own.account = `account-${kind}-killed-${round}`;
      const { load } = await loadWithRejects(2_000);
      const path = await corrected(load, kind, () => 3, 'first');
      const other = await corrected(load, kind, () => 5, 'second');
      const startedAt = performance.now();
      const killed = loads.start('replay', load, path);
      if (round > 0) {
        await delay(fullMs * (0.3 + 0.7 * random()));
        await killed.kill('SIGKILL');
      }
      await killed.ended;
      if (round === 0) fullMs = performance.now() - startedAt;
      await replay(db.store, load, new LocalFile(other), now);
      const found = await loads.counted();
      expect(found, `round ${round}`).toMatchObject({ events: 2_000, ids: 2_000 });
      // All rows as corrected first, or all as corrected later.
      expect([1_600 + 3 * 400, 1_600 + 5 * 400], `round ${round}`).toContain(found?.impressions);
    }
    await totals();
  },
);

test.each(['one load', 'two loads of the same chunks'])(
  'two different replays of %s at once count each row once, as one or the other corrected it',
  async (of) => {
    const { load } = await loadWithRejects(50);
    const another = of === 'one load' ? load : `${load}-again`;
    const query =
      'INSERT INTO load_chunks SELECT * REPLACE ({another:String} AS load_id) FROM load_chunks AS c WHERE c.load_id = {load:String}';
    if (another !== load) await db.store.command({ query, query_params: { load, another } });
    const first = await corrected(load, 'ndjson', (row) => (row < 7 ? 3 : 0), 'first');
    const second = await corrected(load, 'ndjson', (row) => (row < 3 ? 0 : 5), 'second');
    const held = heldAt(db.store, /INSERT INTO rejected_rows/);
    const replaying = replay(held.store, load, new LocalFile(first), now);
    await held.reached;
    const waits = vi.fn();
    const other = replay(db.store, another, new LocalFile(second), now, { onWait: waits });
    await vi.waitFor(() => expect(waits).toHaveBeenCalled(), { timeout: 60_000 });
    held.release();
    expect(await replaying).toMatchObject({ replayed: 7, skipped: 0 });
    expect(await other).toMatchObject({ replayed: 3, skipped: 7 });
    expect(await totals()).toEqual({ events: 50, ids: 50, impressions: 40 + 7 * 3 + 3 * 5 });
  },
);

test('a replay that was marked only in part is not replayed again', async () => {
  const { load } = await loadWithRejects(50);
  const path = await corrected(load, 'csv', () => 3);
  expect((await run('replay', load, path)).code).toBe(0);
  const unmark =
    'ALTER TABLE rejected_rows UPDATE replayed_at = toDateTime64(0, 3) WHERE load_id = {load:String} AND line > 20';
  await onEveryShard(db, unmark, { load });
  expect(await run('replay', load, path)).toMatchObject({
    stderr: expect.stringMatching(/^0 rows replayed, 10/),
  });
  expect(await totals()).toEqual({ events: 50, ids: 50, impressions: 70 });
});

test('rows that were replayed stay so when the file is loaded again by a loader that knows nothing of it', async () => {
  const { path, load } = await loadWithRejects(50);
  expect((await run('replay', load, await corrected(load, 'csv', () => 3))).code).toBe(0);
  // As after a crash between keeping the rejected rows and marking their chunk as loaded.
  await onEveryShard(db, 'ALTER TABLE load_chunks DELETE WHERE 1');
  await run('ingest', 'events', path);
  expect((await run('rejects', '--json')).stdout).not.toContain(loads.own.account);
  expect(await totals()).toEqual({ events: 50, ids: 50, impressions: 70 });
});
