import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Store } from '../../clickhouse/client.ts';
import {
  type Packing,
  packed,
  parquetByClickHouse,
  parquetByDuckDb,
  type TextFormat,
  textFile,
} from './event-files.ts';
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

/** Writes a file of random format, packing and records whose accounts begin with a text; some of them grow. */
export async function writeRoundFile(
  { store, folder }: { readonly store: Store; readonly folder: string },
  prefix: string,
  dice: Dice,
  ids: boolean,
): Promise<RoundFile> {
  const seed = dice.below(2 ** 31);
  const count = 1 + dice.below(dice.one([5, 300, 3000]));
  const format = dice.one(['ndjson', 'csv', 'tsv', 'parquet'] as const);
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
  return writeTextFile(store, join(folder, name), format, dice, seed, events);
}

async function writeTextFile(
  store: Store,
  name: string,
  format: TextFormat,
  dice: Dice,
  seed: number,
  events: readonly WrittenEvent[],
): Promise<RoundFile> {
  const packing: Packing = dice.one(['none', 'none', 'gz', 'zst', 'br']);
  const path = `${name}.${format}${packing === 'none' ? '' : `.${packing}`}`;
  const text = textFile(format, events, seed);
  const whole = await packed(store.address, packing, text);
  const grows = dice.below(3) === 0 && events.length > 1;
  if (!grows) {
    await writeFile(path, whole);
    return { path, events, whole };
  }
  // Up to the end of a record.
  const first = textFile(format, events.slice(0, 1 + dice.below(events.length - 1)), seed).replace(
    /[\r\n]+$/,
    '',
  );
  if (!text.startsWith(first)) throw new Error('the first records must be the beginning of the file');
  const before = await packed(store.address, packing, `${first}\n`);
  await writeFile(path, before);
  return { path, events, whole };
}
