import avro, { type Schema } from 'avsc';

/** A file as `avsc` writes it, in blocks of some 600 bytes, with the schema as it is given and always the same sync marker. */
export async function avroFile(
  schema: Schema,
  records: readonly object[],
  { codec = 'null', blockSize = 600 } = {},
): Promise<Buffer> {
  const options = {
    codec,
    blockSize,
    syncMarker: Buffer.from('a marker of 16 b'),
    writeHeader: 'always' as const,
  };
  const encoder = new avro.streams.BlockEncoder(schema, options);
  for (const record of records) encoder.write(record);
  encoder.end();
  const parts: Buffer[] = [];
  for await (const part of encoder) parts.push(part);
  return Buffer.concat(parts);
}

/** The schema of records with fields of these types. */
export const recordOf = (fields: Readonly<Record<string, unknown>>): Schema =>
  ({
    type: 'record',
    name: 'Event',
    namespace: 'ads.log',
    fields: Object.entries(fields).map(([name, type]) => ({ name, type })),
  }) as Schema;
