import { type EventField, eventFields, fieldSpecs } from './fields.ts';
import type { ColumnText, Mapping } from './mapping.ts';
import { identifier, matches, quoted } from './sql.ts';
import type { Rule, TypedKind } from './values.ts';

/** How the records of a chunk come into the statement, before anything is judged. */
export interface RecordSource {
  /** ClickHouse's name of the format in which the bytes are sent. */
  readonly format: 'LineAsString' | 'RowBinary' | 'Parquet';
  /**
   * A SELECT of `at_line`, `unknown` (names that no event has), and what the other members speak of. It leaves out
   * blank lines, which are no records.
   */
  readonly select: string;
  /** The text of a field, of type String, empty where there is none. */
  readonly textOf: (field: EventField) => string;
  /** The column of a field that the file holds as values of this kind; undefined where it does not. */
  readonly typedOf: (field: EventField, kind: TypedKind) => string | undefined;
  /** What keeps a record from being read at all. */
  readonly rules: readonly Rule[];
  /** What else the text of a field must fulfil in this format. */
  readonly textRules: (field: EventField) => readonly Rule[];
  /** The record as it came; of Parquet as JSON. */
  readonly raw: string;
}

/**
 * How the records of a chunk of text are sent: a record on each line, or, where a record holds line ends, each with
 * the number of its line before it.
 */
export type Framing = 'lines' | 'records';

/** `at_line` and `record`, without carriage returns at its end. Parameter: `firstLine`. */
function records(framing: Framing): string {
  const input =
    framing === 'lines'
      ? `SELECT {firstLine:UInt64} + rowNumberInAllBlocks() AS at_line, line AS read FROM input('line String')`
      : `SELECT at_line, read FROM input('at_line UInt64, read String')`;
  return `SELECT at_line, if(endsWith(read, '\\r'), trim(TRAILING '\\r' FROM read), read) AS record FROM (${input}) WHERE record != ''`;
}

const unreadable: readonly Rule[] = [
  { broken: 'NOT isValidUTF8(record)', reason: 'the record is not valid UTF-8' },
  { broken: "position(record, '\\0') > 0", reason: 'the record holds a NUL byte' },
];

/** What names the fields of a record, and how the text of each comes to be. */
function mapped(mapping: Mapping, columnText: ColumnText) {
  return (field: EventField): string => mapping.textOf(field, columnText) ?? "''";
}

/** NDJSON: an object on each line. */
export function jsonSource(framing: Framing, mapping: Mapping, ignoreUnknown: boolean): RecordSource {
  const names = mapping.columns;
  const element = (name: string) => {
    const n = names.indexOf(name);
    return n < 0 ? undefined : `tupleElement(json, ${n + 1})`;
  };
  const columnText: ColumnText = (name) => {
    const value = element(name);
    return value && exactText(name, `ifNull(${value}, '')`);
  };
  const tuple = names.map((name) => `${identifier(name)} Nullable(String)`).join(', ');
  const present = names.map((_, n) => `isNotNull(tupleElement(json, ${n + 1}))`).join(' + ');
  // Keys are only listed where there can be more of them than were found: a key ends in `":`, or in blanks before the colon.
  const others = `countSubstrings(record, '":') != ${present} OR position(record, '" ') > 0 OR position(record, '"\\t') > 0`;
  const known = `(${[...new Set([...names, ...eventFields])].map(quoted).join(', ')})`;
  const twice = 'indexOf(keys, name) != n';
  const unwanted = ignoreUnknown ? `name IN ${known} AND ${twice}` : `name NOT IN ${known} OR ${twice}`;
  const unknown = `if(${others}, arrayMap(keys -> arrayFilter((name, n) -> ${unwanted}, keys, arrayEnumerate(keys)), [JSONExtractKeys(record)])[1], emptyArrayString())`;
  return {
    format: framing === 'lines' ? 'LineAsString' : 'RowBinary',
    select: mapping.compute(
      `SELECT at_line, record, json, ${unknown} AS unknown FROM (
      SELECT at_line, record, JSONExtract(record, ${quoted(`Tuple(${tuple})`)}) AS json FROM (${records(framing)}))`,
      columnText,
    ),
    textOf: mapped(mapping, columnText),
    typedOf: () => undefined,
    rules: [
      ...unreadable,
      {
        broken: `(${present}) = 0 AND NOT isValidJSON(record)`,
        reason: 'the record is not JSON',
      },
      { broken: `NOT ${matches('record', '^\\s*\\{')}`, reason: 'the record is not a JSON object' },
    ],
    textRules: (field) => {
      const key = mapping.columnOf(field);
      const { kind } = fieldSpecs[field];
      if (key === undefined) return mapping.rulesOf(field);
      if (kind === 'money' || kind === 'count') return exactNumber(field, key);
      if (kind !== 'text') return [];
      return [
        {
          broken: `substring(t_${field}, 1, 1) IN ('{', '[') AND JSONType(record, ${quoted(key)}) IN ('Object', 'Array')`,
          reason: 'must be text, not an object or a list',
        },
      ];
    },
    raw: 'record',
  };
}

/** Whether a number of a record may have more digits than a double holds; as a double it would come out altered. */
function isLong(key: string, text: string): string {
  // Most long texts are times and ids; JSONType would read the whole record for each of them.
  const manyDigits = `length(${text}) > 15 AND ${matches(text, '^-?[0-9][0-9.eE+-]*$')}`;
  // 999999999999.999999 is read as 1000000000000: as text a rounded number is short again.
  const large = `length(${text}) > 9 AND abs(toFloat64OrZero(${text})) >= 1000000000`;
  return `(${manyDigits} OR ${large}) AND JSONType(record, ${quoted(key)}) = 'Double'`;
}

/** The digits of a number as they are written. */
function digits(key: string): string {
  const name = key.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');
  return `extract(record, ${quoted(`"${name}"\\s*:\\s*(-?[0-9][0-9.eE+-]*)`)})`;
}

function exactText(key: string, text: string): string {
  return `if(${isLong(key, text)}, ${digits(key)}, ${text})`;
}

/** What was found by its digits must be the number that the key has. */
function exactNumber(field: EventField, key: string): Rule[] {
  const text = `t_${field}`;
  return [
    {
      broken: `${isLong(key, text)} AND toFloat64OrZero(${digits(key)}) != JSONExtractFloat(record, ${quoted(key)})`,
      reason: 'has more digits than a JSON number keeps: write it in quotes',
    },
  ];
}

export interface CellSourceOptions {
  readonly framing: Framing;
  readonly format: 'csv' | 'tsv';
  readonly delimiter: string;
  readonly columns: readonly string[];
  readonly mapping: Mapping;
}

/** CSV (RFC 4180) and TSV (with backslash escapes, as databases write it): cells in the order of the header. */
export function cellSource({
  framing,
  format,
  delimiter,
  columns,
  mapping,
}: CellSourceOptions): RecordSource {
  const cells = format === 'csv' ? csvCells(delimiter) : tsvCells;
  const columnText: ColumnText = (name) => {
    const n = columns.indexOf(name);
    return n < 0 ? undefined : `if(cells[${n + 1}] = '\\\\N', '', cells[${n + 1}])`;
  };
  return {
    format: framing === 'lines' ? 'LineAsString' : 'RowBinary',
    select: mapping.compute(
      `SELECT at_line, record, emptyArrayString() AS unknown, ${cells} AS cells
      FROM (${records(framing)})`,
      columnText,
    ),
    textOf: mapped(mapping, columnText),
    typedOf: () => undefined,
    rules: [
      ...unreadable,
      ...(format === 'csv'
        ? [
            {
              broken: 'empty(cells)',
              reason: 'a quote in the record is not closed, or text follows a closing quote',
            },
          ]
        : [{ broken: "has(cells, '\\0')", reason: 'a backslash in the record begins no escape of TSV' }]),
      {
        // Delimiters at the end of a record hold nothing.
        broken: `notEmpty(cells) AND (length(cells) < ${columns.length} OR arrayExists(cell -> cell != '', arraySlice(cells, ${columns.length + 1})))`,
        reason: `the record must have as many cells as the header, ${columns.length}`,
        shown: 'toString(length(cells))',
      },
    ],
    textRules: mapping.rulesOf,
    raw: 'record',
  };
}

/**
 * Cells of a CSV record; none where its quotes are broken. Most records have no quotes, or quotes around cells without
 * delimiters, and are split: the pattern that reads every kind takes ten times as long.
 */
function csvCells(delimiter: string): string {
  const d = delimiter.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');
  const blank = delimiter === '\t' ? ' ' : ' \\t';
  const plain = `(?:[^"${d}]*|"[^"${d}]*")`;
  const cell = `${d}([${blank}]*"(?:[^"]|"")*"[${blank}]*|[${blank}]*(?:[^"${d}${blank}][^${d}]*)?)`;
  const all = `extractAll(concat(${quoted(delimiter)}, record), ${quoted(cell)})`;
  const unquoted = `if(${matches('cell', `^[${blank}]*"`)}, replaceAll(substring(trim(BOTH ' \\t' FROM cell) AS inner, 2, length(inner) - 2), '""', '"'), cell)`;
  const broken = `arrayStringConcat(found, ${quoted(delimiter)}) != record`;
  return `if(position(record, '"') = 0, splitByChar(${quoted(delimiter)}, record),
        if(${matches('record', `^${plain}(?:${d}${plain})*$`)}, splitByChar(${quoted(delimiter)}, replaceAll(record, '"', '')),
          arrayMap(found -> if(${broken}, emptyArrayString(), arrayMap(cell -> ${unquoted}, found)), [${all}])[1]))`;
}

/** Escapes of TSV are those of JSON; a cell whose escapes cannot be read becomes a NUL, which no cell is. */
const tsvCells = `if(position(record, '\\\\') = 0, splitByChar('\\t', record),
        arrayMap(cell -> if(position(cell, '\\\\') = 0 OR cell = '\\\\N', cell,
          ifNull(JSONExtract(concat('"', replaceAll(cell, '"', '\\\\"'), '"'), 'Nullable(String)'), '\\0')), splitByChar('\\t', record)))`;

export interface ParquetColumn {
  readonly name: string;
  /** ClickHouse's type to read it as; always Nullable, so that NULL stays NULL. */
  readonly type: string;
  /** What its values are; undefined where they are read as text. */
  readonly kind: TypedKind | undefined;
}

/** Parquet: values of the file's own types, and text of every other. Parameter: `firstLine`. */
export function parquetSource(columns: readonly ParquetColumn[], mapping: Mapping): RecordSource {
  const used = columns.filter(({ name }) => mapping.columns.includes(name));
  const alias = new Map(used.map(({ name }, n) => [name, `${identifier(name)} AS p_${n}`]));
  const column = (name: string | undefined) => {
    const n = used.findIndex((each) => each.name === name);
    return n < 0 ? undefined : { ...used[n], sql: `p_${n}` };
  };
  const columnText: ColumnText = (name) => {
    const found = column(name);
    return found && `ifNull(toString(${found.sql}), '')`;
  };
  const structure = used.map(({ name, type }) => `${identifier(name)} ${type}`).join(', ');
  const pairs = used.flatMap(({ name }, n) => [quoted(name), `ifNull(toString(p_${n}), 'null')`]);
  return {
    format: 'Parquet',
    select: mapping.compute(
      `SELECT ${['{firstLine:UInt64} + rowNumberInAllBlocks() AS at_line', 'emptyArrayString() AS unknown', ...alias.values()].join(', ')}
      FROM input(${quoted(structure)})`,
      columnText,
    ),
    textOf: mapped(mapping, columnText),
    typedOf: (field, kind) => {
      const found = column(mapping.columnOf(field));
      return found?.kind === kind ? found.sql : undefined;
    },
    rules: [],
    textRules: (field) =>
      column(mapping.columnOf(field))?.type === 'Nullable(String)'
        ? [
            {
              broken: `NOT isValidUTF8(t_${field}) OR position(t_${field}, '\\0') > 0`,
              reason: 'must be valid UTF-8 without NUL',
            },
          ]
        : mapping.rulesOf(field),
    raw: `toJSONString(map(${pairs.join(', ')}))`,
  };
}
