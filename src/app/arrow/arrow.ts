import { decodeIPCStream, type Field, type RecordBatch } from '@uwdata/flechette/src/decode/decode-ipc.js';
import { type Column, DayColumn, NumberColumn, TextColumn } from './columns.ts';
import { places } from './decimal.ts';

/**
 * Reads an Arrow stream while it arrives: each record batch goes into the columns once it is whole.
 * What the stream promises at its start and does not keep is an error.
 */
export class ArrowRows {
  columns: Column[] = [];
  rows = 0;
  /** Whether the stream has said that it is whole. */
  ended = false;
  private capacity = 0;
  private head = new Uint8Array(8);
  private message: Uint8Array | undefined;
  private filled = 0;
  /** How long the message is: known in two steps, from its head and from its metadata. */
  private wanted = 8;
  private sized = false;

  /** Takes the next bytes, cut anywhere. */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length && !this.ended) {
      const target = this.message ?? this.head;
      const take = Math.min(this.wanted - this.filled, bytes.length - at);
      target.set(bytes.subarray(at, at + take), this.filled);
      this.filled += take;
      at += take;
      if (this.filled === this.wanted) this.advance();
    }
  }

  private advance(): void {
    if (!this.message) {
      const [mark, size] = new Int32Array(this.head.buffer);
      if (mark !== -1 || size === undefined || size < 0) throw new Error('the answer is no Arrow stream');
      if (size === 0) {
        this.ended = true;
        return;
      }
      this.wanted = 8 + size;
      this.message = new Uint8Array(this.wanted);
      this.message.set(this.head);
      this.sized = false;
      return;
    }
    if (!this.sized) {
      const whole = this.wanted + bodyLength(this.message);
      this.sized = true;
      if (whole > this.wanted) {
        const message = new Uint8Array(whole);
        message.set(this.message);
        this.message = message;
        this.wanted = whole;
        return;
      }
    }
    this.take(this.message);
    this.message = undefined;
    this.filled = 0;
    this.wanted = 8;
  }

  private take(message: Uint8Array): void {
    const { schema, records } = decodeIPCStream([message]);
    if (schema) this.columns = schema.fields.map(columnOf);
    for (const batch of records) this.add(batch);
  }

  private add({ length, nodes, regions, compression, body }: RecordBatch): void {
    if (compression) throw new Error('the answer is packed within');
    const rows = this.rows + length;
    if (rows > this.capacity) {
      this.capacity = Math.max(rows, Math.ceil(this.capacity * 1.6));
      for (const column of this.columns) column.reserve(this.capacity);
    }
    let next = 0;
    for (const [n, column] of this.columns.entries()) {
      if (nodes[n]?.nullCount !== 0) throw new Error(`${column.id} has gaps`);
      const buffers = regions.slice(next, next + column.buffers).map(({ offset, length: bytes }) => {
        const start = body.byteOffset + offset;
        return new Uint8Array(body.buffer, start, bytes);
      });
      next += column.buffers;
      // Before its values a column says which of them are there: all.
      column.add(buffers.slice(1), length, this.rows);
    }
    this.rows = rows;
  }
}

function columnOf({ name, type: { typeId, scale, bitWidth } }: Field): Column {
  if (typeId === utf8) return new TextColumn(name);
  if (typeId === date && bitWidth !== 64) return new DayColumn(name);
  if (typeId === integer && bitWidth === 64) return new NumberColumn(name, 0);
  if (typeId === decimal && scale === places && bitWidth === 128) return new NumberColumn(name, places);
  throw new Error(`${name} has a type that this page does not know`);
}

/** Types of Arrow's Schema.fbs. */
const integer = 2;
const utf8 = 5;
const decimal = 7;
const date = 8;

/** `bodyLength` of a Message of Arrow's Message.fbs: its fourth field. */
function bodyLength(message: Uint8Array): number {
  const view = new DataView(message.buffer, message.byteOffset + 8);
  const table = view.getInt32(0, true);
  const fields = table - view.getInt32(table, true);
  const place = 4 + 3 * 2;
  // A field that is as usual, 0, may be left out.
  const field = place < view.getUint16(fields, true) ? view.getUint16(fields + place, true) : 0;
  return field === 0 ? 0 : Number(view.getBigInt64(table + field, true));
}
