import type { Store } from '../../clickhouse/client.ts';
import { textName } from '../event/expressions.ts';
import { explain } from './engine.ts';
import { type Expression, render } from './expression.ts';

/** Names of the functions in an expression, each once; or why it is not an expression. */
export async function functionsIn(store: Store, expression: Expression): Promise<string[] | string> {
  const sql = render(expression, () => false);
  // In brackets it can be nothing but an expression, and without them no bracket of its own can end it.
  const lines = await explain(store, `AST SELECT ${sql}\n`);
  const frame = [
    'SelectWithUnionQuery (children 1)',
    ' ExpressionList (children 1)',
    '  SelectQuery (children 1)',
  ];
  const isOne = frame.every((line, n) => lines[n] === line) && lines[3] === '   ExpressionList (children 1)';
  if (!isOne) return 'must be one expression, not a statement or a list';
  await explain(store, `AST SELECT (${sql}\n)`);
  const columns = new Set(expression.columns.map(textName));
  const names = new Set<string>();
  const unknown = new Set<string>();
  const bound = new Set<string>();
  for (const [n, line] of lines.entries()) {
    if (n < 4) continue;
    if (/ \(alias [^()]*\)(?: \(children \d+\))?$/.test(line)) return 'must not name a part of it with AS';
    const [, kind = '', rest = ''] = /^ *(\w+) ?(.*?)(?: \(children \d+\))?$/s.exec(line) ?? [];
    if (kind === 'Function') {
      names.add(rest);
      if (rest === 'lambda') for (const name of parameters(lines, n)) bound.add(name);
    } else if (kind === 'Identifier') {
      if (!columns.has(rest)) unknown.add(rest);
    } else if (kind !== 'Literal' && kind !== 'ExpressionList') {
      return 'may hold functions, values and {columns}, no subquery, window or list of columns';
    }
  }
  for (const name of unknown)
    if (!bound.has(name)) return `${name} is no value; a column is written {${name}}`;
  return [...names];
}

/** `x, y` of a lambda `(x, y) -> …`, whose line is the n-th. */
function parameters(lines: readonly string[], n: number): string[] {
  const depth = (line = '') => line.length - line.trimStart().length;
  const end = lines.findIndex((line, m) => m > n + 3 && depth(line) <= depth(lines[n + 2]));
  return lines
    .slice(n + 3, end < 0 ? undefined : end)
    .flatMap((line) => /^ *Identifier (.*)$/.exec(line)?.[1] ?? []);
}
