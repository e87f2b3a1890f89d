import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Store, storeTime } from '../../../clickhouse/client.ts';
import { retrying } from '../../../clickhouse/retry.ts';
import type { Input } from '../../../ingest/input/input.ts';
import { fileError, hasOtherBytes, isOfNothing } from '../../../ingest/input/input-error.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import {
  type FoundFile,
  noteFollowed,
  noteLook,
  notFollowed,
} from '../../../ingest/ledger/followed-files.ts';
import { usage } from '../command/arguments.ts';
import { say } from '../command/command.ts';

/** A file of this machine that was written to within this time may be incomplete; an object never is. */
const quietMs = 10_000;
/** A file that fails is tried again one look later, then two, then four, and so on. */
const mostLooksBetween = 64;
/** Looks are noted no oftener. */
const noteEveryMs = 30_000;
/** Containers are given a minute to stop. */
const noteRetryMs = 30_000;
/** A follower tries again by itself. */
const advice = /([.:] run the same command again( to continue)?)?[.]?$/i;

interface Found extends FoundFile {
  readonly input: Input;
  readonly modified: Date;
}

export interface Follower {
  readonly store: Store;
  readonly signal: AbortSignal;
  /** What is followed, as it is shown. */
  readonly places: readonly string[];
  readonly everyMs: number;
  /** What differs where the same file gives something else. */
  readonly reading: string;
  /** Whether an unload may have taken back what was loaded, so that all of it is loaded anew. */
  readonly canBeUnloaded: boolean;
  /** @param onFailed called for each place that fails; absent: the first such failure is thrown */
  readonly find: (onFailed?: (error: Error) => void) => Promise<Input[]>;
  /** Loads files, those written earlier first, and tells of each that it is loaded, or cannot be. */
  readonly load: (files: readonly Input[], told: Told) => Promise<unknown>;
}

export interface Told {
  readonly onLoaded: (input: Input, load?: { readonly loadId?: string }) => Promise<void>;
  readonly onFailed: (input: Input, error: Error) => void;
}

/**
 * Looks for new files until the signal, and loads them. What was loaded before is known by name and version and not read
 * again; whether an event counts is for the ledger to say. A file that fails is named and tried again later; the others
 * are loaded.
 * @throws what the first look meets, such as keys that are not accepted
 */
export async function follow(follower: Follower): Promise<void> {
  const { store, signal, everyMs, reading } = follower;
  if (follower.places.includes('-')) throw usage('--follow: standard input (-) ends by itself');
  const places = follower.places.join(' ');
  const failures = new Failures();
  const ahead = new Set<string>();
  const onAhead = (name: string) => {
    if (!ahead.has(name))
      say(`${name}: its time of writing is in the future; the file is read when that time has passed`);
    ahead.add(name);
  };
  let said = new Set<string>();
  let notedAt = Number.NEGATIVE_INFINITY;
  for (let look = 0; !signal.aborted; look++) {
    const problems = new Set<string>();
    let isWhole = true;
    const tell = ({ message }: Error, file = '') => {
      // Another fault may be of all files, as that of a folder that may not be entered.
      const isOddName = hasOtherBytes(file);
      isWhole &&= isOddName;
      const outlook = isOddName ? 'the other files are loaded' : 'trying again';
      // Said once, however long it lasts.
      if (!signal.aborted && !said.has(message)) say(`${message}; ${outlook}`);
      problems.add(message);
    };
    try {
      const lookedAt = await storeTime(store);
      const files = await follower.find(look === 0 ? undefined : tell);
      const found = files.flatMap((input) => lookAt(input, follower, onAhead, tell));
      const fresh = await notFollowed(store, follower, found);
      if (look === 0) say(`looking for files every ${everyMs / 1000} s; Ctrl-C ends it`);
      const due = new Map(
        fresh
          .filter((each) => failures.isDue(each, look))
          .sort((a, b) => a.modified.getTime() - b.modified.getTime())
          .map((each) => [each.input, each]),
      );
      if (due.size > 0) {
        await follower.load([...due.keys()], {
          onLoaded: async (input, { loadId = '' } = {}) => {
            const { name = '', version = '', modified = new Date(0) } = due.get(input) ?? {};
            const modifiedAt = modified.getTime();
            const noted = { reading, name, version, load: loadId, modifiedAt, lookedAt };
            await retrying(() => noteFollowed(store, noted), { giveUpAfterMs: noteRetryMs });
          },
          onFailed: (input, { message }) => {
            if (failures.add(due.get(input), look))
              say(
                `${message.replace(advice, '')}; the other files are loaded, and this one is tried again later`,
              );
          },
        });
      }
      if (isWhole && performance.now() >= notedAt + noteEveryMs) {
        await noteLook(store, { places, everyMs }, lookedAt);
        notedAt = performance.now();
      }
    } catch (error) {
      if (signal.aborted) break;
      if (look === 0 || !(error instanceof Error)) throw error;
      tell(error);
    }
    said = problems;
    await delay(everyMs, undefined, { signal }).catch(() => {});
  }
  say('stopped; what was loaded is not read again');
}

/**
 * Nothing of what is gone since it was listed, may be incomplete, or can be read only once.
 * @param onAhead called for a file that seems to be written to in the future
 * @param onFailed called for a file that is there and cannot be looked at
 */
function lookAt(
  input: Input,
  { canBeUnloaded }: Follower,
  onAhead: (name: string) => void,
  onFailed: (error: Error, file: string) => void,
): Found[] {
  try {
    const size = input.size();
    if (size === undefined || !input.look) return [];
    const { version, modified } = input.look();
    if (!(input instanceof LocalFile)) return [{ input, name: input.name, version, modified }];
    const age = Date.now() - modified.getTime();
    if (age < -quietMs) onAhead(input.name);
    if (age < quietMs) return [];
    // A list whose mode, owner or links alone change is no new one: to confirm again would confirm what was loaded since.
    const written = canBeUnloaded ? version : `${size} ${modified.getTime()}`;
    return [{ input, name: resolve(input.name), version: written, modified }];
  } catch (cause) {
    const error = fileError(input.name, cause);
    if (!(error instanceof Error)) throw error;
    if (hasOtherBytes(input.name) || !isOfNothing(cause as NodeJS.ErrnoException))
      onFailed(error, input.name);
    return [];
  }
}

/** Files that could not be loaded, as long as they stay what they are. */
class Failures {
  readonly #failed = new Map<
    string,
    { readonly version: string; readonly pause: number; readonly next: number }
  >();

  isDue({ name, version }: FoundFile, look: number): boolean {
    const failed = this.#failed.get(name);
    return failed?.version !== version || look >= failed.next;
  }

  /** @returns whether it has not failed before */
  add(file: FoundFile | undefined, look: number): boolean {
    if (!file) return true;
    const { name, version } = file;
    const known = this.#failed.get(name);
    const before = known?.version === version ? known.pause : undefined;
    const pause = before === undefined ? 1 : Math.min(before * 2, mostLooksBetween);
    this.#failed.set(name, { version, pause, next: look + pause });
    return before === undefined;
  }
}
