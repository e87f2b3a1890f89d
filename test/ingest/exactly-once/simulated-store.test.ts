import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import type { FaultKind } from '../../support/simulated/connection.ts';
import { Replay } from '../../support/simulated/replay.ts';
import { type Loader, runSchedule } from '../../support/simulated/rounds.ts';
import type { Answer, Statement } from '../../support/simulated/state.ts';
import { simulateTime } from '../../support/simulated/time.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
let undo = () => {};
beforeAll(() => {
  undo = simulateTime();
});
afterAll(() => undo());

test('the simulated store answers as the engine does', async () => {
  const kinds: FaultKind[] = ['killed while it is under way', 'killed behind it', 'answer lost', 'late'];
  const sent: [Statement, Answer][] = [];
  for (const [n, sends] of (['alone', 'together', 'counted'] as const).entries()) {
    sent.length = 0;
    const loaders = kinds.map(
      (kind, m): Loader => ({
        ...{ startsAt: m * 1_000, sends, isHere: true, runs: 1 },
        faults: [{ at: 16 + 3 * n + m, kind, ms: 50 }],
      }),
    );
    const inOneStep = true;
    await runSchedule(
      { seed: n, wayMs: 5, growsAt: 2_500, inOneStep, loaders },
      (statement, answer) => void sent.push([statement, answer]),
    );
    const replay = new Replay(db.store);
    for (const table of ['events', 'chunk_days', 'loads', 'load_chunks', 'rejected_rows'])
      await db.store.command({ query: `TRUNCATE TABLE ${table}` });
    // Of tables that are younger the engine cannot say what they were told before.
    const age =
      'SELECT max(metadata_modification_time) < now() - 1 AS older FROM system.tables WHERE database = currentDatabase()';
    const isOlder = async () => expect(await select(db.store, age)).toEqual([{ older: 1 }]);
    await vi.waitFor(isOlder, { timeout: 60_000, interval: 100 });
    for (const [statement, answer] of sent) await replay.send(statement, answer);
    expect(replay.differences).toEqual([]);
  }
});
