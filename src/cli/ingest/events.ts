import { createHash } from 'node:crypto';
import type { Store } from '../../../clickhouse/client.ts';
import { mappingFingerprint } from '../../../ingest/event/mapping.ts';
import { formatOf } from '../../../ingest/formats/formats.ts';
import { InputError } from '../../../ingest/input/input-error.ts';
import type { ChunkSize } from '../../../ingest/load/load-events.ts';
import { readMapping } from '../../../ingest/mapping/read-mapping.ts';
import { validateMapping } from '../../../ingest/mapping/validate-mapping.ts';
import { dated, hasDate } from '../../../ingest/places/dated.ts';
import { expandFiles } from '../../../ingest/places/expand-files.ts';
import { usage } from '../command/arguments.ts';
import { exitRejected, stopOnSignal } from '../command/command.ts';
import { follow } from './follow.ts';
import { type EventFlags, type EventLoads, loadAll } from './load-all.ts';
import { requireMoveTarget } from './move-loaded.ts';
import { objectStores } from './object-stores.ts';
import { targetOf } from './replacement.ts';

/**
 * `ingest events`: loads files and stops at the first that fails, or follows places. Returns the exit code.
 * A signal stops it after the chunks in flight, a second one at once.
 */
export async function ingestEvents(
  store: Store,
  args: readonly string[],
  flags: EventFlags,
  size: ChunkSize,
): Promise<number> {
  refuseContradictions(args, flags);
  const target = targetOf(flags);
  const mapping = await validateMapping(store, await readMapping(flags));
  const stop = stopOnSignal();
  const { signal } = stop;
  const loads: EventLoads = {
    store,
    flags,
    mapping,
    size,
    signal,
    ...(target && { replaces: { target, files: args.join(' ') } }),
  };
  const stores = objectStores(flags.endpoint);
  const find = async (onFailed?: (error: Error) => void) => {
    const { since, follow } = flags;
    const mayBeMissing = since !== undefined;
    const mayBeEmpty = mayBeMissing || follow !== undefined;
    const how = { mayBeEmpty, mayBeMissing, signal, onFailed };
    const files = await expandFiles(datedPlaces(args, since), stores, how);
    if (flags.moveTo !== undefined) await requireMoveTarget(flags.moveTo, args, files);
    return files;
  };
  try {
    if (flags.follow === undefined) {
      const files = await find();
      if (files.length === 0) throw new InputError(`${args.join(' ')}: no file there`);
      // A file name that does not show the format stops the run before its first file, not halfway.
      for (const file of files) formatOf(file, flags.format);
      return (await loadAll(loads, files)) > 0 ? exitRejected : 0;
    }
    await follow({
      ...{ store, signal, find, places: args, everyMs: flags.follow },
      ...{ reading: readingOf(loads), canBeUnloaded: true },
      load: (files, told) => loadAll(loads, files, told),
    });
    return 0;
  } finally {
    stop.release();
  }
}

/** Places with a date in them as those of all days since a time. */
function datedPlaces(args: readonly string[], sinceMs: number | undefined): readonly string[] {
  if (sinceMs === undefined) return args;
  return args.flatMap((arg) => dated(arg, sinceMs, new Date()));
}

/** @throws wrong usage */
function refuseContradictions(args: readonly string[], { dryRun, moveTo, follow, since }: EventFlags): void {
  if (moveTo !== undefined && dryRun) throw usage('--move-to: --dry-run loads nothing, so nothing is moved');
  if (follow !== undefined && dryRun)
    throw usage('--follow: --dry-run loads nothing, so nothing is followed');
  const [withDate] = args.filter(hasDate);
  if (since === undefined && withDate !== undefined)
    throw usage(`${withDate} has a place for dates: --since 2d says which`);
  const without = args.find((arg) => !hasDate(arg));
  if (since !== undefined && without !== undefined)
    throw usage(`--since: ${without} has no place for dates, such as {yyyy}/{MM}/{dd}`);
}

/** What differs where the same file gives other events. */
function readingOf({ mapping, flags: { format, dedupe } }: EventLoads): string {
  const { encoding, skipLines, records, ignoreUnknown, roundMoney } = mapping;
  const more = { encoding, skipLines, records, ignoreUnknown, roundMoney, format, dedupe };
  return createHash('sha256')
    .update(mappingFingerprint(mapping) + JSON.stringify(more))
    .digest('hex')
    .slice(0, 32);
}
