import { writeFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { DuckDBInstance } from '@duckdb/node-api';
import { eventFields } from '../../catalog/events.ts';
import type { Address, Store } from '../../clickhouse/client.ts';
import { seededRandom } from './random.ts';
import type { Fields, WrittenEvent } from './written-events.ts';

export type TextFormat = 'ndjson' | 'csv' | 'tsv';
export type Packing = 'none' | 'gz' | 'zst' | 'br';

/** Columns of the types that a field may have in Parquet, by DuckDB; any other field is text. */
export const duckDbTypes = {
  text: {},
  whole: {
    ...{ event_time: 'TIMESTAMPTZ', quantity: 'BIGINT', ad_requests: 'BIGINT', impressions: 'UBIGINT' },
    ...{
      referrals: 'BIGINT',
      conversions: 'DECIMAL(18, 0)',
      spend: 'DECIMAL(18, 6)',
      revenue: 'DECIMAL(30, 9)',
    },
    ...{ confirmed: 'BOOLEAN', campaign_id: 'BLOB' },
  },
  floating: {
    ...{ event_time: 'TIMESTAMP', quantity: 'DOUBLE', ad_requests: 'DOUBLE', impressions: 'HUGEINT' },
    ...{ spend: 'DOUBLE', revenue: 'DOUBLE', confirmed: 'BOOLEAN', device: 'BLOB' },
  },
  /** Of events whose times are days. */
  days: { event_time: 'DATE', quantity: 'UINTEGER', spend: 'DECIMAL(18, 6)', confirmed: 'BOOLEAN' },
} as const satisfies Record<string, Fields>;

const clickHouseTypes: Fields = {
  ...{ event_time: "DateTime64(3, 'UTC')", quantity: 'UInt64', ad_requests: 'Int64', impressions: 'UInt64' },
  ...{
    referrals: 'Float64',
    conversions: 'Decimal(18, 0)',
    spend: 'Decimal(18, 6)',
    revenue: 'Float64',
    confirmed: 'Bool',
  },
};

/**
 * Records as text, some with an empty line before them.
 * @param columns what a field is called in the file, if not by its own name
 */
export function textFile(
  format: TextFormat,
  events: readonly WrittenEvent[],
  seed: number,
  columns: Fields = {},
): string {
  const random = seededRandom(seed);
  const lineEnd = format === 'tsv' && random() < 0.5 ? '\r\n' : '\n';
  const lines = events.map(
    ({ fields }) => `${random() < 0.1 ? lineEnd : ''}${writers[format](fields, random, columns)}`,
  );
  const header = eventFields.map((name) => columns[name] ?? name).join(format === 'tsv' ? '\t' : ',');
  return [...(format === 'ndjson' ? [] : [header]), ...lines].join(lineEnd) + (random() < 0.5 ? lineEnd : '');
}

const writers: Readonly<
  Record<TextFormat, (fields: Fields, random: () => number, columns: Fields) => string>
> = {
  ndjson: (fields, random, columns) => {
    const pairs = Object.entries(fields).filter(([, text]) => text !== '' || random() < 0.3);
    const cells = pairs.map(([name, text = '']) => {
      const isNumber = !name.endsWith('_id') && /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text);
      const isTruth = name === 'confirmed' && /^(true|false)$/.test(text);
      const value =
        (isNumber || isTruth) && random() < 0.7 ? text : JSON.stringify(text || (random() < 0.5 ? null : ''));
      return `${JSON.stringify(columns[name] ?? name)}:${random() < 0.1 ? ' ' : ''}${value}`;
    });
    return `{${cells.join(',')}}`;
  },
  csv: (fields, random) => quotedCells(fields, random, ','),
  tsv: (fields, random) => quotedCells(fields, random, '\t'),
};

function quotedCells(fields: Fields, random: () => number, delimiter: string): string {
  const cells = eventFields.map((name) => {
    const text = fields[name] ?? '';
    const quoted = text.includes(delimiter) || /["\n]/.test(text) || random() < 0.2;
    return quoted ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return cells.join(delimiter);
}

/** Packs a file; zstd by ClickHouse, because Node 20 cannot. */
export async function packed(address: Address, packing: Packing, content: string): Promise<Buffer> {
  if (packing === 'none') return Buffer.from(content);
  if (packing === 'gz') return gzipSync(content);
  if (packing === 'br') return brotliCompressSync(content);
  const { url, user, password } = address;
  const form = new FormData();
  form.append('file', new Blob([content]), 'file');
  const params = new URLSearchParams({
    ...{ enable_http_compression: '1', query: 'SELECT content FROM file FORMAT RawBLOB' },
    ...{ file_format: 'RawBLOB', file_structure: 'content String' },
  });
  const headers = {
    'accept-encoding': 'zstd, identity;q=0',
    'x-clickhouse-user': user,
    'x-clickhouse-key': password,
  };
  const response = await fetch(`${url}/?${params}`, { method: 'POST', body: form, headers });
  if (response.headers.get('content-encoding') !== 'zstd') throw new Error(await response.text());
  return Buffer.from(await response.arrayBuffer());
}

/** Writes records as a Parquet file by DuckDB, with a NULL for each field that is absent. */
export async function parquetByDuckDb(
  path: string,
  events: readonly WrittenEvent[],
  types: keyof typeof duckDbTypes,
): Promise<void> {
  const wanted: Fields = duckDbTypes[types];
  const rows = events.map(({ fields, plain }) => (types === 'text' ? fields : plain));
  await writeFile(`${path}.json`, jsonLines(rows));
  const texts = eventFields.map((name) => `${name}: 'VARCHAR'`).join(', ');
  const columns = eventFields.map((name) => {
    const type = wanted[name];
    if (type === 'TIMESTAMPTZ') return `CAST(${name} || '+00' AS ${type}) AS ${name}`;
    if (type === 'BLOB') return `encode(${name}) AS ${name}`;
    return type ? `CAST(${name} AS ${type}) AS ${name}` : name;
  });
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await connection.run(
      `COPY (SELECT ${columns.join(', ')} FROM read_json('${path}.json', format = 'newline_delimited', columns = {${texts}}))
       TO '${path}' (FORMAT parquet)`,
    );
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** The same by ClickHouse. */
export async function parquetByClickHouse(store: Store, events: readonly WrittenEvent[]): Promise<Buffer> {
  const structure = eventFields
    .map((name) => `${name} Nullable(${clickHouseTypes[name] ?? 'String'})`)
    .join(', ');
  await store.command({
    query: `CREATE OR REPLACE TABLE parquet_rows (n UInt32, ${structure}) ENGINE = Memory`,
  });
  const values = events.map(({ plain }, n) => ({
    n,
    ...Object.fromEntries(eventFields.map((name) => [name, plain[name] || null])),
    confirmed: plain.confirmed ? plain.confirmed === 'true' : null,
  }));
  await store.insert({ table: 'parquet_rows', values, format: 'JSONEachRow' });
  const query = 'SELECT * EXCEPT n FROM parquet_rows ORDER BY n FORMAT Parquet';
  return buffer((await store.exec({ query })).stream);
}

function jsonLines(rows: readonly Fields[]): string {
  return rows
    .map((row) => JSON.stringify(Object.fromEntries(eventFields.map((name) => [name, row[name] || null]))))
    .join('\n');
}
