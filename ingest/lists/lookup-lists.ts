import type { ClickHouseSettings } from '@clickhouse/client';
import { insertData, type Store, storeTime } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import {
  everyCopyOf,
  insertTargetOnAllNodes,
  nodeTables,
  reloadDictionary,
} from '../../clickhouse/cluster/on-nodes.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import { type FormatName, formatOf } from '../formats/formats.ts';
import { readInput } from '../input/byte-source.ts';
import type { Input } from '../input/input.ts';
import { InputError } from '../input/input-error.ts';
import { isRefusal, wasEnded } from '../ledger/load-error.ts';
import { confirmationTime } from './confirmation-time.ts';
import { newlyConfirmed, newlyConfirmedColumns } from './newly-confirmed.ts';
import { recordShownConfirmations, recordShownNames } from './record-shown.ts';

/** Strict readers: nothing unknown is dropped and nothing half-parsed is stored. */
const readerSettings: ClickHouseSettings = {
  input_format_skip_unknown_fields: 0,
  input_format_allow_errors_num: '0',
  input_format_allow_errors_ratio: 0,
  input_format_null_as_default: 1,
  input_format_with_names_use_header: 1,
  input_format_csv_empty_as_default: 1,
  input_format_column_name_matching_mode: 'match_case',
  input_format_json_read_numbers_as_strings: 1,
  input_format_json_read_bools_as_strings: 0,
  input_format_json_read_objects_as_strings: 0,
  input_format_json_read_arrays_as_strings: 0,
  // What is shown of a value is as the file has it: 09/01/2026.
  output_format_json_escape_forward_slashes: 0,
};

/** The names that are there already. */
interface StoredNames {
  /** SQL of a table that has a row for each copy of a name. */
  readonly source: string;
  /** How many copies there are of each. */
  readonly copies: number;
}

/** A small list that is loaded as a whole: its columns in the file, and the SQL that stores them. */
export interface LookupList {
  readonly table: string;
  readonly columns: readonly string[];
  /** What is stored beside them; the first says which row is the latest. */
  readonly added: readonly ['version' | 'confirmed_at', ...string[]];
  /** SQL that selects `columns` and `added` from the rows of a file, which are numbered from 0 by `n`. */
  readonly select: (rows: string, stored: StoredNames) => string;
  /** Reloaded after a load, so that reports show the names at once. */
  readonly dictionary?: string;
}

/**
 * The line number in nanoseconds makes the last of two lines with one id win. A name that is there already keeps the
 * time at which it last changed.
 */
const names = (table: string, id: string, name: string, dictionary: string): LookupList => ({
  table,
  columns: ['account_id', id, name],
  added: ['version', 'changed_at'],
  select: (rows, { source, copies }) => `
    SELECT account_id, ${id}, f.${name}, toDateTime64({version:String}, 9, 'UTC') + toIntervalNanosecond(n),
      if(s.copies = ${copies} AND s.least = last AND s.greatest = last, s.changed_at, nowInBlock64(6, 'UTC'))
    FROM (SELECT *, argMax(${name}, n) OVER (PARTITION BY account_id, ${id}) AS last FROM ${rows}) AS f
    LEFT JOIN (
      SELECT account_id, ${id}, min(t.${name}) AS least, max(t.${name}) AS greatest, max(t.changed_at) AS changed_at,
        count() AS copies
      FROM ${source} AS t FINAL GROUP BY account_id, ${id}) AS s USING (account_id, ${id})
    ORDER BY n`,
  dictionary,
});

export const lookupLists = {
  campaigns: names('campaigns', 'campaign_id', 'name', 'campaign_names'),
  creatives: names('creatives', 'creative_id', 'headline', 'creative_headlines'),
  ad_units: names('ad_units', 'ad_unit_id', 'name', 'ad_unit_names'),
  sites: names('sites', 'site_id', 'name', 'site_names'),
  confirmations: {
    table: 'confirmations',
    columns: ['account_id', 'day'],
    added: ['confirmed_at', ...newlyConfirmedColumns],
    select: (rows) => {
      const confirmedAt = "toDateTime64({confirmedAt:String}, 6, 'UTC')";
      const changed = newlyConfirmed('(account_id, toDateOrZero(day))', confirmedAt);
      return `
        SELECT account_id, toDateOrZero(day),
          ${[confirmedAt, ...changed].join(', ')}
        FROM ${rows}`;
    },
  },
} as const satisfies Record<string, LookupList>;

/** What a value of a list must be, and SQL of whether it is. */
function ruleOf(column: string): { readonly rule: string; readonly holds: string } {
  if (column === 'day') {
    const isDay = `match(day, '^[0-9]{4}-[0-9]{2}-[0-9]{2}$') AND toString(toDateOrZero(day)) = day`;
    return {
      rule: 'a date as yyyy-mm-dd that exists, from 1971-01-01 to 2149-06-06',
      holds: `${isDay} AND toDateOrZero(day) > '1970-12-31'`,
    };
  }
  const most = column.endsWith('_id') ? 128 : 1024;
  return {
    rule: `text of 1 to ${most} characters`,
    holds: `lengthUTF8(${column}) BETWEEN 1 AND ${most} AND isValidUTF8(${column})`,
  };
}

/** Stands before what is said of a record in an error of ClickHouse: only what cannot be parsed is repeated in one. */
const told = 'adtally: ';

/** SQL of the rows of a file, numbered. One that breaks a rule ends the statement with an error that names it. */
function checkedRows(columns: readonly string[]): string {
  const sent = `input(${quoted(columns.map((name) => `${name} String`).join(', '))})`;
  const cases = columns.map((column) => {
    const { rule, holds } = ruleOf(column);
    return `NOT (${holds}), concat(${quoted(`${column} must be ${rule}, not `)}, toJSONString(substringUTF8(${column}, 1, 80)))`;
  });
  const record = `concat(${quoted(`${told}record `)}, toString(n + 1), ': ', fault)`;
  return `(SELECT ${[...columns, 'n'].join(', ')}
    FROM (SELECT *, multiIf(${cases.join(', ')}, '') AS fault FROM (SELECT *, rowNumberInAllBlocks() AS n FROM ${sent}))
    WHERE if(fault = '', 0, toUInt8(${record})) = 0)`;
}

/**
 * What of an error of ClickHouse a person can use.
 * @param header the first line, if it has the names of columns
 */
function reasonOf(message: string, { columns }: LookupList, header?: readonly string[]): string {
  const [, inHeader, inRecord = inHeader] =
    /Unknown field found (?:in format header: '(.*?)' at position|while parsing \w+ format: (.*?): )/s.exec(
      message,
    ) ?? [];
  const missing = header ? columns.filter((name) => !header.includes(name)) : [];
  const twice = new Set(header?.filter((name, n, all) => name !== '' && all.indexOf(name) < n));
  const wrong = [
    ...(inRecord === undefined
      ? []
      : [inRecord === '' ? 'a column has no name' : `${JSON.stringify(inRecord)} is no column of this list`]),
    ...[...twice].map((name) => `there are two columns ${name}`),
    ...(missing.length > 0 ? [`missing: ${missing.join(', ')}`] : []),
  ];
  // Excel writes semicolons where a comma is in numbers.
  const hint =
    header?.length === 1 && /[;\t|]/.test(`${header}`)
      ? '; --delimiter says what is between cells, if no comma'
      : '';
  if (wrong.length > 0) return `${wrong.join('; ')}; the columns are ${columns.join(', ')}${hint}`;
  const [, record] = new RegExp(`string '${told}(.*)' as UInt8`, 's').exec(message) ?? [];
  // ClickHouse escapes the text once more.
  if (record !== undefined) return record.replace(/\\([\\'])/g, '$1');
  const [, row] = /\(at row (\d+)\)/.exec(message) ?? [];
  const [, cells] = /your file has (less|more) columns than expected/.exec(message) ?? [];
  const reported = message.split(/:?\s*(?:\n|\(at row)/, 1).join();
  const what = cells
    ? `has ${cells === 'less' ? 'fewer' : 'more'} cells than there are columns`
    : `cannot be read (${reported})`;
  return `${row === undefined ? 'it' : `record ${row}`} ${what}; the columns are ${columns.join(', ')}`;
}

/** How a list is written. */
export interface ListReading {
  /** Absent: by the name of the input. */
  readonly format?: FormatName;
  /** By the name of TextDecoder; absent: Unicode. */
  readonly encoding?: string;
  /** Between cells; absent: the format's own. */
  readonly delimiter?: string;
}

/**
 * Loads a list of names or confirmations from CSV or NDJSON: all of it, or nothing when a line is faulty. Returns the
 * number of lines. Loading the same list twice is the same as loading it once.
 * @param confirmedAt the time of confirmations; absent: that of confirmations made now
 * @throws {InputError} for a fault of the list; it names the file and, if ClickHouse reports it, the line
 */
export async function loadLookupList(
  store: Store,
  list: LookupList,
  input: Input,
  { format, encoding, delimiter: given }: ListReading = {},
  confirmedAt?: string,
): Promise<number> {
  const { clickhouse, text } = formatOf(input, format);
  if (!text) throw new InputError(`${input.name}: ${list.table} can be loaded from CSV or NDJSON only`);
  if (given !== undefined && text.delimiter === undefined)
    throw new InputError(`${input.name}: only CSV and TSV have a --delimiter`);
  const delimiter = given ?? text.delimiter;
  let rows: number;
  // Confirmations are stored with their account, names on every node.
  const target = list.dictionary ? await insertTargetOnAllNodes(store, list.table) : list.table;
  const version = list.dictionary ? await storeTime(store, 9) : '';
  const confirmed = list.dictionary ? '' : (confirmedAt ?? (await confirmationTime(store)).time);
  const nodes = await nodeTables(store, list.table);
  const stored = { source: await everyCopyOf(store, list.table), copies: nodes.length || 1 };
  const begun: Buffer[] = [];
  try {
    rows = await insertData(store, {
      into: `${target} (${[...list.columns, ...list.added].join(', ')})`,
      select: list.select(checkedRows(list.columns), stored),
      format: clickhouse,
      data: withoutEmptyLines(
        readInput(input, undefined, encoding === undefined || encoding === 'utf-8' ? {} : { encoding }),
        input.name,
        list.columns,
        delimiter,
        begun,
      ),
      params: list.dictionary ? { version } : { confirmedAt: confirmed },
      settings: {
        ...readerSettings,
        ...(delimiter !== undefined && { format_csv_delimiter: delimiter }),
        // Without it a blank is trimmed from a cell, also where it is the delimiter.
        ...(/[\t ]/.test(delimiter ?? '') && { input_format_csv_allow_whitespace_or_tab_as_delimiter: 1 }),
        // One block: all lines or none, numbered in the order of the file.
        input_format_parallel_parsing: 0,
        max_insert_threads: '1',
        max_threads: 1,
        min_insert_block_size_rows: '1000000000',
        min_insert_block_size_bytes: '0',
      },
    });
  } catch (error) {
    // Lists are small: where one lacks memory or time, other statements have taken it.
    if (!isRefusal(error) || wasEnded(error)) throw error;
    const reason = reasonOf(error.message, list, namesIn(begun, delimiter));
    throw new InputError(`${input.name}: nothing was loaded: ${reason}`, { cause: error });
  }
  // ClickHouse counts what the view of the past stores as well, unless it goes through a table of another server.
  const local = list.dictionary ? nodes.length === 0 : (await layoutOf(store)) === undefined;
  const lines = local ? rows / 2 : rows;
  if (list.dictionary) {
    await reloadDictionary(store, list.dictionary);
    await recordShownNames(store, { dictionary: list.dictionary, version, lines });
  } else {
    await recordShownConfirmations(store, confirmed);
  }
  return lines;
}

/** The names in the first line, to say what is missing there; ClickHouse alone reads it. */
function namesIn([begun]: readonly Buffer[], delimiter: string | undefined): string[] | undefined {
  if (delimiter === undefined || !begun?.includes(lineFeed)) return undefined;
  const line = begun.subarray(0, begun.indexOf(lineFeed)).toString();
  return line.split(delimiter).map((cell) => cell.trim().replace(/^"|"$/g, ''));
}

const [lineFeed, carriageReturn, quote] = [0x0a, 0x0d, 0x22];

/**
 * The same text without its empty lines, which are no records. Those in quoted cells stay.
 * @param columns those of the list, which CSV without any line is taken to name
 * @param delimiter between cells that may be quoted; absent: quotes mean nothing
 * @param begun takes the first piece of it
 * @throws {InputError} for a quote that is never closed: the rest of the file would be one cell
 */
async function* withoutEmptyLines(
  text: AsyncIterable<Uint8Array>,
  file: string,
  columns: readonly string[],
  delimiter: string | undefined,
  begun: Buffer[],
): AsyncGenerator<Uint8Array> {
  const between = delimiter?.charCodeAt(0);
  let before = lineFeed;
  let inQuotes = false;
  let [line, quotedFrom] = [1, 0];
  for await (const piece of text) {
    const kept = new Uint8Array(piece.length);
    let length = 0;
    for (const byte of piece) {
      if (byte === lineFeed) line++;
      const isEmpty = !inQuotes && before === lineFeed && (byte === lineFeed || byte === carriageReturn);
      if (isEmpty) continue;
      if (between !== undefined && byte === quote) {
        // A second quote in a row, too, opens it again.
        inQuotes = !inQuotes && (before === lineFeed || before === between || before === quote);
        if (before !== quote) quotedFrom = line;
      }
      before = byte;
      kept[length++] = byte;
    }
    if (begun.length === 0 && length > 0) begun.push(Buffer.from(kept.subarray(0, length)));
    yield kept.subarray(0, length);
  }
  // A list of nothing changes nothing. ClickHouse would look for the names of columns in it.
  if (begun.length === 0 && delimiter !== undefined) yield Buffer.from(`${columns.join(delimiter)}\n`);
  if (inQuotes)
    throw new InputError(
      `${file}: nothing was loaded: the quote that opens in line ${quotedFrom} is never closed`,
    );
}
