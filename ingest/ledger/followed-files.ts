import { insertData, type Store, select, selectOne } from '../../clickhouse/client.ts';
import { together } from './batch-calls.ts';

/** A file as a look found it. */
export interface FoundFile {
  readonly name: string;
  /** What differs where the content may. */
  readonly version: string;
}

interface FollowedFile extends FoundFile {
  readonly reading: string;
  readonly load: string;
  /** Milliseconds since 1970. */
  readonly modifiedAt: number;
  /** See `storeTime`. */
  readonly lookedAt: string;
}

/** So many names are asked for at a time, at most. */
const namesAtOnce = 10_000;

/** Notes that all of a file is loaded. */
export const noteFollowed = together<FollowedFile, void>(async (store, files) => {
  await insertData(store, {
    into: 'followed_files (reading, name, version, load_id, modified_at, looked_at)',
    select: `SELECT reading, name, version, load, fromUnixTimestamp64Milli(modifiedAt, 'UTC'), toDateTime64(lookedAt, 6, 'UTC')
      FROM input('reading String, name String, version String, load String, modifiedAt Int64, lookedAt String')`,
    format: 'JSONEachRow',
    data: [files.map((file) => JSON.stringify(file)).join('\n')],
    settings: {},
  });
  return files.map(() => undefined);
});

/**
 * Of some files those that are not known to be loaded in this version, in the order of their names. What can be unloaded does
 * not count as known where it was looked at before the last unload, nor shortly after it: servers have clocks of their own.
 * An object of it that was written anew with the same bytes may be read once more, and counts once. So what is older than all
 * that was found is not asked for: the past of one place may lie between the names of two.
 */
export async function notFollowed<File extends FoundFile & { readonly modified: Date }>(
  store: Store,
  { reading, canBeUnloaded }: { readonly reading: string; readonly canBeUnloaded: boolean },
  files: readonly File[],
): Promise<File[]> {
  const isKnown = canBeUnloaded
    ? `f.modified_at >= fromUnixTimestamp64Milli({oldest:Int64}, 'UTC')
       AND f.looked_at > (SELECT max(l.version) + toIntervalMinute(1) FROM loads AS l WHERE l.state = 'unloaded')`
    : '1';
  // ClickHouse compares bytes; JavaScript has another order of names with emoji.
  const inOrder = files
    .map((file) => ({ file, bytes: Buffer.from(file.name) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ file }) => file);
  const left: File[] = [];
  for (let at = 0; at < inOrder.length; at += namesAtOnce) {
    const some = inOrder.slice(at, at + namesAtOnce);
    const oldest = some.reduce(
      (least, { modified }) => Math.min(least, modified.getTime()),
      Number.POSITIVE_INFINITY,
    );
    const known = new Map(
      (
        await select<FoundFile>(
          store,
          `SELECT name, f.version AS version FROM followed_files AS f FINAL
           WHERE reading = {reading:String} AND name BETWEEN {first:String} AND {last:String}
             AND ${isKnown}`,
          { reading, first: some[0]?.name ?? '', last: some.at(-1)?.name ?? '', oldest },
        )
      ).map(({ name, version }) => [name, version]),
    );
    left.push(...some.filter(({ name, version }) => known.get(name) !== version));
  }
  return left;
}

/** A look is noted beside the files, under this reading, with places as the name and the seconds up to the next as the version. */
const looks = '';

/** Notes that a look has come to its end: what was there when it began is loaded, or fails. */
export async function noteLook(
  store: Store,
  { places, everyMs }: { readonly places: string; readonly everyMs: number },
  lookedAt: string,
): Promise<void> {
  const version = `${Math.ceil(everyMs / 1000)}`;
  await noteFollowed(store, { reading: looks, name: places, version, load: '', modifiedAt: 0, lookedAt });
}

/** What is followed, and when the look behind the last whole one is due. */
interface DueLook {
  readonly places: string;
  /** Seconds since 1970. */
  readonly due: number;
}

/** Of followers that were due within the last 24 hours. */
export function dueLooks(store: Store): Promise<DueLook[]> {
  return select<DueLook>(
    store,
    `SELECT f.name AS places, max(toFloat64(toUnixTimestamp64Milli(f.looked_at)) / 1000 + toFloat64(f.version)) AS due
     FROM followed_files AS f WHERE reading = '${looks}' GROUP BY places HAVING due > toUnixTimestamp(now()) - 86400`,
  );
}

/** What followers have loaded in the last 24 hours. */
export interface LatelyFollowed {
  readonly files: number;
  /** When the last one was loaded, `yyyy-mm-dd hh:mm:ss` in UTC; empty: none was. */
  readonly last_at: string;
  /** For how long it had been there then. */
  readonly waited_seconds: number;
}

/** @throws when ClickHouse does not tell */
export async function latelyFollowed(store: Store): Promise<LatelyFollowed> {
  return selectOne<LatelyFollowed>(
    store,
    `SELECT toFloat64(uniqExact(name)) AS files, if(files = 0, '', toString(toDateTime(max(loaded_at), 'UTC'))) AS last_at,
       toFloat64(greatest(0, dateDiff('second', argMax(modified_at, loaded_at), max(loaded_at)))) AS waited_seconds
     FROM followed_files WHERE reading != '${looks}' AND loaded_at > now64(6) - toIntervalDay(1)`,
  );
}
