import { createReadStream, createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Store } from '../../clickhouse/client.ts';
import { formats } from '../../ingest/formats/formats.ts';
import { writeEventFile } from './files.ts';

/** Events that are generated; a larger file repeats them. Two million are 0.7 GB of NDJSON. */
const maxGenerated = 2_000_000;

export const largeFileKinds = ['ndjson', 'csv', 'parquet', 'ndjson.gz'] as const;

interface LargeFile {
  readonly events: number;
  /** Bytes of the file, unpacked. */
  readonly textBytes: number;
}

interface LargeFileOptions {
  readonly events: number;
  readonly seed: number;
  /** Absent: that of the events. */
  readonly bytes?: number;
}

/** Of Parquet without dictionaries and packing, which keep a file of generated events small. */
const parquetEventBytes = 160;

/** Writes a file of at least so many bytes of text. It repeats the same events, but for Parquet, which cannot be joined. */
export async function writeLargeFile(
  store: Store,
  file: string,
  kind: (typeof largeFileKinds)[number],
  { seed, bytes = 0, ...options }: LargeFileOptions,
): Promise<LargeFile> {
  const part = { seed, events: Math.min(options.events, maxGenerated) };
  if (kind === 'parquet') {
    const events = Math.max(part.events, Math.ceil(bytes / parquetEventBytes));
    await writeEventFile(store, file, formats.parquet, { seed, events, plain: bytes > 0 });
    return { events, textBytes: (await stat(file)).size };
  }
  const format = kind === 'csv' ? formats.csv : formats.ndjson;
  const [first, rest] = [`${file}.first`, `${file}.rest`];
  await writeEventFile(store, first, format, part);
  const { size } = await stat(first);
  const header = kind === 'csv' ? await lengthOfLine(first) : 0;
  const times = Math.max(1, Math.ceil(bytes / size));
  await append(first, 0, file, kind);
  // Members of gzip can be joined.
  await append(first, header, rest, kind);
  for (let n = 1; n < times; n++) await append(rest, 0, file, 'joined');
  await Promise.all([rm(first), rm(rest)]);
  return { events: part.events * times, textBytes: size + (times - 1) * (size - header) };
}

async function append(from: string, start: number, to: string, kind: string): Promise<void> {
  const input = createReadStream(from, { start });
  const output = createWriteStream(to, { flags: 'a' });
  await (kind === 'ndjson.gz' ? pipeline(input, createGzip({ level: 1 }), output) : pipeline(input, output));
}

async function lengthOfLine(file: string): Promise<number> {
  for await (const bytes of createReadStream(file, { end: 4095 })) return bytes.indexOf('\n') + 1;
  return 0;
}
