import { loadProgram } from '../wasm/load.ts';
import { ordinary } from '../wasm/programs.ts';

/** See `RecordEnds` of records.ts. */
interface OrdinaryEnds {
  readonly last: number;
  readonly records: number;
  readonly lines: number;
  readonly multiLine: boolean;
  readonly plainCells: boolean;
  /** A quote is open at the end. */
  readonly open: boolean;
}

interface Program {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly begin: (delimiter: number, maxQuoted: number) => void;
  readonly scan: (length: number) => 0 | 1;
  readonly last: { readonly value: number };
  readonly records: { readonly value: number };
  readonly lines: { readonly value: number };
  readonly ends: { readonly value: number };
  readonly quoted: { readonly value: bigint };
  readonly plain: { readonly value: 0 | 1 };
}

/** Bytes that the program looks at together. */
const step = 64;

let program: Program | undefined;

/**
 * Where the records of ordinary CSV end: its quotes are around whole cells, and none of its lines begins with a
 * carriage return. Undefined for any other, and for a quote that stays open for nearly `maxQuotedBytes`.
 */
export function scanOrdinary(
  buffer: Buffer,
  start: number,
  limit: number,
  { delimiter, maxQuotedBytes }: { readonly delimiter: number; readonly maxQuotedBytes: number },
): OrdinaryEnds | undefined {
  program ??= loadProgram<Program>(ordinary);
  const { memory, begin, scan, last, records, lines, ends, quoted, plain } = program;
  const window = new Uint8Array(memory.buffer);
  begin(delimiter, maxQuotedBytes - step);
  for (let at = start; at < limit; at += window.length) {
    const bytes = buffer.subarray(at, Math.min(limit, at + window.length));
    window.set(bytes);
    window.fill(0, bytes.length, Math.ceil(bytes.length / step) * step);
    if (!scan(bytes.length)) return undefined;
  }
  return {
    last: last.value < 0 ? -1 : start + last.value,
    records: records.value,
    lines: lines.value,
    multiLine: lines.value > ends.value,
    plainCells: plain.value === 1,
    open: quoted.value !== 0n,
  };
}
