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
