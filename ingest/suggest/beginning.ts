import { type Info, parse as parseCsv } from 'csv-parse/sync';
import { requireNamedOnce } from '../formats/cells.ts';
import { type FormatName, formatOf } from '../formats/formats.ts';
import { namesIn } from '../formats/json-members.ts';
import { openBytes, type TextReading } from '../input/byte-source.ts';
import { compressions } from '../input/compression.ts';
import { heldInput } from '../input/held-input.ts';
import type { Input } from '../input/input.ts';
import { InputError } from '../input/input-error.ts';
import { firstObject } from '../input/json-records.ts';
import { fill, headBytes } from '../input/pieces.ts';
import { jsonIn } from '../input/text.ts';
import type { MappingText } from '../mapping/read-mapping.ts';
import { dateShape } from './dates.ts';
import { areNumbers } from './numbers.ts';

/** Members of a mapping that say how a file is written. */
export type Layout = Pick<MappingText, 'encoding' | 'delimiter' | 'header' | 'skip_lines' | 'records'>;

/** What the first lines of a file show. */
export interface Beginning {
  readonly columns: readonly string[];
  /** Texts of the first records, in the order of the columns; also of totals, if they are among them. */
  readonly rows: readonly (readonly string[])[];
  /** First cells of lines among the records that have fewer cells, such as those about the report below it. */
  readonly notes: readonly string[];
  readonly layout: Layout;
  /** The first records alone, with all that is before them. */
  readonly sample: Input;
}

const sampleRecords = 3;
/** What is looked at of a file that has more: anybody may have written it. */
const mostColumns = 500;
const mostRecords = 200;
/** Brackets around records. */
const mostDepth = 100;

/**
 * Looks at the beginning of a file: for its shape, never at all of it.
 * @throws {InputError} for what cannot be loaded either, has no record, or cannot be looked at more than once
 */
export async function readBeginning(
  input: Input,
  {
    format: forced,
    encoding,
    header = true,
  }: Pick<TextReading, 'encoding'> & {
    readonly format?: FormatName | undefined;
    /** Whether a line may name the columns. */
    readonly header?: boolean | undefined;
  },
): Promise<Beginning> {
  const format = formatOf(input, forced);
  if (!format.text)
    throw new InputError(
      `${input.name}: --suggest looks at text, and this is ${format.name}: give a column for each field by --map, as in --map spend=Cost`,
    );
  if (input.size() === undefined) throw new InputError(`${input.name}: --suggest needs a file`);
  const { text, isCut } = await headOf(input, { encoding });
  if (text.trim() === '') throw new InputError(`${input.name}: there is no record in it`);
  const own = format.text.delimiter;
  const found =
    own === undefined
      ? await jsonOf(input, text, { encoding })
      : tableOf(input, { text, isCut }, own, header);
  return { ...found, layout: { ...(encoding !== undefined && { encoding }), ...found.layout } };
}

interface Head {
  readonly text: string;
  readonly isCut: boolean;
}

/** The whole lines of the first bytes. */
async function headOf(input: Input, reading: TextReading): Promise<Head> {
  const source = await openBytes(input, () => {}, undefined, reading);
  try {
    const head = Buffer.alloc(headBytes);
    const length = await fill(head, source.read);
    const isCut = length === head.length;
    const whole = isCut ? head.lastIndexOf('\n') + 1 : length;
    return { text: head.subarray(0, whole || length).toString(), isCut };
  } finally {
    await source.close();
  }
}

/** @param own what stands between the cells of that format */
function tableOf(input: Input, { text, isCut }: Head, own: string, mayHaveHeader: boolean): Beginning {
  const lines = text.split('\n').map((line) => line.replace(/(?<!\r)\r+$/, ''));
  const readings = [own, ',', ';', '\t', '|'].map((delimiter) => ({
    delimiter,
    ...splitBy(text, delimiter),
    ...(!mayHaveHeader && { header: undefined }),
  }));
  // Of two that cut most lines alike, names of columns tell more than some cells; many more cells tell more than names.
  const evidence = ({ weight, header }: Split) => weight * (header === undefined ? 1 : 4);
  const { delimiter, records, width, header } = readings.reduce((best, each) =>
    evidence(each) > evidence(best) ? each : best,
  );
  const begin = header ?? 0;
  const below = records.slice(header === undefined ? 0 : begin + 1);
  const rows = below.filter(({ cells }) => cells.length === width);
  const notes = below.flatMap(({ cells }) => (cells.length < width ? cells.slice(0, 1) : []));
  // Titles alone, too, may be all that is seen of a wide table.
  if (isCut && (!text.includes('\n') || (rows.length === 0 && records.length <= mostTitles)))
    throw new InputError(
      `${input.name}: its first lines have more than ${headBytes} bytes, so its columns cannot be looked at: name them in a mapping`,
    );
  const titles = mayHaveHeader && header === undefined ? records.slice(0, mostTitles) : [];
  for (const { cells } of titles)
    if (cells.length === width && areNames(cells)) requireNamedOnce(input.name, cells);
  if (header !== undefined && rows.length === 0)
    throw new InputError(`${input.name}: there is no record in it`);
  const first = records[begin]?.cells.slice(0, mostColumns) ?? [];
  const columns = first.map((name, n) => (header === undefined ? `${n + 1}` : name));
  const before = (records[begin]?.begin ?? 1) - 1;
  const layout = {
    ...(delimiter !== own && { delimiter }),
    ...(header === undefined ? { header: false as const } : before > 0 && { skip_lines: before }),
  };
  const sample = firstLines(input, lines, rows[sampleRecords - 1]?.line ?? lines.length);
  return { columns, rows: rows.map(({ cells }) => cells), notes, layout, sample };
}

interface Split {
  readonly records: readonly {
    readonly cells: string[];
    /** Its first line, */
    readonly begin: number;
    /** and its last. */
    readonly line: number;
  }[];
  /** Cells that most records have. */
  readonly width: number;
  /** Cells in records of that width. */
  readonly weight: number;
  /** The first record of that width, if it can name columns. */
  readonly header: number | undefined;
}

function splitBy(text: string, delimiter: string): Split {
  const options = {
    delimiter,
    relax_quotes: true,
    relax_column_count: true,
    skip_empty_lines: true,
    info: true,
    to: mostRecords,
  };
  let parsed: { record: string[]; info: Info }[];
  try {
    parsed = parseCsv(text, options) as unknown as typeof parsed;
  } catch {
    // A quote is not closed, at least not here.
    return { records: [], width: 0, weight: 0, header: undefined };
  }
  const records = parsed.map(({ record, info }) => ({
    cells: record,
    begin: info.lines - record.reduce((lines, cell) => lines + cell.split('\n').length - 1, 0),
    line: info.lines,
  }));
  const counts = new Map<number, number>();
  for (const { cells } of records) counts.set(cells.length, (counts.get(cells.length) ?? 0) + 1);
  const [width = 0, count = 0] =
    [...counts].filter(([n]) => n > 1).sort(([a, m], [b, n]) => n - m || b - a)[0] ?? [];
  const wide = records.filter(({ cells }) => cells.length === width).slice(0, mostTitles);
  const names = wide.filter(({ cells }) => namesColumns(cells)).map(({ cells }) => filled(cells));
  // Above the names there may be titles and names of groups of columns, which leave cells empty.
  const at = wide.findIndex(
    ({ cells }, n) =>
      namesColumns(cells) &&
      // A first column without a name may hold numbers of rows. The line is no header where another line of names fills as many
      // cells, since it then names groups of columns, nor where the column holds days, which need a name or a number.
      !(
        cells[0] === '' &&
        (names.filter((count) => count >= filled(cells)).length > 1 ||
          dateShape(
            '',
            wide.slice(n + 1).map((each) => each.cells[0] ?? ''),
          ))
      ) &&
      filled(cells) * 2 > Math.max(...names) &&
      wide.slice(0, n).every((before) => filled(before.cells) < filled(cells)),
  );
  const header = wide[at];
  return {
    records,
    width,
    weight: width * count,
    header: header && records.indexOf(header),
  };
}

/** Records that may stand above the names of the columns. */
const mostTitles = 20;
const filled = (cells: readonly string[]): number => cells.filter((cell) => cell !== '').length;

/** Delimiters at the end of a line name nothing. */
const namesOf = (cells: readonly string[]) => cells.slice(0, cells.findLastIndex((cell) => cell !== '') + 1);

function areNames(cells: readonly string[]): boolean {
  const names = namesOf(cells);
  const isWord = (name: string) => /\p{L}/u.test(name);
  return (
    names.filter(isWord).length > 1 &&
    names.every((name, n) => {
      if (isWord(name)) return !dateShape('', [name]);
      // Numbers of rows may have no name, or a sign such as #.
      return name === '' ? n === 0 : !/\d/.test(name);
    })
  );
}

const namesColumns = (cells: readonly string[]): boolean =>
  areNames(cells) && new Set(namesOf(cells)).size === namesOf(cells).length;

async function jsonOf(input: Input, text: string, reading: TextReading): Promise<Beginning> {
  let path = pathToRecords(text);
  const linesAt = async (records: string[]) => linesOf((await headOf(input, { ...reading, records })).text);
  let lines = path === undefined ? linesOf(text) : await linesAt(path);
  const answers = path?.length === 0 ? answersIn(lines[0] ?? '') : undefined;
  if (answers !== undefined) {
    path = [answers];
    lines = await linesAt(path);
  }
  const all = [...new Set(lines.flatMap(namesIn))].slice(0, mostColumns);
  const names = all.filter((name) => !all.some((inner) => inner.startsWith(`${name}.`)));
  if (names.length === 0) throw new InputError(`${input.name}: there is no record in it`);
  // What is no JSON, the judge rejects.
  const parsed = lines.map(jsonIn).filter((record) => record !== undefined);
  const rows = parsed.map((record) => names.map((name) => textAt(record, name)));
  const layout = path && path.length > 0 ? { records: path.join('.') } : {};
  const sample = firstLines(input, lines, sampleRecords);
  return { columns: names, rows, notes: [], layout, sample };
}

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(0, mostRecords);

/**
 * The array of records in an element that is itself an answer of an API: no figure stands beside it, or it is cut off because
 * there are so many.
 */
function answersIn(element: string): string | undefined {
  const { names, arrays } = firstObject(Buffer.from(element));
  const [array, ...more] = arrays;
  if (array === undefined || more.length > 0) return undefined;
  const answer = jsonIn(element);
  return names.some((name) => areNumbers([textAt(answer, name)])) ? undefined : array;
}

/** Strings, names and brackets of a JSON text. One that is not closed ends with the text, so no character is looked at twice. */
const jsonTokens = /"((?:[^"\\]|\\.?)*)(?:"|$)(\s*:)?|[{}[\]]/gs;

/** Where the records of a JSON text are; undefined where each is a line. */
function pathToRecords(text: string): string[] | undefined {
  if (text.trimStart().startsWith('[')) return [];
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (lines.length > 1 && namesIn(lines[0] ?? '').length > 0) return undefined;
  const open: { readonly bracket: string; name: string }[] = [];
  for (const [token, name = '', colon] of text.matchAll(jsonTokens)) {
    const inner = open.at(-1);
    if (colon !== undefined && inner) inner.name = name;
    else if (
      token === '{' &&
      inner?.bracket === '[' &&
      open.slice(0, -1).every(({ bracket }) => bracket === '{')
    )
      return open.slice(0, -1).map((each) => each.name);
    else if (token === '{' || token === '[') open.push({ bracket: token, name: '' });
    else if (token === '}' || token === ']') open.pop();
    if (open.length > mostDepth) return undefined;
  }
  return undefined;
}

function textAt(record: unknown, name: string): string {
  const own = (value: unknown, key: string): unknown =>
    value !== null && typeof value === 'object' && Object.hasOwn(value, key)
      ? Reflect.get(value, key)
      : undefined;
  const value = own(record, name) ?? name.split('.').reduce(own, record);
  return value === null || value === undefined || typeof value === 'object' ? '' : String(value);
}

/** An input of the first lines of another. */
function firstLines({ name, endings }: Input, lines: readonly string[], count: number): Input {
  const plain = endings.filter((ending) => !compressions.has(ending));
  return heldInput(name, plain, Buffer.from(`${lines.slice(0, count).join('\n')}\n`));
}
