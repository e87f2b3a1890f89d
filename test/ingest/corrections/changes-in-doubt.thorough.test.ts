import { expect, test } from 'vitest';
import { useChanges } from '../../support/changes.ts';
import { useChunksInDoubt } from '../../support/chunks-in-doubt.ts';
import { type EventLine, load } from '../../support/events.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const { events, leaveInDoubt, leaveInDoubtAtRestart, mutate } = useChunksInDoubt(db);
const { listed, storeTime } = useChanges(useService(db), db);
const days = ['2026-01-05', '2026-02-05'];

/** A loader died before it could note what was acknowledged. */
async function leaveSent(lines: readonly EventLine[]): Promise<void> {
  await load(db.store, lines, 40_000);
  await mutate('ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE true');
  await mutate("ALTER TABLE loads UPDATE state = 'failed' WHERE true");
}

test.each([
  ['was acknowledged to nobody', leaveSent],
  ['is withdrawn and sent again', leaveInDoubt],
  ['may have lost rows at a restart', leaveInDoubtAtRestart],
])('a chunk that %s changes its days once more when a load completes it', async (_, leave) => {
  const lines = events();
  await leave(lines);
  const since = await storeTime();
  expect(await listed('campaigns', 'advertiser', since)).toEqual([]);
  await load(db.store, lines, 40_000);
  expect(await listed('campaigns', 'advertiser', since)).toEqual(days);
  expect(await listed('ad_units', 'publisher', since)).toEqual(days);
  const after = await storeTime();
  await load(db.store, lines, 40_000);
  expect(await listed('campaigns', 'advertiser', after)).toEqual([]);
});
