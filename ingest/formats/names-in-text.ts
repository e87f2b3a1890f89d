/** Looks for names of members in a JSON text while it is read. It only says that a name is nowhere, never that it is there. */
export class NamesInText {
  /** Of each name that was not seen yet the parts that are still missing, for each way to find it. */
  readonly #unseen = new Map<string, Buffer[][]>();
  readonly #longest: number;
  #tail: Buffer = Buffer.alloc(0);
  /** The text has been read to its end. */
  ended = false;

  /** @param names each as the ways to find it: names that lead to it, one in the other */
  constructor(names: ReadonlyMap<string, readonly (readonly string[])[]>) {
    for (const [name, ways] of names) {
      // A slash may be written with a backslash before it.
      if (name.includes('/')) continue;
      this.#unseen.set(
        name,
        ways.map((parts) => parts.map((part) => Buffer.from(JSON.stringify(part)))),
      );
    }
    this.#longest = Math.max(0, ...[...this.#unseen.values()].flat(2).map(({ length }) => length));
  }

  /** Names that are nowhere in what was read. */
  get unseen(): readonly string[] {
    return [...this.#unseen.keys()];
  }

  /** Takes in what was read; nothing, at the end. */
  read(bytes: Buffer): void {
    this.ended = bytes.length === 0;
    if (this.#unseen.size === 0 || this.ended) return;
    const border = Buffer.concat([this.#tail, bytes.subarray(0, this.#longest)]);
    const has = (part: Buffer) => bytes.includes(part) || border.includes(part);
    // Such an escape may stand for any letter of any name.
    if (has(anyLetter)) this.#unseen.clear();
    for (const [name, ways] of this.#unseen) {
      const left = ways.map((parts) => parts.filter((part) => !has(part)));
      if (left.some((parts) => parts.length === 0)) this.#unseen.delete(name);
      else this.#unseen.set(name, left);
    }
    this.#tail = Buffer.concat([this.#tail, bytes.subarray(-this.#longest)]).subarray(-this.#longest);
  }
}

const anyLetter = Buffer.from('\\u');
