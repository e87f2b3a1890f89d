import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { unpackZstd } from '../../ingest/input/zstd.ts';
import { zstd } from './zstd.ts';

/** Handed over in pieces of this many bytes. */
export const unpack = (packed: Buffer, pieceBytes = 1 << 20): Promise<Buffer> =>
  buffer(
    unpackZstd(
      (async function* () {
        for (let at = 0; at < packed.length; at += pieceBytes) yield packed.subarray(at, at + pieceBytes);
      })(),
    ),
  );

/** Flips one bit at a time, of so many the first. */
export function flipBits(everyNth: number): void {
  test('whichever bit of a frame is wrong, it is an error or changes nothing', async () => {
    const packed = zstd();
    const whole = await unpack(packed);
    expect(whole.toString().split('\n')).toHaveLength(41);
    let harmless = 0;
    for (let bit = 0; bit < packed.length * 8; bit += everyNth) {
      const flipped = Buffer.from(packed);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const found = await unpack(flipped).catch((error: Error) => error.message);
      if (typeof found === 'string') expect(found, `bit ${bit}`).toMatch(/^the zstd data /);
      else {
        expect(found.equals(whole), `bit ${bit}`).toBe(true);
        harmless++;
      }
    }
    // The unused bit of the header, and bits of tables that no code uses.
    expect(harmless).toBeLessThan((packed.length * 8 * 0.02) / everyNth);
  });
}
