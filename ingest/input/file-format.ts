import { basename } from 'node:path';
import { InputError } from './input-error.ts';

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

export type Compression = 'none' | 'gzip' | 'zstd' | 'brotli';

const compressions: Readonly<Record<string, Compression>> = { gz: 'gzip', zst: 'zstd', br: 'brotli' };

const workbook = 'Excel workbooks cannot be read; save the sheet as "CSV UTF-8"';
const archive = 'archives cannot be read; unpack it first';
/** What to do with files that people try. */
const adviceFor: Readonly<Record<string, string>> = {
  xlsx: workbook,
  xls: workbook,
  zip: archive,
  tar: archive,
  tgz: archive,
};

export interface FileFormat {
  readonly format: Format;
  readonly compression: Compression;
}

/**
 * The format of a file by its name; `forced` wins over the name. Standard input (`-`) is NDJSON unless forced.
 * `compression` is what the name says; the first bytes may say otherwise (see `openBytes`).
 * @throws {InputError} when the name does not tell the format and none is forced, and for packed Parquet
 */
export function formatOf(file: string, forced?: Format['name']): FileFormat {
  const endings = basename(file).toLowerCase().split('.').slice(1);
  const compression = compressions[endings.at(-1) ?? ''] ?? 'none';
  const ending = endings.at(compression === 'none' ? -1 : -2) ?? '';
  const name = forced ?? (file === '-' ? 'ndjson' : extensions[ending]);
  if (!name) {
    const advice = adviceFor[ending];
    if (advice) throw new InputError(`${file}: ${advice}`);
    const known = Object.keys(extensions).map((known) => `.${known}`);
    const packed = Object.keys(compressions).map((known) => `.${known}`);
    throw new InputError(
      `${file}: the name does not tell the format; end it in ${known.join(', ')} (${packed.join(', ')} may follow) or pass --format`,
    );
  }
  if (name === 'parquet' && compression !== 'none') {
    throw new InputError(`${file}: Parquet is compressed inside; unpack it first`);
  }
  return { format: formats[name], compression };
}
