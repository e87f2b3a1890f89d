import type { ClickHouseError } from '@clickhouse/client';
import { type Store, select } from '../../clickhouse/client.ts';
import { checkSettings, isVerdict } from './engine.ts';
import type { Expression } from './expression.ts';

/** Values that functions stumble over. */
const hard = [
  ...['1', '', ' ', '%', '(', '\\', "'", '"', 'x'.repeat(300), '9'.repeat(400)],
  ...'0 -1 2 5.5 -0.000000000001 100 300 99999 1e3 1e400 nan inf 1,234.56 1.234,56 999999999999'.split(' '),
  ...'999999999999999.999999999999 -999999999999999.999999999999 18446744073709551616'.split(' '),
  ...'abc a,b;c|d ä€😀 [1,2 {"a":1} null true http://a.b/c?d=e#f'.split(' '),
  ...'2026-01-31 2026-02-30 31/12/2026 31.12.2026 2026-01-31T12:00:00 20260131 12:00 0000-00-00'.split(' '),
];
/** Bytes that are no text are rejected, but the expression sees them first. */
const noText = ["unhex('FF')", "'\\0'"];

export interface Failure {
  readonly error: ClickHouseError;
  /** The text of each column. */
  readonly values: readonly string[];
}

/**
 * Runs an expression over hard values of its columns, in every combination of up to three, and its own literals, also
 * with something before and after them. Undefined when it fails for none.
 * @param rows a SELECT of the rows of a table, given the text of each column
 */
export async function findFailure(
  store: Store,
  { columns, literals }: Expression,
  sql: string,
  rows: (textOf: (column: string, n: number) => string, table: string) => string,
): Promise<Failure | undefined> {
  const own = [...new Set(literals)].slice(0, 20).flatMap((text) => [text, `${text}x`, `x${text}`]);
  const values = [...hard, ...own];
  const size = values.length + noText.length;
  const every = size ** columns.length;
  const tried = Math.min(every, 50_000);
  const pick = (n: number) =>
    every === tried
      ? `intDiv(number, ${size ** n}) % ${size}`
      : `if(number < ${size}, number, sipHash64(number, ${n}) % ${size})`;
  const textAt = (n: number) => `arrayConcat({values:Array(String)}, [${noText.join(', ')}])[1 + ${pick(n)}]`;
  const run = async (from: number, to: number): Promise<ClickHouseError | undefined> => {
    const table = rows((_, n) => textAt(n), `numbers(${from}, ${to - from})`);
    const query = `SELECT sum(length(ifNull(toString((${sql}\n)), ''))) FROM (${table})`;
    return select(store, query, { values }, checkSettings).then(
      () => undefined,
      (error: unknown) => {
        if (isVerdict(error)) return error;
        throw error;
      },
    );
  };
  let [from, to] = [0, tried];
  let error = await run(from, to);
  if (!error) return undefined;
  // The first row of all that fails.
  while (to - from > 1) {
    const middle = Math.floor((from + to) / 2);
    const before = await run(from, middle);
    if (before) [to, error] = [middle, before];
    else from = middle;
  }
  error = (await run(from, to)) ?? error;
  const row = `SELECT [${columns.map((_, n) => `toValidUTF8(substring(${textAt(n)}, 1, 40))`).join(', ')}] AS found FROM numbers(${from}, 1)`;
  const [found] = await select<{ found: string[] }>(store, row, { values }, checkSettings);
  return { error, values: found?.found ?? [] };
}
