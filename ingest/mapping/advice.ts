import type { ClickHouseError } from '@clickhouse/client';

/** The engine's message without where it was thrown, and columns as they were written. */
export function inShort({ message, type }: ClickHouseError): string {
  const [, near] = /failed at position \d+ \(([\s\S]*?)\)(?: \(line [^)]*\))?:/.exec(message) ?? [];
  if (type === 'SYNTAX_ERROR' && near !== undefined)
    return `is no SQL expression: something is wrong at ${near}`;
  return message
    .replace(
      /: (?:In scope|while executing|while converting|While processing|in query|Syntax error)[\s\S]*$/i,
      '',
    )
    .replace(/\b__table\d+\./g, '')
    .replace(/`?(\{[^{}`]*\})#?`?/g, '$1')
    .replace(/[\s.]+$/, '')
    .split('\n', 1)
    .join('');
}

/** With what helps against it, where that is known. */
export function advised(message: string): string {
  const shown = message.length > 300 ? `${message.slice(0, 300)}…` : message;
  if (/Division by zero/.test(message)) return `${shown}. Divide by nullIf(…, 0): such a record is rejected`;
  if (/types? .*String.* of arguments? of function (plus|minus|multiply|divide|modulo)/.test(message))
    return `${shown}. Text becomes a number by toDecimal64OrNull(…, 6)`;
  if (/overflow/i.test(message)) return `${shown}. Let it be NULL by toDecimal64OrNull(toString(…), 6)`;
  if (/^fails/.test(message))
    return `${shown}. Functions ending in OrNull, or beginning with try, do not fail: a record without a result is rejected`;
  return shown;
}
