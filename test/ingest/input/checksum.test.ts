import { expect, test } from 'vitest';
import { checksumOf } from '../../../ingest/chunks/take-chunk.ts';
import { testSeed as seed, seededRandom } from '../../support/random.ts';

test(`other bytes have another checksum, and the same bytes the same (seed ${seed})`, () => {
  const next = seededRandom(seed);
  const below = (max: number) => Math.floor(next() * max);
  const line = () => `{"event_id":"e${below(1e6)}","spend":${below(100)}.${below(100)},"device":"mobile"}\n`;
  for (const length of [0, 1, 63, 64, 65, 1_000, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 3_000_000]) {
    const bytes = Buffer.from(Array.from({ length: length / 40 + 1 }, line).join('')).subarray(0, length);
    const sum = checksumOf(bytes);
    expect(checksumOf(Buffer.from(bytes))).toBe(sum);
    expect(checksumOf(Buffer.concat([bytes, Buffer.alloc(1)]))).not.toBe(sum);
    if (length < 2) continue;
    for (let round = 0; round < 200; round++) {
      const changed = Buffer.from(bytes);
      const at = below(length);
      changed[at] = (bytes[at] ?? 0) ^ (1 << below(8));
      expect.soft(checksumOf(changed), `${length}: bit of byte ${at}`).not.toBe(sum);
      // Bytes that change places, also where they do within their word or by whole words.
      const [from, to, many] = [below(length), below(length), 1 + below(64)];
      const apart = Math.abs(from - to) >= many && Math.max(from, to) + many <= length;
      if (!apart || bytes.subarray(from, from + many).equals(bytes.subarray(to, to + many))) continue;
      const moved = Buffer.from(bytes);
      moved.set(bytes.subarray(from, from + many), to);
      moved.set(bytes.subarray(to, to + many), from);
      expect.soft(checksumOf(moved), `${length}: ${many} bytes of ${from} and ${to}`).not.toBe(sum);
    }
  }
});
