import { quoted } from '../../clickhouse/quoted.ts';

/** A name of a column as SQL. */
export function identifier(name: string): string {
  return `\`${name.replace(/[\\`]/g, '\\$&')}\``;
}

/** Whether an expression matches a pattern of RE2. */
export function matches(expression: string, pattern: string): string {
  return `match(${expression}, ${quoted(pattern)})`;
}

/** The first condition that holds decides. `multiIf` without a condition is not SQL. */
export function firstOf(
  cases: readonly (readonly [condition: string, value: string])[],
  otherwise: string,
): string {
  return cases.length === 0 ? otherwise : `multiIf(${cases.flat().join(', ')}, ${otherwise})`;
}

/**
 * A number as people and programs write it. With an exponent it has up to 33 digits: so none that matters to money, of six
 * decimal places, is cut off behind the 38 of a Decimal256.
 */
export const anyNumber =
  '^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+|([0-9]{1,15}(\\.[0-9]{0,18})?|\\.[0-9]{1,18})[eE][+-]?[0-9]{1,3})$';

/** Whether a number has more decimal places than these, zeros at its end aside; `number` is read from the text with 38 places. */
export function hasMorePlaces(text: string, number: string, places: number): string {
  const isCut = `${matches(text, '[.][0-9]{38}[0-9]*[1-9]')} OR ${number} = 0 AND ${matches(text, '^[^eE]*[1-9]')}`;
  return `(${number} != round(${number}, ${places}) OR ${isCut})`;
}
