import type { Store } from '../../clickhouse/client.ts';
import { chunkName } from '../chunks/chunk-chain.ts';
import type { KnownChunk, ReadOptions, SendableChunk } from '../chunks/sendable-chunk.ts';
import { type FormatName, formatOf } from '../formats/formats.ts';
import type { Input } from '../input/input.ts';
import { knownChunks } from '../load/known-chunks.ts';

/** Where chunks are looked for, and how that is read. */
interface LookedThrough extends Omit<ReadOptions, 'chunkBytes'> {
  readonly input: Input;
  /** Absent: by the name of the input. */
  readonly format?: FormatName;
}

/**
 * Finds chunks again where they came from: those whose bytes, and all before them, are still the same. How `reading` maps
 * columns does not matter, only where it lets records end. Reads to the end of the last of them, or to where nothing follows that was ever loaded from there;
 * each has its bytes until the next is asked for.
 * @returns each with the names of chunks that it is: several where it was loaded in several ways
 * @throws {InputError} for an input that cannot be read
 */
export async function* chunksAgain(
  store: Store,
  { input, format, ...options }: LookedThrough,
  names: ReadonlySet<string>,
): AsyncGenerator<{ readonly chunk: SendableChunk; readonly ids: readonly string[] }> {
  const left = new Set(names);
  let sought: readonly KnownChunk[] = [];
  const nameOf = ({ content }: KnownChunk) => chunkName(content, options.reading.fingerprint);
  const known = async (head: string) => {
    const all = await knownChunks({ store }, head);
    sought = all.filter(({ id }) => left.has(id));
    const rank = (each: KnownChunk) => (left.has(each.id) ? 0 : each.id === nameOf(each) ? 1 : 2);
    // Whichever comes next is cut again, however it was read then.
    return all.toSorted((a, b) => rank(a) - rank(b)).map((each) => ({ ...each, id: nameOf(each) }));
  };
  // What was never loaded is not wanted, and cut as small as can be.
  const opened = await formatOf(input, format).open(input, { ...options, chunkBytes: 1 });
  try {
    for await (const chunk of opened.chunks(known)) {
      const ids = sought.filter(({ content }) => content === chunk.content).map(({ id }) => id);
      if (ids.length > 0) yield { chunk, ids };
      chunk.release();
      for (const id of ids) left.delete(id);
      if (left.size === 0 || !chunk.candidates.some(({ matches }) => matches)) return;
    }
  } finally {
    await opened.close();
  }
}
