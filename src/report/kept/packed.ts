import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import type { ContentCoding } from '../stream.ts';

/**
 * A body in one coding, packed once, that is sent with a head in front that is new each time. Gzip, zstd and Brotli each
 * allow a block that is not compressed: the head becomes such a block of the same stream, so that any client can read it.
 */
export interface Packed {
  readonly bytes: Buffer;
  /** Body and head, as they are sent. */
  after(head: Buffer): Buffer[];
}

const deflateRaw = promisify(zlib.deflateRaw);
const brotli = promisify(zlib.brotliCompress);

/** @param headBytes the length of the heads to come; Brotli has to know */
export async function pack(coding: ContentCoding, body: Buffer, headBytes: number): Promise<Packed> {
  switch (coding) {
    case 'identity':
      return { bytes: body, after: (head) => [head, body] };
    case 'gzip':
      return gzip(body, await deflateRaw(body));
    case 'zstd':
      return zstd(body);
    case 'br':
      return headBytes === 0 ? wholeBrotli(body) : brotliAfterHead(body, headBytes);
  }
}

/** RFC 1952, RFC 1951 §3.2.4. */
function gzip(body: Buffer, deflated: Buffer): Packed {
  const start = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
  return {
    bytes: deflated,
    after: (head) => {
      const stored = Buffer.alloc(5);
      stored.writeUInt16LE(head.length, 1);
      stored.writeUInt16LE(~head.length & 0xffff, 3);
      const end = Buffer.alloc(8);
      end.writeUInt32LE(zlib.crc32(body, zlib.crc32(head)), 0);
      end.writeUInt32LE(head.length + body.length, 4);
      return [start, stored, head, deflated, end];
    },
  };
}

/** The most a block holds, RFC 8878 §3.1.1.2.4. */
const zstdBlockBytes = 128 * 1024;

/** RFC 8878 §3.1.1. Node.js before 22.15 cannot pack zstd: there every block is stored as it is. */
async function zstd(body: Buffer): Promise<Packed> {
  const blocks = 'zstdCompress' in zlib ? await zstdBlocks(body) : storedBlocks(body);
  // A window of 2 MiB, more than any body that is kept, and neither length nor checksum.
  const start = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0x58]);
  return { bytes: blocks, after: (head) => [start, rawBlock(head, false), blocks] };
}

function storedBlocks(body: Buffer): Buffer {
  const blocks: Buffer[] = [];
  for (let at = 0; at === 0 || at < body.length; at += zstdBlockBytes) {
    blocks.push(rawBlock(body.subarray(at, at + zstdBlockBytes), at + zstdBlockBytes >= body.length));
  }
  return Buffer.concat(blocks);
}

function rawBlock(content: Buffer, last: boolean): Buffer {
  const header = Buffer.alloc(3);
  header.writeUIntLE((content.length << 3) | (last ? 1 : 0), 0, 3);
  return Buffer.concat([header, content]);
}

/** The blocks of a frame, without the frame's header. */
async function zstdBlocks(body: Buffer): Promise<Buffer> {
  const compress: unknown = Reflect.get(zlib, 'zstdCompress');
  if (typeof compress !== 'function') throw new Error('this Node.js cannot pack zstd');
  const frame = await new Promise<Buffer>((resolve, reject) => {
    compress(body, (error: Error | null, packed: Buffer) => (error ? reject(error) : resolve(packed)));
  });
  const descriptor = frame[4] ?? 0;
  const single = (descriptor & 0x20) !== 0;
  const lengthBytes = [single ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  return frame.subarray(5 + (single ? 0 : 1) + lengthBytes, frame.length - (descriptor & 4 ? 4 : 0));
}

async function wholeBrotli(body: Buffer): Promise<Packed> {
  const bytes = await brotli(body, { params: brotliParams });
  return { bytes, after: () => [bytes] };
}

const brotliParams = { [zlib.constants.BROTLI_PARAM_QUALITY]: 5, [zlib.constants.BROTLI_PARAM_LGWIN]: 22 };

/** The bytes that no text in UTF-8 has. */
const noText = [0xc0, 0xc1, ...Array.from({ length: 11 }, (_, n) => 0xf5 + n)];

/**
 * Of the length of a head, and with its last two bytes, by which the next is coded. No pair of bytes is there twice:
 * nothing is packed as a repetition, and what follows can repeat none of it.
 */
function standInForHead(bytes: number): Buffer {
  const standIn = Buffer.alloc(bytes);
  let at = 0;
  for (let n = 0; n < bytes; n++) {
    at = (at + 1 + Math.floor(n / noText.length)) % noText.length;
    standIn[n] = noText[at] ?? 0;
  }
  standIn.write('",', bytes - 2);
  return standIn;
}

/** RFC 7932 §9. The body is packed behind a stand-in for the head, which is then cut off. */
async function brotliAfterHead(body: Buffer, headBytes: number): Promise<Packed> {
  const encoder = zlib.createBrotliCompress({ params: brotliParams });
  const pieces: Buffer[] = [];
  encoder.on('data', (piece: Buffer) => pieces.push(piece));
  encoder.write(standInForHead(headBytes));
  await new Promise<void>((resolve) => encoder.flush(zlib.constants.BROTLI_OPERATION_FLUSH, resolve));
  pieces.length = 0;
  const ended = new Promise((resolve, reject) => encoder.once('end', resolve).once('error', reject));
  encoder.end(body);
  await ended;
  const bytes = Buffer.concat(pieces);
  return {
    bytes,
    after: (head) => {
      // Window 22 (4 bits), not the last (1), four nibbles of length (2 + 16), not compressed (1): three bytes.
      const start = Buffer.alloc(3);
      start.writeUIntLE(0b1011 | ((head.length - 1) << 7) | (1 << 23), 0, 3);
      return [start, head, bytes];
    },
  };
}
