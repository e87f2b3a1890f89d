import { createHash } from 'node:crypto';

/**
 * Names the pieces of a file by the hash of their content. Equal records without an event id are several events, so the
 * n-th piece of the same bytes in a file is a piece of its own.
 */
export class Pieces {
  readonly #taken = new Map<string, number>();
  readonly #names = new Set<string>();

  /** The name that the next piece of this content would have. */
  peek(hash: string): string {
    return nameOf(hash, this.#count(hash));
  }

  take(hash: string): string {
    const n = this.#count(hash);
    this.#taken.set(hash, n);
    const name = nameOf(hash, n);
    this.#names.add(name);
    return name;
  }

  /** Whether a piece of that name was taken. */
  has(name: string): boolean {
    return this.#names.has(name);
  }

  #count(hash: string): number {
    return (this.#taken.get(hash) ?? 0) + 1;
  }
}

function nameOf(hash: string, n: number): string {
  return n === 1 ? hash : createHash('sha256').update(`${hash} ${n}`).digest('hex');
}
