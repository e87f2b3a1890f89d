import type { ReadStatement } from '../../clickhouse/reader.ts';
import { judgeSettings } from '../event/insert-settings.ts';
import { type JudgeOptions, judgeRecords } from '../event/judge.ts';
import { sentAs } from '../event/record-source.ts';
import { linesIn } from './count-records.ts';
import type { SendableChunk } from './sendable-chunk.ts';

/** What a statement needs that judges records of a chunk and stores nothing: they are sent with it. */
export interface JudgedPiece extends Required<Omit<ReadStatement, 'query'>> {
  /** A SELECT of the records with the columns of `incoming`. */
  readonly records: string;
  /** Condition on them. */
  readonly isEvent: string;
}

/** Parts of text are gathered until they have so much; then one statement reads them. */
const pieceBytes = 16 << 20;

/** All records of a chunk, those of text a piece at a time. */
export async function* judgedPieces(
  { source, firstLine, stream }: SendableChunk,
  judge: JudgeOptions,
): AsyncGenerator<JudgedPiece> {
  const { structure, format, condition } = source;
  const isText = format === 'LineAsString' || format === 'RowBinary';
  const records = judgeRecords(
    { ...source, select: source.select.replace(sentAs(structure), 'sent') },
    judge,
  );
  const piece = (line: number, bytes: readonly Buffer[]): JudgedPiece => ({
    records,
    isEvent: condition ? 'empty(faults) AND NOT left_out' : 'empty(faults)',
    params: { chunk: '', loadTime: '1970-01-01 00:00:00', loadId: '', file: '', firstLine: `${line}` },
    settings: {
      ...({ ...judgeSettings, ...source.settings } as Record<string, string | number>),
      // Lines are counted in the order of blocks, which several threads do not keep by themselves.
      max_threads: 1,
    },
    tables: { sent: { structure, format, bytes } },
  });
  let [line, size] = [firstLine, 0];
  let bytes: Buffer[] = [];
  for await (const part of stream()) {
    // Its memory is used for another part when that is read.
    bytes.push(Buffer.from(part));
    size += part.length;
    if (!isText || size < pieceBytes) continue;
    yield piece(line, bytes);
    line += bytes.reduce((lines, each) => lines + linesIn(each).lines, 0);
    [size, bytes] = [0, []];
  }
  // One byte is no record, but the line end behind the last one.
  if (size > 1) yield piece(line, bytes);
}
