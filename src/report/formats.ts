/** A way to write the rows of a report; only the FORMAT of the statement changes with it. */
export interface ReportFormat {
  readonly mediaType: string;
  /** What a caller gets, in OpenAPI. */
  readonly description: string;
  /** Of a file that holds it. */
  readonly extension: string;
  /** Its name in ClickHouse. */
  readonly clickhouse: 'Template' | 'JSONEachRow' | 'CSVWithNames' | 'ArrowStream' | 'Parquet';
  readonly settings: Readonly<Record<string, string | number>>;
  /**
   * The type of its counts, in a format where days are dates; absent: counts are digits, as many as they have, and days
   * are text. Every reader has this type and not the 128 bits of a sum: a report with a count that does not fit is refused.
   */
  readonly countType?: 'Int64';
}

const json = {
  output_format_json_quote_64bit_integers: 0,
  output_format_json_quote_decimals: 0,
  output_format_json_escape_forward_slashes: 0,
  // One thread formats as fast as several and leaves a core to the rest; a killed statement ends at once.
  output_format_parallel_formatting: 0,
  output_format_decimal_trailing_zeros: 0,
};

const binaryTypes = 'Days are dates, counts signed 64-bit integers, money and ratios decimal.';

/**
 * Every format a caller can ask for with `Accept`, the preferred one first. Only JSON has the envelope of the
 * contract; the others are the rows alone, with the same columns.
 */
export const reportFormats = {
  json: {
    mediaType: 'application/json',
    description: 'The envelope with everything, the default.',
    extension: 'json',
    clickhouse: 'Template',
    settings: json,
  },
  ndjson: {
    mediaType: 'application/x-ndjson',
    description: 'One row a line, as a JSON object.',
    extension: 'ndjson',
    clickhouse: 'JSONEachRow',
    settings: json,
  },
  csv: {
    mediaType: 'text/csv',
    description: 'RFC 4180: a line with the names of the row fields, then one row a line; text is quoted.',
    extension: 'csv',
    clickhouse: 'CSVWithNames',
    settings: { output_format_decimal_trailing_zeros: 0 },
  },
  arrow: {
    mediaType: 'application/vnd.apache.arrow.stream',
    description: `An Apache Arrow IPC stream. ${binaryTypes}`,
    extension: 'arrows',
    clickhouse: 'ArrowStream',
    // Compressed by Content-Encoding instead, which every reader of HTTP undoes.
    settings: { output_format_arrow_string_as_string: 1, output_format_arrow_compression_method: 'none' },
    countType: 'Int64',
  },
  parquet: {
    mediaType: 'application/vnd.apache.parquet',
    description: `An Apache Parquet file. ${binaryTypes}`,
    extension: 'parquet',
    clickhouse: 'Parquet',
    settings: { output_format_parquet_string_as_string: 1, output_format_parquet_compression_method: 'zstd' },
    countType: 'Int64',
  },
  xlsx: {
    mediaType: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    description:
      'A workbook with one sheet: a frozen line with the names of the row fields, the rows, and with `totals` a last row of them. Texts are text, days dates, figures numbers, of which spreadsheets keep 15 digits. A report of more rows than a sheet holds, 1,048,576 with head and totals, is refused.',
    extension: 'xlsx',
    clickhouse: 'Template',
    settings: json,
  },
} as const satisfies Record<string, ReportFormat>;

export type ReportFormatName = keyof typeof reportFormats;
export const formatNames = Object.keys(reportFormats) as ReportFormatName[];
