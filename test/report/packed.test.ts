import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { decompress } from 'fzstd';
import { describe, expect, test } from 'vitest';
import { pack } from '../../src/report/kept/packed.ts';
import type { ContentCoding } from '../../src/report/stream.ts';
import { envelopeHead } from '../../src/report/template.ts';
import { seededRandom } from '../support/random.ts';

const plain: Record<ContentCoding, (packed: Buffer) => Uint8Array> = {
  identity: (packed) => packed,
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: (packed) => decompress(packed),
};
const codings = Object.keys(plain) as ContentCoding[];
const heads = ['2026-11-22 02:00:00 UTC', '2027-01-31 23:59:59 UTC'].map((time) =>
  Buffer.from(envelopeHead(time)),
);

const row = (n: number) =>
  `{"campaign":"Käse ${(n * 7919) % 101} 😀","last_update_time":"2026-11-22","spent":${n * n}}`;
const rows = (count: number) =>
  Buffer.from(`"rows":[${Array.from({ length: count }, (_, n) => row(n)).join(',')}]}`);

describe.each(codings)('a body in %s', (coding) => {
  test.each([0, 1, 50, 8_000])('of %i rows is packed once and read behind any head', async (count) => {
    const body = rows(count);
    const packed = await pack(coding, body, heads[0]?.length ?? 0);
    for (const head of heads) {
      const sent = Buffer.concat(packed.after(head));
      expect(Buffer.from(plain[coding](sent)).equals(Buffer.concat([head, body]))).toBe(true);
    }
  });

  test('needs no head', async () => {
    for (const body of [Buffer.from('a,b\n1,2\n'), rows(3_000), Buffer.from([0, 255, 254, 0, 0])]) {
      const sent = Buffer.concat((await pack(coding, body, 0)).after(Buffer.alloc(0)));
      expect(Buffer.from(plain[coding](sent)).equals(body)).toBe(true);
    }
  });
});

test('what follows a head never repeats any of it', async () => {
  const random = seededRandom(7);
  const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = heads;
  for (let n = 0; n < 300; n++) {
    const character = () =>
      String.fromCharCode(32 + Math.floor(random() ** 3 * 90)).repeat(1 + Math.floor(random() * 6));
    // Pieces of heads, too: what a packer would like best to repeat.
    const piece = () => (random() < 0.1 ? first.toString().slice(Math.floor(random() * 40)) : character());
    const body = Buffer.from(Array.from({ length: n }, piece).join(''));
    const packed = await pack('br', body, first.length);
    const read = brotliDecompressSync(Buffer.concat(packed.after(second)));
    expect(read.equals(Buffer.concat([second, body]))).toBe(true);
  }
});
