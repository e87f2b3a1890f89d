import { type LosslessNumber, parse } from 'lossless-json';
import { expect } from 'vitest';
import { familyOf, questionPath } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { compileExplanation } from '../../src/report/explain/compile-explanation.ts';
import { explainedRow } from '../../src/report/explain/explain-request.ts';
import { micros, paths, type Row } from './oracle.ts';
import type { TestService } from './service.ts';
import type { TestStore } from './store.ts';

export interface Part {
  readonly kind: string;
  readonly load: string | null;
  readonly corrects: string | null;
  readonly chunk: string | null;
  readonly first_day: string;
  readonly last_day: string;
  readonly unconfirmed: boolean;
  readonly confirmed_at: string | null;
  readonly [figure: string]: unknown;
}

export interface Explanation {
  readonly row: Readonly<Record<string, LosslessNumber>>;
  readonly parts: readonly Part[];
}

export interface Asked {
  readonly start_time?: string;
  readonly end_time?: string;
  readonly filters?: Readonly<Record<string, readonly string[]>>;
  readonly row?: Readonly<Record<string, unknown>>;
}

/** The days of `event()` and of `randomEvents()`. */
const days = { start_time: '2026-01-01', end_time: '2026-03-31' };

/** Asks what a row is made of; the parts must add up to it. */
export async function explain(
  service: TestService,
  family: string,
  account: string,
  asked: Asked = {},
): Promise<Explanation> {
  const response = await service.post(questionPath(family, 'explain'), account, {
    ...days,
    row: {},
    ...asked,
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const { result } = parse(text) as { result: Explanation };
  for (const name of Object.keys(familyOf(catalog, family).measures)) {
    const sum = result.parts.reduce((total, part) => total + micros(String(part[name])), 0n);
    expect(sum, name).toBe(micros(String(result.row[name])));
  }
  return result;
}

/** Asks for random rows of random reports what they are made of; figures of row and report must be the same. */
export async function explainRandomRows(
  service: TestService,
  accounts: readonly string[],
  random: () => number,
  count: number,
): Promise<void> {
  const one = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
  for (let n = 0; n < count; n++) {
    const path = one(paths);
    const family = path.split('/')[2] ?? '';
    const account = one(accounts);
    const { entity, dimensions, measures } = familyOf(catalog, family);
    const filters = one([{}, { device: ['mobile', 'unknown'] }, { [entity]: ['c1', 'C1', 'c10', 'é'] }]);
    const body = { ...days, ids: true, filters };
    const response = await service.post(path, account, body);
    const { result } = parse(await response.text()) as { result: { rows: Row[] } };
    const row = one(result.rows);
    const keys = [entity, ...dimensions].flatMap((name) => catalog.dimensions[name]?.key ?? []);
    const ids = Object.fromEntries(keys.filter((key) => key in row).map((key) => [key, row[key]]));
    const { start_time, end_time } = row as Record<string, string>;
    const explained = await explain(service, family, account, {
      start_time,
      end_time,
      filters,
      row: ids,
    } as Asked);
    for (const name of Object.keys(measures)) expect(explained.row[name], name).toEqual(row[name]);
    expect(explained.parts.length).toBeGreaterThan(0);
  }
}

/** Sums over some days, by the ids of a rollup. */
interface Cell {
  readonly family: string;
  readonly account: string;
  readonly start_time: string;
  readonly end_time: string;
  readonly row: Readonly<Record<string, string>>;
  readonly sums: Readonly<Record<string, string>>;
}

/** Some cells of each rollup, of all accounts; which ones, and of how many days, goes by the seed. */
async function randomCells(db: TestStore, seed: number): Promise<Cell[]> {
  const found: Cell[] = [];
  for (const { family, table, sortingKey } of rollups(catalog)) {
    const keys = sortingKey.filter((name) => name !== 'account_id' && name !== 'day');
    const days = `intDiv(toUInt32(day), 1 + cityHash64(account_id, ${keys.join(', ')}, ${seed}) % 60)`;
    const pairs = (names: readonly string[], value: (name: string) => string) =>
      `map(${names.flatMap((name) => [`'${name}'`, value(name)]).join(', ')})`;
    const cells = await select<Omit<Cell, 'family'>>(
      db.store,
      `SELECT account_id AS account, toString(min(r.day)) AS start_time, toString(max(r.day)) AS end_time,
         ${pairs(keys, (key) => `toString(${key})`)} AS row,
         ${pairs(Object.keys(familyOf(catalog, family).measures), (name) => `toString(sum(r.${name}))`)} AS sums
       FROM ${table} AS r GROUP BY account_id, ${keys.join(', ')}, ${days} AS days
       ORDER BY cityHash64(account_id, ${keys.join(', ')}, days, ${seed}) LIMIT 40`,
    );
    found.push(...cells.map((cell) => ({ ...cell, family })));
  }
  return found;
}

/** Random cells are what their explanations say, and the sums of the parts. @returns of how many kinds the parts were */
export async function explainCells(db: TestStore, seed: number, count: number): Promise<Set<string>> {
  const reader = new Reader(db.address, 60_000);
  const kinds = new Set<string>();
  const check = async ({ family, account, row, sums, ...days }: Cell) => {
    const { query, params, settings } = compileExplanation(
      explainedRow(catalog, family, account, { ...days, row }),
    );
    const quoted = { output_format_json_quote_decimals: 1, output_format_json_quote_64bit_integers: 1 };
    const all = { query, params, settings: { ...settings, ...quoted, max_threads: 1 } };
    const [found] = await reader.rows<{ result: Explanation }>(all);
    for (const [name, sum] of Object.entries(sums)) {
      const parts = (found?.result.parts ?? []).map((part) => micros(String(part[name])));
      const told = [parts.reduce((total, each) => total + each, 0n), micros(String(found?.result.row[name]))];
      expect(told, JSON.stringify({ family, account, row, ...days })).toEqual([micros(sum), micros(sum)]);
    }
    for (const { kind } of found?.result.parts ?? []) kinds.add(kind);
  };
  try {
    for (let n = 0, left = count; left > 0; n++) {
      const cells = (await randomCells(db, seed + n)).slice(0, left);
      left -= cells.length;
      await Promise.all(
        [0, 1, 2, 3].map(async (worker) => {
          for (const [place, cell] of cells.entries()) if (place % 4 === worker) await check(cell);
        }),
      );
    }
  } finally {
    reader.close();
  }
  return kinds;
}
