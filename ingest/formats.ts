import { basename } from 'node:path';

/** How lines or rows are written in a file. */
export interface Format {
  readonly name: 'ndjson' | 'csv' | 'parquet';
  /** The format's name in ClickHouse. */
  readonly clickhouse: 'JSONEachRow' | 'CSVWithNames' | 'Parquet';
}

export const formats: Readonly<Record<Format['name'], Format>> = {
  ndjson: { name: 'ndjson', clickhouse: 'JSONEachRow' },
  csv: { name: 'csv', clickhouse: 'CSVWithNames' },
  parquet: { name: 'parquet', clickhouse: 'Parquet' },
};

const extensions: Readonly<Record<string, Format['name']>> = {
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  json: 'ndjson',
  csv: 'csv',
  parquet: 'parquet',
};

/** An input file cannot be used; the message names it and says why. */
export class InputError extends Error {}

export interface FileFormat {
  readonly format: Format;
  readonly gzip: boolean;
}

/**
 * The format of a file by its name, `.gz` aside; `forced` wins over the name. Standard input (`-`) is NDJSON
 * unless told otherwise.
 * @throws {InputError} when the name says nothing and none is forced
 */
export function formatOf(file: string, forced?: Format['name']): FileFormat {
  const [, stem = '', gz] = /^(.*?)(\.gz)?$/i.exec(basename(file)) ?? [];
  const extension = stem.slice(stem.lastIndexOf('.') + 1).toLowerCase();
  const name = forced ?? (file === '-' ? 'ndjson' : extensions[extension]);
  if (!name) {
    throw new InputError(
      `${file}: the name does not tell the format; end it in ${Object.keys(extensions)
        .map((ext) => `.${ext}`)
        .join(', ')} (also .gz) or pass --format`,
    );
  }
  if (name === 'parquet' && gz) throw new InputError(`${file}: Parquet is compressed inside; unpack the .gz`);
  return { format: formats[name], gzip: gz !== undefined };
}
