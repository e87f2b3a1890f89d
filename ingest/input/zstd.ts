import { Decompress } from 'fzstd';
import xxhash, { type XXHash } from 'xxhash-wasm';
import { InputError } from './input-error.ts';

const frameMagic = 0xfd2fb528;
const maxBlockBytes = 128 << 10;
/** fzstd misreads what refers back by more than 64 MiB (tried with 112 MiB); up to level 20 it is 32 MiB at most. */
const maxWindowBytes = 32 << 20;

/**
 * Unpacks zstd (RFC 8878), any number of frames, and verifies the checksum of every frame that has one. The
 * walk along the frames is ours because fzstd verifies no checksum, and zlib of Node stops silently after the first
 * of several frames (tried on 24.21). Holds a block and the window of a frame.
 * @throws {InputError} without the file's name, for data that is damaged or truncated; what came before it has been
 * passed on then
 */
export async function* unpackZstd(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const { create64 } = await xxhash();
  const input = new Bytes(source);
  do {
    const magic = await input.take(4);
    const kind = magic.readUInt32LE();
    if (kind >>> 4 === 0x184d2a5) await input.skip((await input.take(4)).readUInt32LE());
    else if (kind === frameMagic) yield* unpackFrame(input, magic, create64());
    else throw damaged();
  } while (!(await input.ended()));
}

async function* unpackFrame(input: Bytes, magic: Buffer, checksum: XXHash<bigint>): AsyncGenerator<Buffer> {
  const { bytes: header, contentBytes, hasChecksum } = await frameHeader(input);
  const unpacked: Buffer[] = [];
  const zstd = new Decompress((data) =>
    unpacked.push(Buffer.from(data.buffer, data.byteOffset, data.length)),
  );
  let pending = Buffer.concat([magic, header]);
  let length = 0n;
  for (let last = false; !last; pending = Buffer.alloc(0)) {
    const blockHeader = await input.take(3);
    const [kind, size] = [(blockHeader.readUIntLE(0, 3) >> 1) & 3, blockHeader.readUIntLE(0, 3) >> 3];
    if (kind === 3 || size > maxBlockBytes) throw damaged();
    last = (blockHeader.readUIntLE(0, 3) & 1) === 1;
    const block = await input.take(kind === 1 ? 1 : size);
    const sum = last && hasChecksum ? await input.take(4) : Buffer.alloc(0);
    try {
      zstd.push(Buffer.concat([pending, blockHeader, block, sum]), last);
    } catch (cause) {
      throw damaged(cause);
    }
    for (const data of unpacked) {
      checksum.update(data);
      length += BigInt(data.length);
    }
    if (last && contentBytes !== undefined && length !== contentBytes) throw damaged();
    if (sum.length > 0 && sum.readUInt32LE() !== Number(checksum.digest() & 0xffffffffn)) throw damaged();
    yield* unpacked.splice(0);
  }
}

interface FrameHeader {
  readonly bytes: Buffer;
  readonly contentBytes: bigint | undefined;
  readonly hasChecksum: boolean;
}

async function frameHeader(input: Bytes): Promise<FrameHeader> {
  const descriptor = await input.take(1);
  const flags = descriptor.readUInt8();
  const oneSegment = (flags & 0x20) !== 0;
  const window = await input.take(oneSegment ? 0 : 1);
  const dictionary = await input.take([0, 1, 2, 4][flags & 3] ?? 0);
  const size = await input.take([oneSegment ? 1 : 0, 2, 4, 8][flags >> 6] ?? 0);
  if (flags & 0x08) throw damaged();
  if (dictionary.some((byte) => byte !== 0)) {
    throw new InputError('the zstd data was packed with a dictionary; unpack it first');
  }
  const contentBytes = contentSize(size);
  const windowBytes = oneSegment ? Number(contentBytes) : windowSize(window.readUInt8());
  if (windowBytes > maxWindowBytes) {
    throw new InputError(
      `the zstd data needs a window of ${Math.ceil(windowBytes / 2 ** 20)} MiB, more than ${maxWindowBytes >> 20} MiB; unpack it first`,
    );
  }
  return {
    bytes: Buffer.concat([descriptor, window, dictionary, size]),
    contentBytes,
    hasChecksum: (flags & 0x04) !== 0,
  };
}

function contentSize(field: Buffer): bigint | undefined {
  switch (field.length) {
    case 0:
      return undefined;
    case 2:
      return BigInt(field.readUInt16LE() + 256);
    case 8:
      return field.readBigUInt64LE();
    default:
      return BigInt(field.readUIntLE(0, field.length));
  }
}

function windowSize(byte: number): number {
  const base = 2 ** (10 + (byte >> 3));
  return base + (base / 8) * (byte & 7);
}

function damaged(cause?: unknown): InputError {
  return new InputError('the zstd data is damaged', { cause });
}

/** Reads a stream by exact numbers of bytes. */
class Bytes {
  readonly #source: AsyncIterator<Buffer>;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async ended(): Promise<boolean> {
    while (this.#buffer.length === 0) if (!(await this.#read())) return true;
    return false;
  }

  async take(length: number): Promise<Buffer> {
    while (this.#buffer.length < length) {
      if (!(await this.#read())) {
        throw new InputError('the zstd data ends too early: the file is truncated');
      }
    }
    const taken = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    return taken;
  }

  async skip(length: number): Promise<void> {
    for (let left = length; left > 0; ) {
      left -= (await this.take(Math.min(left, maxBlockBytes))).length;
    }
  }

  async #read(): Promise<boolean> {
    const { value, done } = await this.#source.next();
    if (done) return false;
    this.#buffer = this.#buffer.length === 0 ? value : Buffer.concat([this.#buffer, value]);
    return true;
  }
}
