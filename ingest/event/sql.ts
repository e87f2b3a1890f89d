/** A SQL string literal. */
export function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t')}'`;
}

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

/** A number as people and programs write it. */
export const anyNumber = '^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]{1,3})?$';

/** How many decimal places it takes to write the number in a text exactly: 2 for `1.50e-1`, -3 for `7000`. */
export function decimalPlaces(text: string): string {
  const digits = `replaceRegexpAll(replaceRegexpOne(${text}, '[eE].*$', ''), '[^0-9]', '')`;
  const zeros = `length(extract(${digits}, '0*$'))`;
  const exponent = `toInt32OrZero(extract(${text}, '[eE]([+-]?[0-9]+)$'))`;
  const fraction = `length(extract(${text}, '\\\\.([0-9]*)'))`;
  return `if(${matches(digits, '^0*$')}, 0, toInt32(${fraction}) - toInt32(${zeros}) - ${exponent})`;
}
