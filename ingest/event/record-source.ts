import type { ClickHouseSettings } from '@clickhouse/client';
import type { EventField } from '../../catalog/events.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import type { Condition } from './expressions.ts';
import type { TypedKind } from './typed-values.ts';
import type { Rule } from './values.ts';

/** How the records of a chunk come into the statement, before anything is judged. */
export interface RecordSource {
  /** ClickHouse's name of the format in which the bytes are sent. */
  readonly format: 'LineAsString' | 'RowBinary' | 'Parquet' | 'Avro';
  /**
   * A SELECT of `at_line`, `unknown` (names that no event has), and what the other members speak of. It leaves out
   * blank lines, which are no records.
   */
  readonly select: string;
  /** The columns that the bytes are read as; `select` has them as `sentAs` writes it. */
  readonly structure: string;
  /** The text of a field, of type String, empty where a record has none; undefined where nothing in the file gives it. */
  readonly textOf: (field: EventField) => string | undefined;
  /** The column of a field that the file holds as values of a kind that the field takes; formats of text have no such function. */
  readonly typedOf?: (field: EventField) => { readonly kind: TypedKind; readonly column: string } | undefined;
  /** What keeps a record from being read at all. */
  readonly rules: readonly Rule[];
  /** What else the text of a field must fulfil in this format. */
  readonly textRules: (field: EventField) => readonly Rule[];
  /** The record as it came; of Parquet and Avro as JSON. */
  readonly raw: string;
  /** Names of the columns that are read. */
  readonly columns: readonly string[];
  /** How many events a record is; if several, `select` has them, numbered. */
  readonly events: number;
  /** Absent: every record is to be an event. */
  readonly condition: Condition | undefined;
  /** Settings with which its statement is evaluated, beside those of all. */
  readonly settings?: ClickHouseSettings;
}

/** What stands for the bytes of an INSERT in its SELECT. */
export const sentAs = (structure: string): string => `input(${quoted(structure)})`;
