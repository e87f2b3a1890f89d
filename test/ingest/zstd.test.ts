import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { unpackZstd } from '../../ingest/input/zstd.ts';
import { zstd } from '../support/zstd.ts';

/** Handed over in pieces of this many bytes. */
const unpack = (packed: Buffer, pieceBytes = 1 << 20): Promise<Buffer> =>
  buffer(
    unpackZstd(
      (async function* () {
        for (let at = 0; at < packed.length; at += pieceBytes) yield packed.subarray(at, at + pieceBytes);
      })(),
    ),
  );

test('whichever bit of a frame is wrong, it is an error or changes nothing', async () => {
  const packed = zstd();
  const whole = await unpack(packed);
  expect(whole.toString().split('\n')).toHaveLength(41);
  let harmless = 0;
  for (let bit = 0; bit < packed.length * 8; bit++) {
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
  expect(harmless).toBeLessThan(packed.length * 8 * 0.02);
});

test.each([1, 7, 1000])(
  'all frames are read, also between what is to be skipped (%i bytes at a time)',
  async (bytes) => {
    const whole = await unpack(zstd());
    const skipped = Buffer.from('502a4d18030000006162635f2a4d1800000000', 'hex');
    const packed = Buffer.concat([skipped, zstd(), skipped, zstd(), skipped]);
    expect(await unpack(packed, bytes)).toEqual(Buffer.concat([whole, whole]));
    for (const end of [1, 9, 30]) {
      await expect(unpack(packed.subarray(0, -end), bytes)).rejects.toThrow(/the file is truncated/);
    }
    await expect(unpack(Buffer.concat([packed, whole]), bytes)).rejects.toThrow(/damaged/);
  },
);

test.each([
  ['a window that is too large', '28b52ffd0488', /needs a window of 128 MiB, more than 32 MiB; unpack it/],
  ['a dictionary', '28b52ffd055807', /was packed with a dictionary; unpack it first/],
])('%s is refused', async (_, head, reason) => {
  await expect(unpack(Buffer.concat([Buffer.from(head, 'hex'), Buffer.alloc(20)]))).rejects.toThrow(reason);
});
