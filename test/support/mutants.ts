import { parseAst } from 'vitest/node';

/** One change of a source file. */
export interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

const otherOperators: Readonly<Record<string, string>> = {
  ...{ '===': '!==', '!==': '===', '<': '<=', '<=': '<', '>': '>=', '>=': '>', '+': '-', '-': '+', '*': '/' },
  ...{ '/': '*', '%': '*', '<<': '>>', '>>': '<<', '&&': '||', '||': '&&', '++': '--', '--': '++' },
  ...{ '+=': '-=', '-=': '+=', '??=': '=' },
};
const otherMethods = new Map(
  Object.entries({
    some: 'every',
    every: 'some',
    startsWith: 'endsWith',
    endsWith: 'startsWith',
    max: 'min',
    min: 'max',
    find: 'findLast',
    ceil: 'floor',
    floor: 'ceil',
  }),
);
/** A call of one of these is left out, what it is called on stays. */
const narrowing = new Set(['filter', 'sort', 'toSorted', 'reverse', 'toReversed', 'slice', 'trim']);
/** Of SQL within a text. */
const otherSql: readonly (readonly [RegExp, string])[] = [
  [/\bAND\b/g, 'OR'],
  [/\bOR\b/g, 'AND'],
  [/\bNOT\b/g, ''],
  [/\bDISTINCT\b/g, ''],
  [/\bFINAL\b/g, ''],
  [/\bDESC\b/g, ''],
  [/\bmax\(/g, 'min('],
  [/\bmin\(/g, 'max('],
  [/\bsum\(/g, 'max('],
  [/ UNION ALL /g, ''],
  [/ > /g, ' >= '],
  [/ < /g, ' <= '],
  [/ >= /g, ' > '],
  [/ <= /g, ' < '],
  [/ = /g, ' != '],
  [/ != /g, ' = '],
  [/ IN /g, ' NOT IN '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
];

/** Every mutant of a file, in the order of its text. Types, imports and patterns of texts stay as they are. */
export function mutantsOf(source: string): Mutant[] {
  const found: Mutant[] = [];
  visit(parseAst(source, { lang: 'ts' }) as unknown as Node, source, found);
  return found.sort((a, b) => a.start - b.start || a.end - b.end);
}

export const mutated = (source: string, { start, end, text }: Mutant): string =>
  `${source.slice(0, start)}${text}${source.slice(end)}`;

function visit(node: Node, source: string, found: Mutant[]): void {
  if (/^(Import|ExportAll|TS(?!As|Satisfies|NonNull|ParameterProperty))/.test(node.type)) return;
  const replace = (part: Node, text: string) => found.push({ start: part.start, end: part.end, text });
  const textOf = (part: unknown) => source.slice((part as Node).start, (part as Node).end);
  const swap = (from: number) => {
    const operator = `${node.operator}`;
    const other = otherOperators[operator];
    const start = source.indexOf(operator, from);
    if (other) found.push({ start, end: start + operator.length, text: other });
  };
  switch (node.type) {
    case 'LogicalExpression':
      if (node.operator !== '??') swap((node.left as Node).end);
      else for (const side of [node.left, node.right]) replace(node, textOf(side));
      break;
    case 'BinaryExpression':
    case 'AssignmentExpression':
      swap((node.left as Node).end);
      break;
    case 'UpdateExpression':
      swap(node.prefix ? node.start : (node.argument as Node).end);
      break;
    case 'UnaryExpression':
      if (node.operator === '!' || node.operator === '-') replace(node, textOf(node.argument));
      break;
    case 'ConditionalExpression':
      for (const branch of [node.consequent, node.alternate]) replace(node, `(${textOf(branch)})`);
      break;
    case 'IfStatement':
      for (const value of ['true', 'false']) replace(node.test as Node, value);
      break;
    case 'WhileStatement':
    case 'DoWhileStatement':
      replace(node.test as Node, 'false');
      break;
    case 'ExpressionStatement':
    case 'ThrowStatement':
      replace(node, ';');
      break;
    case 'TryStatement':
      if (node.finalizer) replace(node.finalizer as Node, '{}');
      break;
    case 'Literal':
      if (typeof node.value === 'boolean') replace(node, `${!node.value}`);
      else if (typeof node.value === 'number') replace(node, `(${node.raw} + 1)`);
      else if (typeof node.value === 'string') changeText(node.start + 1, node.end - 1);
      break;
    case 'TemplateElement':
      // Its place includes what is before and behind it: a backtick or a brace.
      changeText(node.start + 1, node.end - (node.tail ? 1 : 2));
      break;
    case 'ArrayExpression':
      for (const element of node.elements as (Node | null)[]) if (element) replace(element, '...[]');
      break;
    case 'ObjectExpression':
      for (const property of node.properties as Node[]) replace(property, '...{}');
      break;
    case 'CallExpression':
      changeCall(node.callee as Node);
      break;
  }
  for (const [name, child] of Object.entries(node)) {
    const isName = (name === 'key' || name === 'property') && !node.computed;
    if (isName || /^(type|return|super)(Annotation|Arguments|Parameters|Type)/.test(name)) continue;
    for (const part of Array.isArray(child) ? child : [child]) {
      if (typeof part === 'object' && part !== null && 'type' in part) visit(part as Node, source, found);
    }
  }

  function changeText(start: number, end: number): void {
    const written = source.slice(start, end);
    if (node.type === 'Literal' || written.trim() !== '')
      found.push({ start, end, text: written === '' ? 'mutant' : '' });
    for (const [sql, other] of /\b(SELECT|WHERE|FROM|UNION|BETWEEN|BY|[a-z]\w*\()/.test(written)
      ? otherSql
      : []) {
      for (const { index, 0: word } of written.matchAll(sql)) {
        found.push({ start: start + index, end: start + index + word.length, text: other });
      }
    }
  }

  function changeCall(callee: Node): void {
    if (callee.type !== 'MemberExpression' || callee.computed) return;
    const method = callee.property as Node;
    const name = `${method.name}`;
    const other = otherMethods.get(name);
    if (other) replace(method, other);
    if (narrowing.has(name)) replace(node, textOf(callee.object));
  }
}
