/**
 * Structs of Thrift's compact protocol, taken apart one level at a time: what is not understood is kept as the
 * bytes it is, so that a struct can be changed in one field and written without loss.
 */
export type Struct = Map<number, Field>;

export interface Field {
  /** The protocol's type; truth values are in it. */
  readonly type: number;
  readonly bytes: Uint8Array;
}

const types = { true: 1, false: 2, byte: 3, i16: 4, i32: 5, i64: 6, double: 7, binary: 8, list: 9, set: 10 };
const struct = 12;

/** The fields of a struct, by number. @throws {RangeError} where the bytes end before it does */
export function fieldsOf(bytes: Uint8Array): Struct {
  return new Reader(bytes).fields();
}

/** The elements of a list of structs. @throws {RangeError} where the bytes are no such list */
export function structsOf({ type, bytes }: Field): Struct[] {
  const reader = new Reader(bytes);
  const { element, size } = reader.listHeader();
  if (type !== types.list || (element !== struct && size > 0)) throw new RangeError('not a list of structs');
  return Array.from({ length: size }, () => reader.fields());
}

export function bytesOf(fields: Struct): Uint8Array {
  const parts: Uint8Array[] = [];
  let before = 0;
  for (const [id, { type, bytes }] of [...fields].sort(([a], [b]) => a - b)) {
    const step = id - before;
    parts.push(
      step < 16 ? Uint8Array.of((step << 4) | type) : Uint8Array.of(type, ...varint(zigzag(id))),
      bytes,
    );
    before = id;
  }
  return Buffer.concat([...parts, Uint8Array.of(0)]);
}

export function structField(fields: Struct): Field {
  return { type: struct, bytes: bytesOf(fields) };
}

export function listField(elements: readonly Struct[]): Field {
  const size = elements.length;
  const header = size < 15 ? [(size << 4) | struct] : [0xf0 | struct, ...varint(BigInt(size))];
  return { type: types.list, bytes: Buffer.concat([Uint8Array.from(header), ...elements.map(bytesOf)]) };
}

export function integerField(value: number): Field {
  return { type: types.i64, bytes: Uint8Array.from(varint(zigzag(value))) };
}

function zigzag(value: number): bigint {
  return BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n));
}

function varint(value: bigint): number[] {
  const bytes: number[] = [];
  for (; value > 0x7fn; value >>= 7n) bytes.push(Number(value & 0x7fn) | 0x80);
  return [...bytes, Number(value)];
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  fields(): Struct {
    const fields: Struct = new Map();
    for (let id = 0, header = this.#byte(); header !== 0; header = this.#byte()) {
      id = header >> 4 ? id + (header >> 4) : this.#zigzag();
      const start = this.#at;
      const type = header & 15;
      if (type > types.false) this.#skip(type);
      fields.set(id, { type, bytes: this.#bytes.subarray(start, this.#at) });
    }
    return fields;
  }

  listHeader(): { element: number; size: number } {
    const header = this.#byte();
    return { element: header & 15, size: header >> 4 === 15 ? this.#varint() : header >> 4 };
  }

  #skip(type: number): void {
    const { true: yes, false: no, byte, i16, i32, i64, double, binary, list, set } = types;
    if ([yes, no, byte].includes(type)) this.#pass(1);
    else if ([i16, i32, i64].includes(type)) while (this.#byte() > 0x7f);
    else if (type === double) this.#pass(8);
    else if (type === binary) this.#pass(this.#varint());
    else if (type === list || type === set) {
      const { element, size } = this.listHeader();
      for (let n = 0; n < size; n++) this.#skip(element);
    } else if (type === struct) this.fields();
    else throw new RangeError(`no Thrift type ${type} is used in Parquet`);
  }

  #pass(count: number): void {
    if (count > this.#bytes.length - this.#at) throw new RangeError('the Thrift data ends too early');
    this.#at += count;
  }

  #byte(): number {
    this.#pass(1);
    return this.#bytes[this.#at - 1] ?? 0;
  }

  #varint(): number {
    let value = 0;
    for (let weight = 1; ; weight *= 128) {
      const byte = this.#byte();
      value += (byte & 0x7f) * weight;
      if (byte < 0x80) return value;
    }
  }

  #zigzag(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}
