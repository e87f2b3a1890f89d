import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventFields } from '../../catalog/events.ts';
import type { Store } from '../../clickhouse/client.ts';
import { type Packing, packed, parquetByClickHouse, parquetByDuckDb, textFile } from './event-files.ts';
import { seededRandom } from './random.ts';
import { type WrittenEvent, writtenEvents } from './written-events.ts';

/** A file of a round, and what is in it. */
export interface RoundFile {
  readonly path: string;
  readonly events: readonly WrittenEvent[];
  /** All of it; what lies there at first may be a part. */
  readonly whole: Buffer;
}

/** Choices that depend on the seed alone. */
export class Dice {
  readonly #random: () => number;
  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }
  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }
  one<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0];
  }
}

/** What the files of a round have in common. */
export interface RoundFiles {
  readonly store: Store;
  readonly folder: string;
  /** Every record has an event id. */
  readonly ids: boolean;
  /** The columns have names of their own, which `roundMapping` leads back; then no file is Parquet. */
  readonly mapped: boolean;
}

const expressed = ['impressions', 'referrals', 'conversions', 'spend'];
const mapped = eventFields.filter((name) => !['event_type', 'quantity', ...expressed].includes(name));
const columns = Object.fromEntries([...mapped, ...expressed].map((name) => [name, `My ${name}`]));

/** A mapping file for files with columns of their own: several counts of a record, two kinds of sources. */
export const roundMapping = {
  map: Object.fromEntries(mapped.map((name) => [name, columns[name]])),
  expressions: Object.fromEntries(expressed.map((name) => [name, `{${columns[name]}}`])),
  // A file of a few records may be without any of them.
  optional: Object.values(columns),
};

/** Writes a file of random format, packing and records whose accounts begin with a text; some of them grow. */
export async function writeRoundFile(round: RoundFiles, prefix: string, dice: Dice): Promise<RoundFile> {
  const { store, folder, ids } = round;
  const seed = dice.below(2 ** 31);
  const count = 1 + dice.below(dice.one([5, 300, 3000]));
  const texts = ['ndjson', 'csv', 'tsv'] as const;
  const format = round.mapped ? dice.one(texts) : dice.one([...texts, 'parquet'] as const);
  const types = dice.one(['text', 'whole', 'floating', 'days', 'ClickHouse'] as const);
  const bad = dice.one([0, 0, 0.02, 0.3]);
  const daysOnly = format === 'parquet' && types === 'days';
  const events = writtenEvents({ seed, count, prefix, bad, ids, daysOnly });
  const name = prefix.replaceAll('/', '-');
  if (format === 'parquet') {
    const path = join(folder, `${name}${types}.parquet`);
    if (types === 'ClickHouse') await writeFile(path, await parquetByClickHouse(store, events));
    else await parquetByDuckDb(path, events, types);
    return { path, events, whole: await readFile(path) };
  }
  const textOf = (some: readonly WrittenEvent[]) => textFile(format, some, seed, round.mapped ? columns : {});
  return writeTextFile(store, join(folder, `${name}.${format}`), textOf, dice, events);
}

async function writeTextFile(
  store: Store,
  name: string,
  textOf: (events: readonly WrittenEvent[]) => string,
  dice: Dice,
  events: readonly WrittenEvent[],
): Promise<RoundFile> {
  const packing: Packing = dice.one(['none', 'none', 'gz', 'zst', 'br']);
  const path = packing === 'none' ? name : `${name}.${packing}`;
  const text = textOf(events);
  const whole = await packed(store.address, packing, text);
  const grows = dice.below(3) === 0 && events.length > 1;
  if (!grows) {
    await writeFile(path, whole);
    return { path, events, whole };
  }
  // Up to the end of a record.
  const first = textOf(events.slice(0, 1 + dice.below(events.length - 1))).replace(/[\r\n]+$/, '');
  if (!text.startsWith(first)) throw new Error('the first records must be the beginning of the file');
  const before = await packed(store.address, packing, `${first}\n`);
  await writeFile(path, before);
  return { path, events, whole };
}
