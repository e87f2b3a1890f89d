import { setImmediate } from 'node:timers/promises';
import { ExactBytes } from '../input/exact-bytes.ts';
import type { Input, InputReader } from '../input/input.ts';
import { fileError, InputError, naming } from '../input/input-error.ts';
import { piecesOf } from '../input/pieces.ts';

/** Records that follow each other in a file, with their count and size before them and the sync marker behind them. */
export interface AvroBlock {
  /** All of it. */
  readonly bytes: Buffer;
  /** Where it begins in the file. */
  readonly start: number;
  readonly rows: number;
}

const magic = Buffer.from('Obj\x01', 'latin1');
/** Those that ClickHouse unpacks. */
const codecs = ['null', 'deflate', 'snappy', 'zstandard'];
const syncBytes = 16;
/** Writers cut after some kilobytes. A block is held in memory. */
const mostBlockBytes = 256 << 20;
const mostHeaderBytes = 16 << 20;
/** The schema, the codec, and notes of the writer. Each may be two bytes of a file, and is many more in memory. */
const mostHeaderEntries = 1000;

/**
 * Reads an object container file from its beginning to its end, once, and never looks into a block.
 * Source: Apache Avro's specification, "Object Container Files".
 */
export class AvroFile {
  readonly #bytes: Bytes;
  /** Magic bytes, metadata and sync marker: with any of its blocks behind it, it is a file. */
  readonly header: Buffer;
  readonly schema: string;
  readonly #codec: string;

  private constructor(bytes: Bytes, header: Buffer, metadata: ReadonlyMap<string, string>) {
    this.#bytes = bytes;
    this.header = header;
    this.schema = metadata.get('avro.schema') ?? '';
    this.#codec = metadata.get('avro.codec') || 'null';
  }

  /** @throws {InputError} for an input that cannot be read, is no Avro file or is packed in another way */
  static async open(
    input: Input,
    onBytes: (bytes: number) => void,
    signal: AbortSignal | undefined,
  ): Promise<AvroFile> {
    const reader = await naming(input.name, () => input.readFrom(0, signal));
    const bytes = new Bytes(input.name, reader, onBytes);
    try {
      const file = await AvroFile.#read(input.name, bytes);
      if (!codecs.includes(file.#codec)) {
        throw new InputError(
          `${input.name}: is packed with ${file.#codec}, which cannot be read; write it with ${codecs.join(', ')}`,
        );
      }
      return file;
    } catch (error) {
      await bytes.close();
      throw error;
    }
  }

  static async #read(name: string, bytes: Bytes): Promise<AvroFile> {
    const start = await bytes.upTo(magic.length);
    if (!start.equals(magic)) {
      throw new InputError(
        `${name}: is not an Avro file: its first bytes, from byte 0, are not those of one`,
      );
    }
    const metadata = new Map<string, string>();
    const sized = async () => {
      const length = await bytes.long('the header');
      if (length < 0 || length > mostHeaderBytes)
        throw bytes.damaged(`the header is to hold ${length} bytes`);
      return (await bytes.exactly(length, 'the header')).toString();
    };
    for (let entries = 0; ; ) {
      let count = await bytes.long('the header');
      if (count === 0) break;
      if (count < 0) {
        count = -count;
        await bytes.long('the header');
      }
      entries += count;
      if (entries > mostHeaderEntries)
        throw bytes.damaged(
          `the header is to have ${entries} entries; over ${mostHeaderEntries} cannot be read`,
        );
      for (; count > 0; count--) {
        const key = await sized();
        metadata.set(key, await sized());
      }
    }
    await bytes.exactly(syncBytes, 'the header');
    return new AvroFile(bytes, bytes.taken(), metadata);
  }

  /** The next block that has records; undefined at the end of the file. @throws {InputError} for a damaged one */
  async next(): Promise<AvroBlock | undefined> {
    const bytes = this.#bytes;
    for (;;) {
      if (await bytes.ended()) return undefined;
      const start = bytes.position;
      const what = `the block at byte ${start}`;
      const rows = await bytes.long(what);
      const size = await bytes.long(what);
      if (rows < 0 || size < 0) throw bytes.damaged(`${what} is to have ${rows} records in ${size} bytes`);
      if (size > mostBlockBytes) {
        throw bytes.damaged(
          `${what} is to have ${size} bytes; blocks of over ${mostBlockBytes} bytes cannot be read`,
        );
      }
      if (this.#codec === 'null' && rows === 0 && size > 0) {
        throw bytes.damaged(`${what} is to have no records in ${size} bytes`);
      }
      await bytes.exactly(size, what);
      const syncAt = bytes.position;
      const sync = await bytes.exactly(syncBytes, what);
      if (!sync.equals(this.header.subarray(-syncBytes))) {
        throw bytes.damaged(`${what} does not end with the sync marker of the file at byte ${syncAt}`);
      }
      const block = bytes.taken();
      if (rows > 0) return { bytes: block, start, rows };
    }
  }

  /** One with this schema and without the notes of the writer: with any of the blocks behind it, it is a file. */
  headerWith(schema: string): Buffer {
    const sized = (text: string) => [longOf(Buffer.byteLength(text)), Buffer.from(text)];
    const entries = ['avro.schema', schema, 'avro.codec', this.#codec].flatMap(sized);
    return Buffer.concat([magic, longOf(2), ...entries, longOf(0), this.header.subarray(-syncBytes)]);
  }

  close(): Promise<void> {
    return this.#bytes.close();
  }
}

/** A number from 0 on in Avro's zigzag coding. */
function longOf(value: number): Buffer {
  const bytes: number[] = [];
  let left = value * 2;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) + 0x80);
  return Buffer.from([...bytes, left]);
}

/** The bytes of an input, and where in it they are. */
class Bytes extends ExactBytes {
  readonly #file: string;
  readonly #reader: InputReader;
  #taken: Buffer[] = [];

  constructor(file: string, reader: InputReader, onBytes: (bytes: number) => void) {
    super(read(file, reader, onBytes));
    this.#file = file;
    this.#reader = reader;
  }

  /** All that was taken since the last call. */
  taken(): Buffer {
    const all = Buffer.concat(this.#taken);
    this.#taken = [];
    return all;
  }

  override async upTo(length: number): Promise<Buffer> {
    const bytes = await super.upTo(length);
    this.#taken.push(bytes);
    return bytes;
  }

  /** @throws {InputError} where the input ends before */
  async exactly(length: number, what: string): Promise<Buffer> {
    const bytes = await this.upTo(length);
    if (bytes.length < length) throw this.damaged(`it ends at byte ${this.position}, within ${what}`);
    return bytes;
  }

  /** A number in Avro's zigzag coding. */
  async long(what: string): Promise<number> {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const [byte = 0] = await this.exactly(1, what);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) break;
      if (shift > 56n) throw this.damaged(`a number in ${what} has no end at byte ${this.position}`);
    }
    return Number(value & 1n ? -(value >> 1n) - 1n : value >> 1n);
  }

  damaged(what: string): InputError {
    return new InputError(`${this.#file}: is a damaged Avro file: ${what}`);
  }

  close(): Promise<void> {
    return this.#reader.close();
  }
}

async function* read(
  file: string,
  reader: InputReader,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  try {
    for await (const piece of piecesOf(reader)) {
      onBytes(piece.length);
      yield piece;
      // Of what is in memory nothing is waited for, and thousands of blocks may be in a piece.
      await setImmediate();
    }
  } catch (cause) {
    throw fileError(file, cause);
  }
}
