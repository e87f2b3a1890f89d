import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Store } from '../../../clickhouse/client.ts';
import { defaultMapping } from '../../../ingest/event/mapping.ts';
import { mappedReading } from '../../../ingest/event/reading.ts';
import { heldInput } from '../../../ingest/input/held-input.ts';
import { alreadyLoaded } from '../../../ingest/load/already-loaded.ts';
import { parquetByDuckDb, textFile } from '../event-files.ts';
import type { Dice } from '../round-files.ts';
import { type WrittenEvent, writtenEvents } from '../written-events.ts';

interface Version {
  readonly bytes: Buffer;
  readonly events: readonly WrittenEvent[];
}

/** Records that come as objects, as bodies, or as both. Each version begins with the one before. */
export class Content {
  readonly format: 'ndjson' | 'csv' | 'tsv' | 'parquet';
  readonly versions: readonly [Version, ...Version[]];
  /** The version that was shown last, as an object or as a body without a key; -1: none was. No earlier one is shown again. */
  shown = -1;
  /** The version that counts whatever becomes of its objects: the ledger had it, or a sender was told so. */
  settled = -1;
  /** Keys under which it was loaded beside that. */
  readonly keys = new Set<string>();
  /** What became of it, for a message. */
  readonly story: string[] = [];

  constructor(format: Content['format'], versions: Content['versions']) {
    this.format = format;
    this.versions = versions;
  }

  get grows(): boolean {
    return this.versions.length > 1;
  }

  bytesOf(version: number): Buffer {
    return this.#version(version).bytes;
  }

  recordsOf(version: number): readonly WrittenEvent[] {
    return this.#version(version).events;
  }

  note(what: string): void {
    this.story.push(`${new Date().toISOString().slice(17)} ${what}`);
  }

  /** Notes that the version is shown from now on, or a later one. */
  show(version: number): number {
    this.shown = Math.max(this.shown, version);
    return this.shown;
  }

  /** What counts in the end, as often as it does. */
  counted(): readonly WrittenEvent[] {
    const shown = this.shown < 0 ? [] : this.recordsOf(this.shown);
    return [...shown, ...[...this.keys].flatMap(() => this.recordsOf(0))];
  }

  /** Whether the ledger says so of all of the version that was shown last, or of another. */
  async isLoaded(store: Store, version = Math.max(this.shown, 0)): Promise<boolean> {
    const input = heldInput('content', [this.format], this.bytesOf(version));
    const reading = mappedReading('content', defaultMapping, () => {});
    const { loaded } = await alreadyLoaded({ store, input, reading, now: () => new Date() });
    if (loaded) this.settled = Math.max(this.settled, version);
    return loaded !== undefined;
  }

  /** Nothing shows it any more: what the ledger has of it counts, whole versions alone. */
  async leaveOut(store: Store): Promise<void> {
    while (this.shown >= 0 && !(await this.isLoaded(store, this.shown))) this.shown--;
  }

  #version(n: number): Version {
    const found = this.versions[n];
    if (!found) throw new Error(`there is no version ${n}`);
    return found;
  }
}

/** So that an object has more than is read of it at once. */
const wideBytes = 5_600_000;

/** Makes records of a random format, whose accounts begin with a text. */
export async function makeContent(folder: string, prefix: string, dice: Dice): Promise<Content> {
  const seed = dice.below(2 ** 31);
  const wide = dice.below(4) === 0;
  const count = wide ? 20 + dice.below(20) : 1 + dice.below(dice.one([5, 100, 1_500]));
  const events = writtenEvents({ seed, count, prefix, bad: dice.one([0, 0, 0.02, 0.3]) });
  const format = wide ? 'ndjson' : dice.one(['ndjson', 'ndjson', 'csv', 'tsv', 'parquet'] as const);
  if (format === 'parquet') {
    const path = join(folder, `${prefix.replaceAll('/', '-')}.parquet`);
    await parquetByDuckDb(path, events, 'text');
    return new Content(format, [{ bytes: await readFile(path), events }]);
  }
  const blanks = wide ? ' '.repeat(wideBytes / count) : '';
  const textOf = (some: readonly WrittenEvent[]) => {
    const text = textFile(format, some, seed);
    return wide ? text.replaceAll(/^\{/gm, `{${blanks}`) : text;
  };
  const whole = { bytes: Buffer.from(textOf(events)), events };
  if (count === 1 || dice.below(3) > 0) return new Content(format, [whole]);
  const first = events.slice(0, 1 + dice.below(count - 1));
  // Up to the end of a record.
  const begun = `${textOf(first).replace(/[\r\n]+$/, '')}\n`;
  return new Content(format, [{ bytes: Buffer.from(begun), events: first }, whole]);
}
