import { parse } from 'lossless-json';
import { paths, type Recount } from '../oracle.ts';
import type { Dice } from '../round-files.ts';
import { type Books, range, sameRows } from './books.ts';
import type { Answer } from './judge.ts';
import type { Session } from './session.ts';

export interface ReaderGround {
  readonly session: Session;
  readonly token: (account: string) => string;
  readonly answers: Answer[];
}

/** With the day or without, both are made of one table. */
const tableOf = (path: string): string => path.replace(/\/breakdowns\/date$|_date$/, '');

/** How one question ended. */
export type Asked = 'told' | 'failed';

/** Asks for one report and writes the answer down, if it came whole. */
export async function ask(
  ground: ReaderGround,
  books: Books,
  dice: Dice,
  path = anyPath(dice),
): Promise<Asked> {
  const { session, token, answers } = ground;
  const { account } = books;
  const begin = performance.now();
  const response = await post(session.url, path, token(account), {
    start_time: range.start,
    end_time: range.end,
  });
  const end = performance.now();
  if (response === undefined) return 'failed';
  const { rows, unconfirmed_revenue_dates: dates } = (parse(response) as { result: Recount }).result;
  const { units, odd } = books.unitsIn(rows);
  books.lastUnits = units;
  const common = { account, begin, end };
  const whole = odd === 0 && sameRows(rows, books.recount(path, units).rows);
  answers.push({
    ...common,
    told: `${path} says ${units.toString(2)}${odd ? `, ${odd.toString(2)} not once` : ''}${whole ? '' : ` and has other rows: ${response}`}`,
    table: tableOf(path),
    fits: (state) => whole && state === units,
  });
  answers.push({
    ...common,
    told: `${path} says ${dates}`,
    table: `unconfirmed ${path.split('/')[2]}`,
    fits: (state) => `${books.recount(path, state).unconfirmed_revenue_dates}` === `${dates}`,
  });
  return 'told';
}

const anyPath = (dice: Dice): string => paths[dice.below(paths.length)] ?? '/v1/campaigns';

/** The whole text of an answer of status 200; undefined for any other end. */
export async function post(
  url: string,
  path: string,
  token: string,
  body: object,
): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(90_000),
    });
    const text = await response.text();
    return response.status === 200 ? text : undefined;
  } catch {
    return undefined;
  }
}
