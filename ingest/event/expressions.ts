import { anyNumber, firstOf, hasMorePlaces, identifier, matches } from './sql.ts';
import type { Rule } from './values.ts';

/** The text of a column of the file, of type String; undefined where the file has no such column. */
export type ColumnText = (column: string) => string | undefined;

/** An expression that the engine has checked. */
export interface CheckedExpression {
  /** SQL in which columns stand as `textName` and `numberName` call them. */
  readonly sql: string;
  /** The result as text: SQL of type Nullable(String) in which the result is `result`. */
  readonly text: string;
  readonly columns: readonly string[];
  /** Those that stand for a number somewhere. */
  readonly numbers: readonly string[];
}

/** Which records are events at all. */
export interface Condition {
  /** SQL of a truth value: whether the record is one. It counts where none of the rules is broken. */
  readonly holds: string;
  /** What must hold for the condition to have a result. */
  readonly rules: readonly Rule[];
  /** What it is about. */
  readonly columns: readonly string[];
}

/** How an expression calls the text of a column, as an identifier. */
export const textName = (column: string): string => `{${column}}`;
/** How it calls its number: Nullable(Decimal), NULL where the text is no number. */
export const numberName = (column: string): string => `{${column}}#`;

/**
 * Adds what expressions come to to the columns of a SELECT in which `columnText` holds. Two layers, so that an
 * expression runs as it was checked: columns by their names, then of each expression its result (`r_` and the name of
 * the expression), that as text (`e_`), whether a text stands where a number is wanted (`n_`), and whether it has no result although it was
 * given something (`b_`).
 * @param round see `numberOf`
 */
export function computeExpressions(
  expressions: ReadonlyMap<string, CheckedExpression>,
  select: string,
  columnText: ColumnText,
  round: boolean,
): string {
  if (expressions.size === 0) return select;
  const all = [...expressions.values()];
  const columns = [...new Set(all.flatMap(({ columns }) => columns))];
  const numbers = [...new Set(all.flatMap(({ numbers }) => numbers))];
  const inputs = [
    ...columns.map((name) => `${columnText(name) ?? "''"} AS ${identifier(textName(name))}`),
    ...numbers.map(
      (name) => `${numberOf(identifier(textName(name)), round)} AS ${identifier(numberName(name))}`,
    ),
  ];
  const results = [...expressions].flatMap(([name, { sql, text, columns, numbers }]) => {
    const given = columns.map((column) => `${identifier(textName(column))} != ''`);
    const noNumber = numbers.map(
      (column) => `isNull(${identifier(numberName(column))}) AND trim(${identifier(textName(column))}) != ''`,
    );
    const result = `r_${name}`;
    return [
      `(${sql}\n) AS ${result}`,
      `ifNull(${text.replaceAll('result', result)}, '') AS e_${name}`,
      `${noNumber.length > 0 ? noNumber.map((each) => `(${each})`).join(' OR ') : 'false'} AS n_${name}`,
      `isNull(${result}) AND (${given.length > 0 ? given.join(' OR ') : 'true'}) AS b_${name}`,
    ];
  });
  return `SELECT *, ${results.join(',\n    ')} FROM (SELECT *, ${inputs.join(', ')} FROM (${select}))`;
}

/**
 * What must hold for the expression of that name to have a result. A record that gives it nothing need not have one.
 * @param isText the result is kept as it is
 */
export function rulesOfExpression(
  name: string,
  expression: CheckedExpression,
  isText: boolean,
): readonly Rule[] {
  if (!isText) return rulesOf(name, expression, `b_${name}`);
  // Functions of bytes cut characters in two, or make any bytes. A record has room for 64 rules, so this is part of one.
  const noText = `(b_${name} OR NOT isValidUTF8(e_${name}) OR position(e_${name}, '\\0') > 0)`;
  return rulesOf(name, expression, noText, ', or comes to text that is not valid UTF-8 or has a NUL');
}

/** A condition without a result leaves nothing out: its record is rejected, also one that gives it nothing. */
export function conditionOf(name: string, expression: CheckedExpression): Condition {
  const rules = rulesOf(name, expression, `isNull(r_${name})`);
  return {
    holds: `(ifNull(r_${name}, false) != 0)`,
    rules: rules.map(({ broken, reason }) => ({ broken, reason: `where ${reason}` })),
    columns: expression.columns,
  };
}

function rulesOf(name: string, { columns, numbers }: CheckedExpression, noResult: string, or = ''): Rule[] {
  return [
    ...(numbers.length > 0
      ? [{ broken: `n_${name}`, reason: `must be computed from numbers, and ${oneOf(numbers)} is no number` }]
      : []),
    {
      broken: `${noResult} AND NOT n_${name}`,
      reason: `cannot be computed from ${columns.map(textName).join(', ')}${or}`,
    },
  ];
}

/** Whether an expression came to nothing, of the reason why a record was rejected. */
export const hasNoResult = (reason: string): boolean => /^(must|cannot) be computed from /.test(reason);

function oneOf(names: readonly string[]): string {
  return names.map(textName).join(' or ');
}

/** Plainly at most 12 decimal places. */
const fewPlaces = '^[+-]?([0-9]+\\.?[0-9]{0,12}|\\.[0-9]{1,12})([eE]\\+?[0-9]{1,3})?$';

/**
 * The number in a text: Nullable(Decimal) of 12 places, so that nothing is lost as it would be in a float; NULL where
 * it is no number, has more than 15 digits before the point, so that products of two do not overflow, or more than 12
 * behind it.
 * @param round further digits behind the point are cut off instead
 */
export function numberOf(text: string, round = false): string {
  const given = `trim(${text})`;
  const decimal = `toDecimal256OrNull(${given}, 12)`;
  const all = `toDecimal256OrNull(${given}, 38)`;
  const exact = `${matches(given, anyNumber)}${round ? '' : ` AND NOT ${hasMorePlaces(given, all, 12)}`}`;
  return firstOf(
    [
      [`ifNull(abs(${decimal}) >= 1000000000000000, true)`, 'NULL'],
      [matches(given, fewPlaces), decimal],
      [exact, decimal],
    ],
    'NULL',
  );
}
