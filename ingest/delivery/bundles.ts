import { insertData } from '../../clickhouse/client.ts';
import type { BundledRecords } from '../chunks/sendable-chunk.ts';
import { insertSettings } from '../event/insert-settings.ts';
import { type JudgeOptions, judgedColumns, judgeRecords, type Origin } from '../event/judge.ts';
import { quoted } from '../event/sql.ts';
import { together } from '../ledger/batch-calls.ts';
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

/** Where the records of several chunks are from. Not as parameters, which would make the address of the statement long. */
function originOf(chunks: readonly BundledChunk[]): Origin {
  const nth = (texts: readonly string[], type = 'String') =>
    `[${texts.map(quoted).join(', ')}]::Array(${type})[bitShiftRight(at_line, ${lineBits}) + 1]`;
  return {
    chunk: nth(chunks.map(({ id }) => id)),
    loadTime: nth(
      chunks.map(({ loadTime }) => loadTime),
      "DateTime64(6, 'UTC')",
    ),
    loadId: nth(chunks.map(({ loadId }) => loadId)),
    file: nth(chunks.map(({ file }) => file)),
    line: `bitAnd(at_line, ${(1n << lineBits) - 1n})`,
  };
}

/** A path has at most 4,096 bytes, and ClickHouse takes a statement of 256 KiB. */
const mostChunks = 30;

/**
 * Judges small chunks and holds their records back in `incoming_staging`, several in one statement: to analyse it takes
 * ClickHouse longer than all else that such a chunk needs. Each of them is stored from there under its own name, once,
 * also where an interrupted attempt has left its records twice.
 */
export const stageTogether = together<BundledChunk, void>(async (store, chunks) => {
  // Those that are read and judged alike.
  const bundles = new Map<string, [BundledChunk, ...BundledChunk[]]>();
  for (const chunk of chunks) {
    const judged = judgeRecords(chunk.bundled.source, chunk.judge);
    const bundle = bundles.get(judged);
    if (bundle) bundle.push(chunk);
    else bundles.set(judged, [chunk]);
  }
  for (const bundle of bundles.values()) {
    const [{ id, bundled, judge }] = bundle;
    await insertData(store, {
      into: `incoming_staging (${judgedColumns.join(', ')})`,
      select: judgeRecords(bundled.source, judge, originOf(bundle)),
      format: 'RowBinary',
      data: bundle.map((each, n) => each.bundled.records(BigInt(n) << lineBits)),
      settings: insertSettings(`staging ${id}`),
    });
  }
  return chunks.map(() => undefined);
}, mostChunks);

/** Lets go of what is held back of a chunk. */
export const dropTogether = together<string, void>(async (store, chunks) => {
  await dropStaged(store, chunks);
  return chunks.map(() => undefined);
}, mostChunks);
