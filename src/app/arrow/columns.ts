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
  readonly buffers: number = 3;
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

/** Days as texts, `yyyy-mm-dd`, which come as numbers of days since 1970. */
export class DayColumn extends TextColumn {
  override readonly buffers = 2;
  private readonly known = new Map<number, number>();

  override add([values]: readonly Bytes[], rows: number, at: number): void {
    const days = new Int32Array((values ?? new Uint8Array(0)).slice().buffer);
    if (days.length < rows) throw new Error(`${this.id} is cut off`);
    for (let n = 0; n < rows; n++) this.codes[at + n] = this.code(days[n] ?? 0);
  }

  private code(day: number): number {
    const known = this.known.get(day);
    if (known !== undefined) return known;
    const code = this.dictionary.texts.push(new Date(day * 86_400_000).toISOString().slice(0, 10)) - 1;
    this.known.set(day, code);
    return code;
  }
}

/** Whole numbers of 10^-scale, exact: 64 bits each, and the few that are larger beside. */
export class NumberColumn implements Column {
  readonly id: string;
  readonly buffers = 2;
  readonly scale: number;
  private units = new BigInt64Array(0);
  /** Of each unit its lower and its upper half: a BigInt for each row takes five times as long. */
  private halves = new Int32Array(this.units.buffer);
  private readonly wide = new Map<number, bigint>();

  constructor(id: string, scale: number) {
    this.id = id;
    this.scale = scale;
  }

  reserve(rows: number): void {
    const units = new BigInt64Array(rows);
    units.set(this.units);
    this.units = units;
    this.halves = new Int32Array(units.buffer);
  }

  add([values]: readonly Bytes[], rows: number, at: number): void {
    const bytes = (values ?? new Uint8Array(0)).slice().buffer;
    const perValue = this.scale === 0 ? 2 : 4;
    const from = new Int32Array(bytes);
    if (from.length < rows * perValue) throw new Error(`${this.id} is cut off`);
    const { halves } = this;
    for (let n = 0; n < rows; n++) {
      const source = perValue * n;
      const upper = from[source + 1] ?? 0;
      halves[2 * (at + n)] = from[source] ?? 0;
      halves[2 * (at + n) + 1] = upper;
      // What is above only repeats the sign, or the number is larger than 64 bits.
      const sign = upper >> 31;
      if (perValue === 4 && (from[source + 2] !== sign || from[source + 3] !== sign)) {
        const [low = 0n, high = 0n] = new BigInt64Array(bytes, 16 * n, 2);
        this.wide.set(at + n, (high << 64n) | BigInt.asUintN(64, low));
      }
    }
  }

  value(row: number): bigint {
    return (this.wide.size > 0 ? this.wide.get(row) : undefined) ?? this.units[row] ?? 0n;
  }

  /** Not above the least and not below the greatest of the first rows, to 53 bits: so long their texts get. */
  extent(rows: number): [bigint, bigint] {
    const { halves } = this;
    let least = 0;
    let most = 0;
    for (let row = 0; row < rows; row++) {
      const value = (halves[2 * row + 1] ?? 0) * 2 ** 32 + ((halves[2 * row] ?? 0) >>> 0);
      if (value < least) least = value;
      else if (value > most) most = value;
    }
    let [low, high] = [BigInt(least), BigInt(most)];
    for (const value of this.wide.values()) {
      if (value < low) low = value;
      else if (value > high) high = value;
    }
    return [low, high];
  }

  /** The sum over these rows. */
  sum(rows: Uint32Array): bigint {
    const { halves, wide } = this;
    let sum = 0n;
    let part = 0;
    for (const row of rows) {
      const upper = halves[2 * row + 1] ?? 0;
      // Exact as long as everything stays within 53 bits.
      if (Math.abs(upper) < 2 ** 8 && !(wide.size > 0 && wide.has(row))) {
        part += upper * 2 ** 32 + ((halves[2 * row] ?? 0) >>> 0);
        if (Math.abs(part) > 2 ** 52) {
          sum += BigInt(part);
          part = 0;
        }
      } else sum += this.value(row);
    }
    return sum + BigInt(part);
  }
}
