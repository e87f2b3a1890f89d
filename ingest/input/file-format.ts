import { basename } from 'node:path';

/** How lines or rows are written in a file. */
export interface Format {
  readonly name: 'ndjson' | 'csv' | 'tsv' | 'parquet';
  /** The format's name in ClickHouse. */
  readonly clickhouse: 'JSONEachRow' | 'CSVWithNames' | 'TabSeparatedWithNames' | 'Parquet';
}

export const formats: Readonly<Record<Format['name'], Format>> = {
  ndjson: { name: 'ndjson', clickhouse: 'JSONEachRow' },
  csv: { name: 'csv', clickhouse: 'CSVWithNames' },
  tsv: { name: 'tsv', clickhouse: 'TabSeparatedWithNames' },
  parquet: { name: 'parquet', clickhouse: 'Parquet' },
};

const extensions: Readonly<Record<string, Format['name']>> = {
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  json: 'ndjson',
  csv: 'csv',
  tsv: 'tsv',
  parquet: 'parquet',
};

/** An input file cannot be used; the message names it and says why. */
export class InputError extends Error {}

export type Compression = 'none' | 'gzip' | 'zstd' | 'brotli';

const compressions: Readonly<Record<string, Compression>> = { gz: 'gzip', zst: 'zstd', br: 'brotli' };

export interface FileFormat {
  readonly format: Format;
  readonly compression: Compression;
}

/**
 * The format of a file by its name; `forced` wins over the name. Standard input (`-`) is NDJSON unless told
 * otherwise.
 * @throws {InputError} when the name says nothing and none is forced
 */
export function formatOf(file: string, forced?: Format['name']): FileFormat {
  const endings = basename(file).toLowerCase().split('.').slice(1);
  const compression = compressions[endings.at(-1) ?? ''] ?? 'none';
  const ending = endings.at(compression === 'none' ? -1 : -2) ?? '';
  const name = forced ?? (file === '-' ? 'ndjson' : extensions[ending]);
  if (!name) {
    const known = Object.keys(extensions).map((known) => `.${known}`);
    const packed = Object.keys(compressions).map((known) => `.${known}`);
    throw new InputError(
      `${file}: the name does not tell the format; end it in ${known.join(', ')} (also ${packed.join(', ')} after it) or pass --format`,
    );
  }
  if (name === 'parquet' && compression !== 'none') {
    throw new InputError(`${file}: Parquet is compressed inside; unpack it first`);
  }
  return { format: formats[name], compression };
}
