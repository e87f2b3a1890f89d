import type { ClickHouseError } from '@clickhouse/client';
import { type Store, select } from '../../clickhouse/client.ts';
import { type CheckedExpression, numberName, numberOf, textName } from '../event/expressions.ts';
import { MappingError } from '../event/mapping.ts';
import { identifier } from '../event/sql.ts';
import { advised, inShort } from './advice.ts';
import { checkSettings, explain, isVerdict } from './engine.ts';
import { type Expression, parseExpression, render } from './expression.ts';
import { refusedFunction } from './functions.ts';
import { findFailure } from './probe.ts';
import { comparedAsText, functionThatFails } from './query-tree.ts';
import { noTruth, resultText, unfit } from './result-type.ts';
import { functionsIn } from './syntax.ts';

/**
 * Checks an expression on the engine: that it is a function of one record and nothing else, which columns
 * stand for their text and which for a number, and that it fails for no value.
 * @throws {MappingError} that names the place and says what is wrong
 */
export function checkExpression(store: Store, source: string, place: string): Promise<CheckedExpression> {
  return check(store, source, place, unfit);
}

/**
 * Checks an expression that is true or false of a record.
 * @throws {MappingError} that names the place and says what is wrong
 */
export async function checkCondition(
  store: Store,
  source: string,
  place: string,
): Promise<CheckedExpression> {
  const checked = await check(store, source, place, noTruth);
  if (checked.columns.length === 0) {
    throw new MappingError(`${place}: is the same for every record; name a column of the file as {column}`);
  }
  return checked;
}

async function check(
  store: Store,
  source: string,
  place: string,
  faultOf: (type: string) => string | undefined,
): Promise<CheckedExpression> {
  const refuse = (reason: string) => new MappingError(`${place}: ${reason}`);
  const expression = parseExpression(source);
  const names = await functionsIn(store, expression).catch((error: unknown) => {
    throw isVerdict(error) ? refuse(inShort(error)) : error;
  });
  if (typeof names === 'string') throw refuse(names);
  const forbidden = await refusedFunction(store, names);
  if (forbidden) throw refuse(forbidden);
  const chosen = await choose(store, expression);
  if (chosen instanceof Error) throw refuse(advised(inShort(chosen)));
  const { sql, type } = chosen;
  const fault = faultOf(type);
  if (fault !== undefined) throw refuse(fault);
  if (/DateTime/.test(type) && (await namesNoZone(store, expression.columns, sql, type))) {
    throw refuse(
      "comes to a time in no zone; name it, as in parseDateTimeOrNull(…, '%d.%m.%Y', 'Europe/Vienna')",
    );
  }
  const columns = [...new Set(expression.columns)];
  const row = ones(columns);
  const lines = await explain(store, `QUERY TREE passes = 1 SELECT (${sql}\n) FROM (${row})`);
  const mistake = functionThatFails(lines) ?? comparedAsText(lines);
  if (mistake) throw refuse(mistake);
  const failure = await findFailure(store, { ...expression, columns }, sql, (textOf, table) =>
    rowsOf(columns, textOf, table),
  );
  if (failure) {
    const values = columns.map((name, n) => `${textName(name)} = '${failure.values[n]}'`).join(', ');
    throw refuse(advised(`fails${values && ` for ${values}`}: ${inShort(failure.error)}`));
  }
  return {
    sql,
    text: resultText(type) ?? 'NULL',
    columns,
    numbers: columns.filter((name) => sql.includes(identifier(numberName(name)))),
  };
}

/** A SELECT of the rows of a table, with the text and the number of each column. */
function rowsOf(
  columns: readonly string[],
  textOf: (column: string, n: number) => string,
  table = 'system.one',
): string {
  const texts = columns.map((name, n) => `${textOf(name, n)} AS ${identifier(textName(name))}`);
  const numbers = columns.map(
    (name) => `${numberOf(identifier(textName(name)))} AS ${identifier(numberName(name))}`,
  );
  return `SELECT ${['*', ...numbers].join(', ')} FROM (SELECT ${['1', ...texts].join(', ')} FROM ${table})`;
}

/** A row in which each column is text and a number. */
const ones = (columns: readonly string[]) => rowsOf(columns, () => "materialize('1')");

/** Errors of types: other columns may be numbers. */
const typeErrors = new Set([
  'ILLEGAL_TYPE_OF_ARGUMENT',
  'NO_COMMON_TYPE',
  'TYPE_MISMATCH',
  'CANNOT_CONVERT_TYPE',
  'ILLEGAL_COLUMN',
  'BAD_ARGUMENTS',
  'BAD_TYPE_OF_FIELD',
]);
/** Errors of a literal that is no number, as of {A} IN ('x') where {A} is one. */
const literalErrors = new Set(['ATTEMPT_TO_READ_AFTER_EOF', 'CANNOT_PARSE_TEXT', 'CANNOT_PARSE_NUMBER']);
/** Of more places only all as text and all as numbers are tried. */
const mostPlaces = 8;

/** The SQL with the fewest numbers that the engine takes, and its type; the error of that with none otherwise. */
async function choose(
  store: Store,
  expression: Expression,
): Promise<{ sql: string; type: string } | ClickHouseError> {
  const row = ones([...new Set(expression.columns)]);
  let first: ClickHouseError | undefined;
  for (const isNumber of choices(expression.columns.length)) {
    const sql = render(expression, isNumber);
    try {
      const query = `SELECT toTypeName((${sql}\n)) AS type FROM (${row})`;
      const [found] = await select<{ type: string }>(store, query, {}, checkSettings);
      // The type alone is known without a value; some functions look at the types of their values only now.
      await select(store, `SELECT (${sql}\n) AS result FROM (${row})`, {}, checkSettings).catch(isOfValue);
      return { sql, type: found?.type ?? '' };
    } catch (error) {
      if (!isVerdict(error)) throw error;
      first ??= error;
      if (!typeErrors.has(error.type ?? '') && !literalErrors.has(error.type ?? '')) return error;
    }
  }
  if (!first) throw new Error('an expression can be all text at least');
  return first;
}

/** Which of so many places are numbers, the fewest first. */
function choices(places: number): ((place: number) => boolean)[] {
  if (places > mostPlaces) return [() => false, () => true];
  const numbers = (bits: number) => bits.toString(2).replaceAll('0', '').length;
  return Array.from({ length: 2 ** places }, (_, bits) => bits)
    .sort((a, b) => numbers(a) - numbers(b) || a - b)
    .map((bits) => (place) => (bits & (1 << place)) !== 0);
}

/** A value that cannot be read says nothing against the types. */
function isOfValue(error: unknown): void {
  if (!isVerdict(error) || typeErrors.has(error.type ?? '')) throw error;
}

/** Whether the zone of a time is the server's, which shows when that is another. */
async function namesNoZone(
  store: Store,
  columns: readonly string[],
  sql: string,
  type: string,
): Promise<boolean> {
  if (!/'/.test(type)) return true;
  const query = `SELECT toTypeName((${sql}\n)) AS type FROM (${ones([...new Set(columns)])})`;
  const elsewhere = { ...checkSettings, session_timezone: 'Antarctica/Vostok' };
  const [found] = await select<{ type: string }>(store, query, {}, elsewhere);
  return found?.type !== type;
}
