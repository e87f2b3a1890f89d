import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { mappingFingerprint } from '../../../ingest/event/mapping.ts';
import type { Input } from '../../../ingest/input/input.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import {
  type FoundFile,
  noteFollowed,
  noteLook,
  notFollowed,
  timeOfStore,
} from '../../../ingest/ledger/followed-files.ts';
import { say } from '../command/command.ts';
import { type EventLoads, loadAll } from './load-all.ts';

/** A file of this machine that was written to within this time may be incomplete; an object never is. */
const quietMs = 10_000;
/** A file that fails is tried again one look later, then two, then four, and so on. */
const mostLooksBetween = 64;
/** Looks are noted no oftener. */
const noteEveryMs = 30_000;

interface Found extends FoundFile {
  readonly input: Input;
  readonly modified: Date;
}

/**
 * Looks for new files until the signal, and loads them. What was loaded before is known by name and version and not read
 * again; whether something counts is for the ledger to say. A file that fails is named and tried again later; the others
 * are loaded.
 * @param followed what is followed, as it is shown, and how often
 * @throws what the first look meets, such as keys that are not accepted
 */
export async function follow(
  loads: EventLoads,
  find: () => Promise<Input[]>,
  followed: { readonly places: string; readonly everyMs: number },
): Promise<void> {
  const { store, signal } = loads;
  const { everyMs } = followed;
  const reading = readingOf(loads);
  const failures = new Failures();
  let problem = '';
  let notedAt = Number.NEGATIVE_INFINITY;
  for (let look = 0; !signal.aborted; look++) {
    try {
      const lookedAt = await timeOfStore(store);
      const found = (await find()).flatMap(lookAt).sort((a, b) => (a.name < b.name ? -1 : 1));
      const fresh = await notFollowed(store, reading, found);
      if (look === 0) say(`looking for files every ${everyMs / 1000} s; Ctrl-C ends it`);
      const due = new Map(
        fresh.filter((each) => failures.isDue(each, look)).map((each) => [each.input, each]),
      );
      if (due.size > 0) {
        await loadAll(loads, [...due.keys()], {
          onLoaded: async (input, { loadId = '' }) => {
            const { name = '', version = '', modified = new Date(0) } = due.get(input) ?? {};
            const modifiedAt = modified.getTime();
            await noteFollowed(store, { reading, name, version, load: loadId, modifiedAt, lookedAt });
          },
          onFailed: (input, { message }) => {
            if (failures.add(due.get(input), look))
              say(`${message}; the other files are loaded, and this one is tried again later`);
          },
        });
      }
      if (performance.now() >= notedAt + noteEveryMs) {
        await noteLook(store, followed, lookedAt);
        notedAt = performance.now();
      }
      problem = '';
    } catch (error) {
      if (signal.aborted) break;
      if (look === 0 || !(error instanceof Error)) throw error;
      // Said once, however long it lasts.
      if (error.message !== problem) say(`${error.message}; trying again`);
      problem = error.message;
    }
    await delay(everyMs, undefined, { signal }).catch(() => {});
  }
  say('stopped; what was loaded is not read again');
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

/** Nothing of what is gone since it was listed, may be incomplete, or can be read only once. */
function lookAt(input: Input): Found[] {
  try {
    if (input.size() === undefined || !input.look) return [];
    const { version, modified } = input.look();
    if (input instanceof LocalFile && Date.now() - modified.getTime() < quietMs) return [];
    return [{ input, name: input.name, version, modified }];
  } catch {
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
