import { setImmediate as nextTurn } from 'node:timers/promises';
import { Decompress } from 'fzstd';
import xxhash, { type XXHash } from 'xxhash-wasm';
import { ExactBytes } from './exact-bytes.ts';
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
  const input = new ExactBytes(source);
  do {
    const magic = await take(input, 4);
    const kind = magic.readUInt32LE();
    if (kind >>> 4 === 0x184d2a5) await skip(input, (await take(input, 4)).readUInt32LE());
    else if (kind === frameMagic) yield* unpackFrame(input, magic, create64());
    else throw damaged();
  } while (!(await input.ended()));
}

async function* unpackFrame(
  input: ExactBytes,
  magic: Buffer,
  checksum: XXHash<bigint>,
): AsyncGenerator<Buffer> {
  const { bytes: header, contentBytes, hasChecksum } = await frameHeader(input);
  const unpacked: Buffer[] = [];
  const zstd = new Decompress((data) =>
    unpacked.push(Buffer.from(data.buffer, data.byteOffset, data.length)),
  );
  let pending = Buffer.concat([magic, header]);
  let length = 0n;
  for (let last = false; !last; pending = Buffer.alloc(0)) {
    const blockHeader = await take(input, 3);
    const [kind, size] = [(blockHeader.readUIntLE(0, 3) >> 1) & 3, blockHeader.readUIntLE(0, 3) >> 3];
    if (kind === 3 || size > maxBlockBytes) throw damaged();
    last = (blockHeader.readUIntLE(0, 3) & 1) === 1;
    const block = await take(input, kind === 1 ? 1 : size);
    const sum = last && hasChecksum ? await take(input, 4) : Buffer.alloc(0);
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
    // fzstd moves all of the window behind each block, however short that is: 14 ms with 32 MiB. Others go on in between.
    await nextTurn();
  }
}

async function frameHeader(input: ExactBytes) {
  const descriptor = await take(input, 1);
  const flags = descriptor.readUInt8();
  const oneSegment = (flags & 0x20) !== 0;
  const window = await take(input, oneSegment ? 0 : 1);
  const dictionary = await take(input, [0, 1, 2, 4][flags & 3] ?? 0);
  const size = await take(input, [oneSegment ? 1 : 0, 2, 4, 8][flags >> 6] ?? 0);
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
  if (field.length === 0) return undefined;
  if (field.length === 8) return field.readBigUInt64LE();
  return BigInt(field.readUIntLE(0, field.length) + (field.length === 2 ? 256 : 0));
}

function windowSize(byte: number): number {
  const base = 2 ** (10 + (byte >> 3));
  return base + (base / 8) * (byte & 7);
}

function damaged(cause?: unknown): InputError {
  return new InputError('the zstd data is damaged', { cause });
}

async function skip(input: ExactBytes, length: number): Promise<void> {
  for (let left = length; left > 0; left -= maxBlockBytes) await take(input, Math.min(left, maxBlockBytes));
}

/** @throws {InputError} where there are fewer */
async function take(input: ExactBytes, length: number): Promise<Buffer> {
  const bytes = await input.upTo(length);
  if (bytes.length < length) throw new InputError('the zstd data ends too early: it is truncated');
  return bytes;
}
