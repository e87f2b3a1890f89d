import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { judgedPieces } from '../../../ingest/chunks/judged-pieces.ts';
import { withFile } from '../../support/events.ts';
import { onlyChunk } from '../../support/only-chunk.ts';

test('records of a long text are judged in pieces that have each of its bytes, and know their lines', async () => {
  const line = `2026-03-01,impression,acme,${'shoes'.repeat(20)}`;
  const text = `event_time,event_type,advertiser_id,campaign_id\n${`${line}\n`.repeat(200_000)}`;
  await withFile('events.csv', text, async (path) => {
    const chunk = await onlyChunk(path);
    const judge = { reportTimezone: 'UTC', timezone: 'UTC', roundMoney: false, requireEventId: false };
    const bytes: Uint8Array[] = [];
    const firstLines: number[] = [];
    let next = 2;
    for await (const { params, tables } of judgedPieces(chunk, judge)) {
      firstLines.push(Number(params.firstLine));
      expect(firstLines.at(-1)).toBe(next);
      const piece = Buffer.concat(tables.sent?.bytes ?? []);
      next += piece.toString('latin1').split('\n').length - 1;
      bytes.push(piece);
    }
    expect(firstLines).toHaveLength(2);
    const header = text.indexOf('\n') + 1;
    expect(Buffer.concat(bytes).equals((await readFile(path)).subarray(header))).toBe(true);
  });
});
