import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { judgedPieces } from '../../../ingest/chunks/judged-pieces.ts';
import { withReader } from '../../../src/close/with-reader.ts';
import { withFile } from '../../support/events.ts';
import { onlyChunk } from '../../support/only-chunk.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const judge = { reportTimezone: 'UTC', timezone: 'UTC', roundMoney: false, requireEventId: false };

test('records of a long text are judged in pieces that have each of its bytes, and know their lines', async () => {
  const line = `2026-03-01,impression,acme,${'shoes'.repeat(20)}`;
  const text = `event_time,event_type,advertiser_id,campaign_id\n${`${line}\n`.repeat(200_000)}`;
  await withFile('events.csv', text, async (path) => {
    const chunk = await onlyChunk(path);
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

test('ClickHouse judges each record of all pieces, and gives each its own line', async () => {
  const lines = Array.from(
    { length: 200_000 },
    (_, n) => `2026-03-01,impression,acme,${n + 2},${'-'.repeat(100)}\n`,
  );
  const text = `event_time,event_type,advertiser_id,campaign_id,creative_id\n${lines.join('')}`;
  // A file that can be read again is several parts, a packed one is one part.
  for (const [name, content, pieces] of [
    ['events.csv', text, 2],
    ['events.csv.gz', gzipSync(text, { level: 1 }), 1],
  ] as const) {
    const judged = await withFile(name, content, async (path) => {
      const chunk = await onlyChunk(path);
      return withReader(db.store, async (reader) => {
        const all: unknown[] = [];
        for await (const piece of judgedPieces(chunk, judge)) {
          const query = `SELECT toFloat64(countIf(${piece.isEvent} AND toString(e.line) = e.campaign_id)) AS right, toFloat64(count()) AS records FROM (${piece.records}) AS e`;
          all.push(...(await reader.rows<{ right: number; records: number }>({ ...piece, query })));
        }
        return all as { right: number; records: number }[];
      });
    });
    expect(judged).toHaveLength(pieces);
    expect(judged.reduce((sum, { records }) => sum + records, 0)).toBe(lines.length);
    expect(judged.every(({ right, records }) => right === records)).toBe(true);
  }
});
