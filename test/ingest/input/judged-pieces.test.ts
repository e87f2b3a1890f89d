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
  const text = (records: number, creative: string) =>
    `event_time,event_type,advertiser_id,campaign_id,creative_id\n${Array.from({ length: records }, (_, n) => `2026-03-01,impression,acme,${n + 2},${creative}\n`).join('')}`;
  const long = text(200_000, '-'.repeat(100));
  // A file that can be read again is several parts, a packed one is one part; many short records are many blocks.
  for (const [name, content, pieces] of [
    ['events.csv', long, 2],
    ['events.csv.gz', gzipSync(long, { level: 1 }), 1],
    ['events.csv', text(600_000, '-'), 1],
  ] as const) {
    await withFile(name, content, async (path) => {
      const chunk = await onlyChunk(path);
      const judged = await withReader(db.store, async (reader) => {
        // What a piece does not settle itself.
        const threads = reader.with({}, { max_threads: 8 });
        const all: { right: number; records: number }[] = [];
        for await (const piece of judgedPieces(chunk, judge)) {
          const query = `SELECT toFloat64(countIf(${piece.isEvent} AND toString(e.line) = e.campaign_id)) AS right, toFloat64(count()) AS records FROM (${piece.records}) AS e`;
          all.push(...(await threads.rows<{ right: number; records: number }>({ ...piece, query })));
        }
        return all;
      });
      expect(judged).toHaveLength(pieces);
      expect(judged.reduce((sum, { records }) => sum + records, 0)).toBe(chunk.rows);
      expect(judged.filter(({ right, records }) => right !== records)).toEqual([]);
    });
  }
});
