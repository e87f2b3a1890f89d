import { expect, test } from 'vitest';
import { RejectLimit } from '../../../ingest/rejects/reject-limit.ts';

test('good rows count towards the share also while a chunk is taken back', () => {
  const limit = new RejectLimit({ percent: 10 });
  expect(limit.admit(100, 0)).toBe(true);
  expect(limit.admit(20, 5)).toBe(true);
  limit.takeBack(100, 0);
  // Five of thirty rows are above the limit for a moment, through no fault of this chunk.
  expect(limit.admit(10, 0)).toBe(true);
  limit.admit(100, 0);
  // 13 of 130 rows.
  expect(limit.admit(0, 8)).toBe(true);
  expect(limit.admit(0, 1)).toBe(false);
});
