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
  // Lambdas that the line is in. Elsewhere their names would be columns of the loader or, behind IN, tables.
  let lambdas: { readonly depth: number; readonly names: readonly string[] }[] = [];
  for (const [n, line] of lines.entries()) {
    if (n < 4) continue;
    lambdas = lambdas.filter(({ depth }) => depth < depthOf(line));
    if (/ \(alias [^()]*\)(?: \(children \d+\))?$/.test(line)) return 'must not name a part of it with AS';
    const [, kind = '', rest = ''] = /^ *(\w+) ?(.*?)(?: \(children \d+\))?$/s.exec(line) ?? [];
    if (kind === 'Function') {
      names.add(rest);
      if (rest === 'lambda') lambdas.push({ depth: depthOf(line), names: parameters(lines, n) });
    } else if (kind === 'Identifier') {
      if (!columns.has(rest) && !lambdas.some(({ names }) => names.includes(rest)))
        return `${rest} is no value; a column is written {${rest}}`;
    } else if (kind !== 'Literal' && kind !== 'ExpressionList') {
      return 'may hold functions, values and {columns}, no subquery, window or list of columns';
    }
  }
  return [...names];
}

const depthOf = (line = '') => line.length - line.trimStart().length;

/** `x, y` of a lambda `(x, y) -> …`, whose line is the n-th. */
function parameters(lines: readonly string[], n: number): string[] {
  const end = lines.findIndex((line, m) => m > n + 3 && depthOf(line) <= depthOf(lines[n + 2]));
  return lines
    .slice(n + 3, end < 0 ? undefined : end)
    .flatMap((line) => /^ *Identifier (.*)$/.exec(line)?.[1] ?? []);
}
