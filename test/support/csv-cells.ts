import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { type Store, select } from '../../clickhouse/client.ts';
import { sameNames } from '../../ingest/event/mapping.ts';
import { plainReading } from '../../ingest/event/reading.ts';
import { csv } from '../../ingest/formats/csv.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';

/** A record as the loader takes it apart. */
export interface CutRecord {
  /** Line of the file, from 1. */
  readonly line: number;
  /** None where its quotes are broken. */
  readonly cells: readonly string[];
}

export interface CutFile {
  readonly records: readonly CutRecord[];
  /** Records as they were counted when the chunks were cut. */
  readonly counted: number;
  readonly chunks: number;
  /** How the records of each chunk were taken apart. */
  readonly selects: readonly string[];
}

/** The records and cells of a CSV file without a header, cut by the loader and taken apart by its SQL. */
export async function cutCsv(
  store: Store,
  folder: string,
  content: string | Buffer,
  { delimiter = ',', chunkBytes = 1 << 20 } = {},
): Promise<CutFile> {
  const file = join(folder, 'cells.csv');
  await writeFile(file, content);
  await store.command({
    query: 'CREATE OR REPLACE TABLE cells (line UInt32, cells Array(String)) ENGINE = Memory',
  });
  const { chunks, close } = await csv.open(new LocalFile(file), {
    reading: { ...plainReading(file), delimiter, header: false, mappingOf: sameNames },
    chunkBytes,
    onBytes: () => {},
  });
  let counted = 0;
  const selects: string[] = [];
  for await (const { source, stream, firstLine, rows } of chunks(async () => [])) {
    counted += rows;
    selects.push(source.select);
    const { stream: answer } = await store.exec({
      query: `INSERT INTO cells SELECT at_line, cells FROM (${source.select}) FORMAT ${source.format}`,
      values: Readable.from(stream(), { objectMode: false }),
      query_params: { firstLine },
    });
    await finished(answer.resume());
  }
  await close();
  const records = await select<CutRecord>(store, 'SELECT line, cells FROM cells ORDER BY line');
  return { records, counted, chunks: selects.length, selects };
}
