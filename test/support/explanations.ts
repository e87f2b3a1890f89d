import { type LosslessNumber, parse } from 'lossless-json';
import { expect } from 'vitest';
import { explainPath, familyOf } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { micros, paths, type Row } from './oracle.ts';
import type { TestService } from './service.ts';

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
  const response = await service.post(explainPath(family), account, { ...days, row: {}, ...asked });
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
