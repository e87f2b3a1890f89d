import { knownAs, type OpenInput } from '../chunks/sendable-chunk.ts';
import { refuseOtherBytes } from '../delivery/loaded-otherwise.ts';
import { plainReading } from '../event/reading.ts';
import { formatOf } from '../formats/formats.ts';
import { InputError } from '../input/input-error.ts';
import { noCounts } from '../ledger/load.ts';
import { loadFailure } from '../ledger/load-error.ts';
import { countOpenRejects } from '../rejects/rejected-rows.ts';
import { knownChunks } from './known-chunks.ts';
import { type ChunkPlace, type EventLoadOptions, type LoadResult, placeOf } from './load-events.ts';

const notLoaded = new Error('some of it is not loaded');

export interface KnownFile {
  /** See `OpenInput`; undefined where it cannot be read. */
  readonly begins: string | undefined;
  /** Absent where some of it may be new, where it is empty, or cannot be read: loading it tells. */
  readonly loaded: LoadResult | undefined;
}

/**
 * What is known of a file: where it has nothing new, nothing has to be done, and it needs no load. Its content is read
 * and each of its chunks asked for; neither name nor time of the file matters.
 * @param options of an input with a size
 * @param unreadable what is done with an input that cannot be read; absent: it is unknown
 * @throws {LoadError} when ClickHouse fails, {@link Stopped} after a signal
 */
export async function alreadyLoaded(
  options: EventLoadOptions,
  unreadable: (error: InputError) => void = () => {},
): Promise<KnownFile> {
  const { input, signal } = options;
  const counts = noCounts();
  const places: ChunkPlace[] = [];
  let opened: OpenInput | undefined;
  const isNew = (): KnownFile => ({ begins: opened?.begins, loaded: undefined });
  try {
    opened = await formatOf(input, options.format).open(input, {
      reading: options.reading ?? plainReading(input.name),
      onBytes: (bytes) => {
        counts.bytes += bytes;
      },
      ...(signal && { signal }),
    });
    const chunks = opened.chunks(async (head) => {
      const known = await knownChunks(options, head);
      // Before the chunk is cut.
      if (known.length === 0) throw notLoaded;
      return known;
    });
    for await (const chunk of chunks) {
      chunk.release();
      if (options.reading?.key !== undefined) refuseOtherBytes(input.name, chunk);
      const loadedRows = knownAs(chunk)?.loadedRows;
      if (loadedRows === undefined) return isNew();
      places.push(placeOf(chunk));
      counts.repeatedRows += loadedRows;
      counts.chunks++;
    }
    if (places.length === 0) return isNew();
    const ids = places.map(({ id }) => id);
    const openRejects = await countOpenRejects(options, ids);
    options.onProgress?.(counts);
    return { begins: opened.begins, loaded: { ...counts, openRejects, places } };
  } catch (error) {
    if (error === notLoaded) return isNew();
    if (error instanceof InputError) {
      unreadable(error);
      return isNew();
    }
    throw loadFailure(error, input.name, signal);
  } finally {
    await opened?.close();
  }
}
