import { Dictionary } from './dictionary.ts';

export interface Column {
  readonly id: string;
  /** How many buffers of a record batch it has (Arrow's Columnar format). */
  readonly buffers: number;
  /** Takes the values of a record batch: its buffers without the first one. */
  add(buffers: readonly Bytes[], rows: number, at: number): void;
  /** Makes room for this many rows. */
  reserve(rows: number): void;
}

type Bytes = Uint8Array<ArrayBuffer>;

export class TextColumn implements Column {
  readonly id: string;
  readonly buffers = 3;
  readonly dictionary = new Dictionary();
  codes = new Uint32Array(0);

  constructor(id: string) {
    this.id = id;
  }

  reserve(rows: number): void {
    const codes = new Uint32Array(rows);
    codes.set(this.codes);
    this.codes = codes;
  }

  add([offsets, texts]: readonly Bytes[], rows: number, at: number): void {
    if (!offsets || !texts) throw new Error(`${this.id} is cut off`);
    // They lie anywhere in the message; numbers of 32 bits need a place of their own.
    const ends = new Int32Array(offsets.slice().buffer);
    if (rows > 0 && ends.length <= rows) throw new Error(`${this.id} is cut off`);
    this.dictionary.encode(texts, ends, rows, this.codes, at);
  }

  text(row: number): string {
    return this.dictionary.texts[this.codes[row] ?? 0] ?? '';
  }
}

/** Whole numbers of 10^-scale, exact: 64 bits each, and the few that are larger beside. */
export class NumberColumn implements Column {
  readonly id: string;
  readonly buffers = 2;
  readonly scale: number;
  private units = new BigInt64Array(0);
  private readonly wide = new Map<number, bigint>();

  constructor(id: string, scale: number) {
    this.id = id;
    this.scale = scale;
  }

  reserve(rows: number): void {
    const units = new BigInt64Array(rows);
    units.set(this.units);
    this.units = units;
  }

  add([values]: readonly Bytes[], rows: number, at: number): void {
    const words = new BigInt64Array((values ?? new Uint8Array(0)).slice().buffer);
    const perValue = this.scale === 0 ? 1 : 2;
    if (words.length < rows * perValue) throw new Error(`${this.id} is cut off`);
    if (perValue === 1) {
      this.units.set(words.subarray(0, rows), at);
      return;
    }
    const halves = new Int32Array(words.buffer);
    for (let n = 0; n < rows; n++) {
      const low = words[2 * n] ?? 0n;
      this.units[at + n] = low;
      // The upper half only repeats the sign, or the number is larger than 64 bits.
      const sign = (halves[4 * n + 1] ?? 0) >> 31;
      if (halves[4 * n + 2] !== sign || halves[4 * n + 3] !== sign) {
        this.wide.set(at + n, ((words[2 * n + 1] ?? 0n) << 64n) | BigInt.asUintN(64, low));
      }
    }
  }

  value(row: number): bigint {
    return (this.wide.size > 0 ? this.wide.get(row) : undefined) ?? this.units[row] ?? 0n;
  }

  /** The sum over these rows. */
  sum(rows: Uint32Array): bigint {
    let sum = 0n;
    let part = 0;
    for (const row of rows) {
      const value = this.value(row);
      const number = Number(value);
      // Exact as long as everything stays within 53 bits; BigInt for each row took five times as long.
      if (Math.abs(number) < 2 ** 40) {
        part += number;
        if (Math.abs(part) > 2 ** 52) {
          sum += BigInt(part);
          part = 0;
        }
      } else sum += value;
    }
    return sum + BigInt(part);
  }
}
