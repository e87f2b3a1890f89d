import type { ClickHouseSettings } from '@clickhouse/client';
import { eventTypes } from '../../catalog/catalog.ts';
import type { Format } from '../input/file-format.ts';

/**
 * The fields of an event line, in the order of the table of the design. But for what a file holds as values they
 * are read as text: the engine's typed readers take 2^32 + 1 as 1, `1.2.3` as 1.23 and `1585742400` as a date, so the
 * statement converts what it has checked itself. It costs no time (2 M events: 3.3 s either way).
 */
export const eventFields = [
  'event_id',
  'event_time',
  'event_type',
  'advertiser_id',
  'campaign_id',
  'creative_id',
  'publisher_id',
  'ad_unit_id',
  'site_id',
  'device',
  'quantity',
  'spend',
  'revenue',
  'confirmed',
] as const;
export type EventField = (typeof eventFields)[number];

/** Fields without which no line is an event. */
export const requiredFields: readonly EventField[] = ['event_id', 'event_time', 'event_type'];

/** RE2 and JavaScript read these alike. */
export const eventTimePattern =
  '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-][01][0-9]:?[0-5][0-9])?$';
export const quantityPattern = '^[0-9]{1,10}$';
/** 12 digits before the point, 6 after it; more places only if they are zeros. */
export const moneyPattern = '^-?[0-9]{1,12}(\\.[0-9]{1,6}0*)?$';
export const confirmedPattern = '^(true|false|TRUE|FALSE|True|False|1|0)$';

/** How a field is read and what becomes of it. */
interface Reading {
  /** What the engine reads it as. */
  readonly type: string;
  readonly expression?: string;
  /** A condition that fails for a value which is none of the field. */
  readonly gate?: string;
}

/** Fields as text, and what makes them values. */
const textReadings: Partial<Record<EventField, Reading>> = {
  event_time: {
    type: 'String',
    expression: "parseDateTime64BestEffort(event_time, 3, 'UTC')",
    gate: refuse('event_time', eventTimePattern),
  },
  event_type: {
    type: 'String',
    gate: `throwIf(event_type NOT IN (${eventTypes.map((type) => `'${type}'`).join(', ')}), 'event_type') = 0`,
  },
  device: { type: 'String', expression: "if(device = '', 'unknown', device)" },
  // What is no number of 1 … 2^32 − 1 becomes 0, which the constraint refuses.
  quantity: {
    type: 'String',
    expression: `multiIf(quantity = '', 1, ${matches('quantity', quantityPattern)} AND toUInt64OrZero(quantity) < 4294967296, toUInt32(toUInt64OrZero(quantity)), 0)`,
  },
  spend: moneyReading('spend'),
  revenue: moneyReading('revenue'),
  confirmed: {
    type: 'String',
    expression: "lower(confirmed) IN ('true', '1')",
    gate: refuse('confirmed', confirmedPattern, true),
  },
};

function moneyReading(name: 'spend' | 'revenue'): Reading {
  return {
    type: 'String',
    expression: `toDecimal64(if(${name} = '', '0', ${name}), 6)`,
    gate: refuse(name, moneyPattern, true),
  };
}

/** Values that a file holds as such, instead of as text: it takes half the time. */
const typedReadings = {
  boolean: (): Reading => ({ type: 'Bool' }),
  time: (name: EventField): Reading => ({
    type: "DateTime64(9, 'UTC')",
    expression: `toDateTime64(${name}, 3, 'UTC')`,
  }),
  integer: (name: EventField): Reading => ({
    type: 'Nullable(Int64)',
    expression: `multiIf(isNull(${name}), 1, ${name} BETWEEN 1 AND 4294967295, toUInt32(assumeNotNull(${name})), 0)`,
  }),
  decimal: (name: EventField): Reading => ({
    type: 'Nullable(Decimal(18, 6))',
    expression: `ifNull(${name}, toDecimal64(0, 6))`,
  }),
} as const;

/** Fields of a file that holds them as values, and as which. */
export type TypedFields = Readonly<Partial<Record<EventField, keyof typeof typedReadings>>>;

function readingOf(name: EventField, format: Format, typed: TypedFields): Reading {
  const type = typed[name];
  if (type) return typedReadings[type](name);
  // JSON has truth values; where they are text the engine would take `yes` and refuse `"true"` in quotes.
  if (name === 'confirmed' && format.name === 'ndjson') return typedReadings.boolean();
  return textReadings[name] ?? { type: 'String' };
}

/**
 * Where lines go: counted, only checked, or held back to be compared with what is there. In a cluster lines that are
 * counted go to `publisher_events` too, once they are in `events`.
 */
export type EventTable = 'events' | 'publisher_events' | 'events_check' | 'events_staging';

/** Stores the lines of one chunk; the constraints of the table check what the gates do not. */
export function insertEvents(format: Format, table: EventTable, typed: TypedFields = {}): string {
  const readings = eventFields.map((name) => ({ name, ...readingOf(name, format, typed) }));
  const columns = readings.map(({ name, expression }) => (expression ? `${expression} AS ${name}_` : name));
  return [
    `INSERT INTO ${table} (${eventFields.join(', ')}, chunk, loaded_at)`,
    `SELECT ${columns.join(', ')}, {chunk:String}, {loadTime:DateTime64(6, 'UTC')}`,
    `FROM input('${readings.map(({ name, type }) => `${name} ${type.replaceAll("'", "\\'")}`).join(', ')}')`,
    `WHERE ${readings.flatMap(({ gate }) => gate ?? []).join(' AND ')}`,
    ...(table === 'publisher_events' ? ["AND publisher_id != ''"] : []),
    `FORMAT ${format.clickhouse}`,
  ].join('\n');
}

/**
 * One chunk is one block of one part for each partition, stored once under its name, in every rollup too.
 * Every deduplication setting is explicit, because their defaults changed in 24.7 and in 26.2.
 */
export function insertSettings(token: string): ClickHouseSettings {
  return {
    insert_deduplication_token: token,
    insert_deduplicate: 1,
    deduplicate_insert: 'enable',
    deduplicate_insert_select: 'force_enable',
    deduplicate_blocks_in_dependent_materialized_views: 1,
    materialized_views_ignore_errors: 0,
    async_insert: 0,
    wait_end_of_query: 1,
    // The chunks in flight keep the cores busy; cutting each of them for several readers costs a fifth more.
    input_format_parallel_parsing: 0,
    // A chunk is read in small blocks that fit into caches, and must be stored as one: half a chunk is never
    // stored, and retries cut it the same way.
    max_insert_threads: '1',
    max_insert_block_size: '65536',
    min_insert_block_size_rows: '1000000000',
    min_insert_block_size_bytes: '0',
    max_partitions_per_insert_block: '0',
    // Rows of one chunk are grouped by the views already; merging them once more at insert costs time.
    optimize_on_insert: 0,
    parallel_view_processing: 1,
    ...readerSettings,
  };
}

/** Strict readers: nothing unknown is dropped and nothing half-parsed is stored. */
export const readerSettings: ClickHouseSettings = {
  input_format_skip_unknown_fields: 0,
  input_format_allow_errors_num: '0',
  input_format_allow_errors_ratio: 0,
  input_format_null_as_default: 1,
  input_format_with_names_use_header: 1,
  input_format_csv_empty_as_default: 1,
  input_format_tsv_empty_as_default: 1,
  // Without it a carriage return at the end of a line becomes part of the last column.
  input_format_tsv_crlf_end_of_line: 1,
  input_format_column_name_matching_mode: 'match_case',
  input_format_json_read_numbers_as_strings: 1,
  input_format_json_read_bools_as_strings: 0,
  input_format_json_read_objects_as_strings: 0,
  input_format_json_read_arrays_as_strings: 0,
  input_format_parquet_allow_missing_columns: 1,
};

/**
 * Counts the events of a chunk that is held in `events_staging`, leaving out those whose event_id is already
 * present on the days the chunk touches, and repetitions within the chunk. What an earlier attempt at the same
 * chunk stored does not count as present.
 */
export const insertNewEvents = `
INSERT INTO events (${eventFields.join(', ')}, chunk, loaded_at)
SELECT ${eventFields.join(', ')}, chunk, loaded_at FROM events_staging
WHERE chunk = {chunk:String} AND event_id NOT IN (
  SELECT event_id FROM events
  WHERE chunk != {chunk:String} AND day IN (SELECT day FROM events_staging WHERE chunk = {chunk:String}))
ORDER BY event_id, event_time
LIMIT 1 BY event_id`;

/** Sends what of a chunk is in `events` to the publishers' side of a cluster. */
export const insertPublished = `
INSERT INTO publisher_events (${eventFields.join(', ')}, chunk, loaded_at)
SELECT ${eventFields.join(', ')}, chunk, loaded_at FROM events
WHERE chunk = {chunk:String} AND publisher_id != '' AND day IN (SELECT day FROM chunk_days WHERE chunk = {chunk:String})`;

function matches(field: EventField, pattern: string): string {
  return `match(${field}, '${pattern.replaceAll('\\', '\\\\')}')`;
}

function refuse(field: EventField, pattern: string, optional = false): string {
  const fits = optional ? `${field} = '' OR ${matches(field, pattern)}` : matches(field, pattern);
  return `throwIf(NOT (${fits}), '${field}') = 0`;
}
