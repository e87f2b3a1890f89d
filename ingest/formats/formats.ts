import { compressionNamed, compressions } from '../input/compression.ts';
import type { Input } from '../input/input.ts';
import { InputError } from '../input/input-error.ts';
import { avro } from './avro.ts';
import { csv, tsv } from './csv.ts';
import type { Format } from './format.ts';
import { ndjson } from './ndjson.ts';
import { parquet } from './parquet.ts';

export const formats = { ndjson, csv, tsv, parquet, avro } as const satisfies Record<string, Format>;

export type FormatName = keyof typeof formats;

const workbook = 'Excel workbooks cannot be read; save the sheet as "CSV UTF-8"';
const archive = 'archives cannot be read; unpack it first';
const packing = 'this packing cannot be read; unpack it first';
/** What to do with files that people try. */
const adviceFor: Readonly<Record<string, string>> = {
  xlsx: workbook,
  xls: workbook,
  zip: archive,
  tar: archive,
  tgz: archive,
  '7z': archive,
  bz2: packing,
  xz: packing,
  lz4: packing,
};

/**
 * The format of an input by its name; `forced` wins over the name.
 * @throws {InputError} when the name does not tell the format and none is forced, and for packed Parquet or Avro
 */
export function formatOf(input: Input, forced?: FormatName): Format {
  const packed = compressionNamed(input) !== 'none';
  const ending = input.endings.at(packed ? -2 : -1) ?? '';
  const all: readonly Format[] = Object.values(formats);
  const format = forced ? formats[forced] : all.find(({ endings }) => endings.includes(ending));
  if (!format) {
    const advice = adviceFor[ending];
    if (advice) throw new InputError(`${input.name}: ${advice}`);
    const known = all.flatMap(({ endings }) => endings).map((known) => `.${known}`);
    const packings = [...compressions.keys()].map((known) => `.${known}`);
    throw new InputError(
      `${input.name}: the name does not tell the format; end it in ${known.join(', ')} (${packings.join(', ')} may follow) or pass --format`,
    );
  }
  if (packed && !format.text)
    throw new InputError(`${input.name}: ${format.clickhouse} is compressed inside; unpack it first`);
  return format;
}
