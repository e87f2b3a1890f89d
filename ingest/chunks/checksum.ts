import { loadProgram } from './wasm/load.ts';
import { checksum } from './wasm/programs.ts';

interface Program {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly add: (length: number) => void;
}

/** Bytes that the program adds together. */
const step = 64;
const sumsBytes = 128;

let program: Program | undefined;

/**
 * Tells bytes from others, as they are after a change. It takes a fourteenth of the time of sha256 and names nothing:
 * whoever wants to can make other bytes of the same checksum.
 */
export function checksumOf(bytes: Buffer): string {
  program ??= loadProgram<Program>(checksum);
  const { memory, add } = program;
  const sums = new Uint8Array(memory.buffer, 0, sumsBytes).fill(0);
  const window = new Uint8Array(memory.buffer, sumsBytes, 256 << 10);
  for (let at = 0; at < bytes.length; at += window.length) {
    const part = bytes.subarray(at, at + window.length);
    const length = Math.ceil(part.length / step) * step;
    window.set(part);
    window.fill(0, part.length, length);
    add(length);
  }
  return `${bytes.length} ${Buffer.from(sums).toString('base64')}`;
}
