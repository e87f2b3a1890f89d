import { numberName, textName } from '../event/expressions.ts';
import { identifier } from '../event/sql.ts';

/** An expression, cut where columns stand. */
export interface Expression {
  /** SQL between the columns: one piece more than there are columns. */
  readonly pieces: readonly string[];
  /** The column at each place, as often as it stands there. */
  readonly columns: readonly string[];
  /** Values of its text and number literals. */
  readonly literals: readonly string[];
}

/** Strings, quoted names and comments first, in which braces and digits mean nothing. A column may be called {so}. */
const token =
  /(?<comment>--[^\n]*|\/\*[\s\S]*?\*\/)|(?<text>'(?:[^'\\]|\\[\s\S]|'')*')|(?<name>"(?:[^"\\]|\\[\s\S])*"|`(?:[^`\\]|\\[\s\S])*`)|\{(?<column>\{[^{}]*\}|[^{}]*)\}|(?<word>[A-Za-z_][A-Za-z0-9_]*(?:\.[0-9]+)*)|(?<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)|[\s\S]/g;

/** Takes an expression apart. Whether it is SQL is left to the engine. */
export function parseExpression(source: string): Expression {
  const pieces = [''];
  const columns: string[] = [];
  const literals: string[] = [];
  const add = (sql: string) => pieces.push(`${pieces.pop()}${sql}`);
  for (const { 0: all, groups = {} } of source.trim().matchAll(token)) {
    if (groups.comment !== undefined) add(' ');
    else if (groups.column !== undefined) {
      columns.push(groups.column);
      pieces.push('');
    } else if (groups.number !== undefined) {
      literals.push(all);
      add(exact(all));
    } else {
      if (groups.text !== undefined)
        literals.push(all.slice(1, -1).replace(/\\([\s\S])|''/g, (_, c) => c ?? "'"));
      add(all);
    }
  }
  return { pieces, columns, literals };
}

/** The SQL of an expression. @param isNumber of the place of a column: whether its number is meant, not its text */
export function render({ pieces, columns }: Expression, isNumber: (place: number) => boolean): string {
  return pieces
    .map((piece, n) => {
      const column = columns[n];
      return column === undefined
        ? piece
        : `${piece} ${identifier(isNumber(n) ? numberName(column) : textName(column))} `;
    })
    .join('');
}

/** A literal with a fraction or an exponent is a float to the engine, and money is not. */
function exact(literal: string): string {
  const [, whole = '', fraction = '', exponent = '0'] =
    /^([0-9]+)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$/.exec(literal) ?? [];
  if (literal === whole) return literal;
  const places = Math.max(0, fraction.length - Number(exponent));
  return places > 24 || Number(exponent) > 24 ? literal : `toDecimal256('${literal}', ${places})`;
}
