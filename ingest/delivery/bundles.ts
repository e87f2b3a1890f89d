import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { BundledRecords } from '../chunks/sendable-chunk.ts';
import { insertSettings } from '../event/insert-settings.ts';
import { type JudgeOptions, judgedColumns, judgeRecords } from '../event/judge.ts';
import { together } from '../ledger/together.ts';
import { dropStaged } from './staging.ts';

/** A small chunk, to be judged together with others. */
export interface BundledChunk {
  readonly id: string;
  readonly bundled: BundledRecords;
  readonly judge: JudgeOptions;
  readonly loadTime: string;
  readonly loadId: string;
  readonly file: string;
}

/** Bits of the number of a line; those above say which chunk it is of. */
const lineBits = 40n;
const nth = (param: string) => `{${param}}[bitShiftRight(at_line, ${lineBits}) + 1]`;
const origin = {
  chunk: nth('chunks:Array(String)'),
  loadTime: nth("loadTimes:Array(DateTime64(6, 'UTC'))"),
  loadId: nth('loadIds:Array(String)'),
  file: nth('files:Array(String)'),
  line: `bitAnd(at_line, ${(1n << lineBits) - 1n})`,
};

/** A path has at most 4,096 bytes, and ClickHouse takes a parameter of 128 KiB. */
const mostChunks = 30;

/**
 * Judges small chunks and holds their records back in `incoming_staging`, several in one statement: to analyse it takes
 * ClickHouse longer than all else that such a chunk needs. Each of them is stored from there under its own name, once,
 * also where an interrupted attempt has left its records twice.
 */
export const stageTogether = together<BundledChunk, void>(async (store, chunks) => {
  const statements = new Map<string, BundledChunk[]>();
  for (const chunk of chunks) {
    const select = judgeRecords(chunk.bundled.source, chunk.judge, origin);
    statements.set(select, [...(statements.get(select) ?? []), chunk]);
  }
  for (const [select, members] of statements) {
    const { stream: answer } = await store.exec({
      query: `INSERT INTO incoming_staging (${judgedColumns.join(', ')}) ${select} FORMAT RowBinary`,
      values: Readable.from(
        members.map(({ bundled }, n) => bundled.records(BigInt(n) << lineBits)),
        { objectMode: false },
      ),
      query_params: {
        chunks: members.map(({ id }) => id),
        loadTimes: members.map(({ loadTime }) => loadTime),
        loadIds: members.map(({ loadId }) => loadId),
        files: members.map(({ file }) => file),
      },
      clickhouse_settings: insertSettings(`staging ${members[0]?.id}`),
    });
    await finished(answer.resume());
  }
  return chunks.map(() => undefined);
}, mostChunks);

/** Lets go of what is held back of a chunk. */
export const dropTogether = together<string, void>(async (store, chunks) => {
  await dropStaged(store, chunks);
  return chunks.map(() => undefined);
}, mostChunks);
