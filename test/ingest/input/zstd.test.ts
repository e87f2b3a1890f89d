import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { unpackZstd } from '../../../ingest/input/zstd.ts';
import { zstd } from '../../support/zstd.ts';
import { flipBits, unpack } from '../../support/zstd-bits.ts';

// In every third byte one bit, from byte to byte another; zstd.thorough.test.ts flips all.
flipBits(23);

test.each([1, 7, 1000])(
  'all frames are read, also between what is to be skipped (%i bytes at a time)',
  async (bytes) => {
    const whole = await unpack(zstd());
    const skipped = Buffer.from('502a4d18030000006162635f2a4d1800000000', 'hex');
    const packed = Buffer.concat([skipped, zstd(), skipped, zstd(), skipped]);
    expect(await unpack(packed, bytes)).toEqual(Buffer.concat([whole, whole]));
    for (const end of [1, 9, 30]) {
      await expect(unpack(packed.subarray(0, -end), bytes)).rejects.toThrow(/it is truncated/);
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

test('a body in many blocks of a byte each keeps nobody else waiting', async () => {
  const [frame, block, last] = ['28b52ffd0078', '08000061', '09000061'];
  let turns = 0;
  const count = () => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const turnsAt: number[] = [];
  const packed = Readable.from([Buffer.from(`${frame}${block.repeat(20)}${last}`, 'hex')]);
  for await (const bytes of unpackZstd(packed)) if (`${bytes}` === 'a') turnsAt.push(turns);
  clearImmediate(next);
  // The first blocks come together.
  expect(new Set(turnsAt).size).toBeGreaterThan(15);
});
