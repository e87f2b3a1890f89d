/** Texts of a column as numbers: equal texts have one number. Bytes are compared, so that a text is decoded once. */
export class Dictionary {
  readonly texts: string[] = [];
  private readonly spellings: Uint8Array[] = [];
  private slots = new Int32Array(1 << 10).fill(-1);
  private hashes: number[] = [];
  private readonly decoder = new TextDecoder('utf-8', { ignoreBOM: true });

  /** The numbers of a batch of texts that lie one behind the other. */
  encode(bytes: Uint8Array, ends: ArrayLike<number>, count: number, into: Uint32Array, at: number): void {
    let last = -1;
    let lastStart = 0;
    let lastEnd = 0;
    for (let n = 0; n < count; n++) {
      const start = ends[n] ?? 0;
      const end = ends[n + 1] ?? 0;
      // Rows are sorted: most texts are those of the row before.
      if (last < 0 || !same(bytes, start, end, bytes, lastStart, lastEnd))
        last = this.find(bytes, start, end);
      into[at + n] = last;
      lastStart = start;
      lastEnd = end;
    }
  }

  private find(bytes: Uint8Array, start: number, end: number): number {
    let hash = 0x811c9dc5;
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
    const mask = this.slots.length - 1;
    for (let slot = (hash ^ (hash >>> 15)) & mask; ; slot = (slot + 1) & mask) {
      const code = this.slots[slot] ?? -1;
      if (code < 0) return this.add(slot, hash, bytes.slice(start, end));
      const known = this.spellings[code];
      if (this.hashes[code] === hash && known && same(bytes, start, end, known, 0, known.length)) return code;
    }
  }

  private add(slot: number, hash: number, spelling: Uint8Array): number {
    const code = this.texts.length;
    this.texts.push(this.decoder.decode(spelling));
    this.spellings.push(spelling);
    this.hashes.push(hash);
    this.slots[slot] = code;
    if (this.texts.length * 2 > this.slots.length) this.grow();
    return code;
  }

  private grow(): void {
    this.slots = new Int32Array(this.slots.length * 2).fill(-1);
    const mask = this.slots.length - 1;
    for (const [code, hash] of this.hashes.entries()) {
      let slot = (hash ^ (hash >>> 15)) & mask;
      while ((this.slots[slot] ?? -1) >= 0) slot = (slot + 1) & mask;
      this.slots[slot] = code;
    }
  }
}

function same(
  a: Uint8Array,
  aStart: number,
  aEnd: number,
  b: Uint8Array,
  bStart: number,
  bEnd: number,
): boolean {
  const length = aEnd - aStart;
  if (length !== bEnd - bStart) return false;
  for (let i = 0; i < length; i++) if (a[aStart + i] !== b[bStart + i]) return false;
  return true;
}
