import type { Framing } from '../chunks/framed-records.ts';
import { sentAs } from '../event/record-source.ts';
import type { Rule } from '../event/values.ts';
import { optionHint } from '../input/option-hint.ts';

/** What records of text are read as. */
export const structureOf = (framing: Framing): string =>
  framing === 'lines' ? 'line String' : 'at_line UInt64, read String';

/** `at_line` and `record`, without carriage returns at its end. Parameter: `firstLine`. */
export function records(framing: Framing): string {
  const input =
    framing === 'lines'
      ? `SELECT {firstLine:UInt64} + rowNumberInAllBlocks() AS at_line, line AS read FROM ${sentAs(structureOf(framing))}`
      : `SELECT at_line, read FROM ${sentAs(structureOf(framing))}`;
  return `SELECT at_line, if(endsWith(read, '\\r'), trim(TRAILING '\\r' FROM read), read) AS record FROM (${input}) WHERE record != ''`;
}

export const nulReason = 'the record holds a NUL byte';

export const unreadable: readonly Rule[] = [
  {
    broken: 'NOT isValidUTF8(record)',
    reason: `the record is not valid UTF-8${optionHint('encoding', 'names another encoding: unload this load first')}`,
  },
  { broken: "position(record, '\\0') > 0", reason: nulReason },
];
