import type { Asked, State, Statement } from './state.ts';
import { Counted, rollupTables } from './tables.ts';

const days = (server: State, tables: readonly string[], from: string, to: string): string[] => {
  const all = tables.flatMap((table) =>
    [...server.tables.table(table).counts.values()].map(({ day }) => day),
  );
  return [...new Set(all)].filter((day) => day >= from && day <= to).sort();
};
const staged = (server: State) =>
  [...server.tables.counted.keys()].filter((name) => name.startsWith('rebuild_'));

/** What verifying and rebuilding rollups asks. */
export const rebuildReads: readonly (readonly [
  RegExp,
  (server: State, asked: Asked) => readonly object[],
])[] = [
  [/^SELECT name FROM system\.tables .* startsWith/, (server) => staged(server).map((name) => ({ name }))],
  [
    /^SELECT toString\(min\(s\.day\)\) AS from/,
    (server, { query, params }) => {
      const tables = [...query.matchAll(/count\(\) AS rows FROM (\w+)/g)].map(([, table = '']) => table);
      const found = days(server, tables, String(params.from), String(params.to));
      return found.length > 0 ? [{ from: found[0], to: found.at(-1) }] : [];
    },
  ],
  [
    /^SELECT toYYYYMM\(day\) AS month, toString\(min\(d\.day\)\)/,
    (server, { params }) => {
      const asked = params.months as number[];
      const months = new Map<number, string[]>();
      for (const day of days(server, ['events', ...rollupTables], '', '9')) {
        const month = Number(day.slice(0, 7).replace('-', ''));
        if (asked.includes(month)) months.set(month, [...(months.get(month) ?? []), day]);
      }
      return [...months].map(([month, own]) => ({ month, from: own[0], to: own.at(-1) }));
    },
  ],
  [
    /^SELECT DISTINCT toUInt32\(partition\) AS month/,
    (server, { params }) => {
      const months = days(server, [String(params.table)], '', '9').map((day) =>
        Number(day.slice(0, 7).replace('-', '')),
      );
      const replaced = params.replaced as number[];
      return [...new Set(months)].filter((month) => !replaced.includes(month)).map((month) => ({ month }));
    },
  ],
  [
    /^WITH (?:\w+ AS|expected AS) .*both_sides AS/s,
    (server, { query, params }) => {
      const [, table = ''] = /SELECT '(\w+)' AS table/.exec(query) ?? [];
      const isIn = (day: string) => day >= String(params.from) && day <= String(params.to);
      const rowsOf = (name: string) =>
        [...server.tables.table(name).counts.values()].filter(({ day }) => isIn(day));
      const [expected, stored] = [rowsOf('events'), rowsOf(table)];
      const same =
        expected.length === stored.length &&
        expected.every(({ chunk, day, rows }) =>
          stored.some((row) => row.chunk === chunk && row.day === day && row.rows === rows),
        );
      return same
        ? []
        : [{ table, account: 'a', day: params.from, measure: 'rows', events: '0', rollup: '1' }];
    },
  ],
];

type Change = (server: State, statement: Statement) => undefined;

export const rebuildWrites: readonly (readonly [RegExp, Change])[] = [
  [
    /^CREATE TABLE (rebuild_\w+) AS/,
    ({ tables }, { query }) => void tables.counted.set(/TABLE (\w+)/.exec(query)?.[1] ?? '', new Counted()),
  ],
  [
    /^INSERT INTO (rebuild_\w+) \(/,
    (server, { query, params }) => {
      const target = server.tables.table(/INTO (\w+)/.exec(query)?.[1] ?? '');
      const source = server.tables.table(/FROM (\w+) AS [er]\b/.exec(query)?.[1] ?? '');
      for (const [key, row] of source.counts)
        if (row.day >= String(params.from) && row.day <= String(params.to))
          target.counts.set(key, { ...row });
    },
  ],
  [
    /^ALTER TABLE (rebuild_\w+) ATTACH PARTITION/,
    (server, { query }) => {
      const [, to = '', month = '', from = ''] =
        /TABLE (\w+) ATTACH PARTITION (\d+) FROM (\w+)/.exec(query) ?? [];
      for (const [key, row] of server.tables.table(from).counts)
        if (row.day.slice(0, 7).replace('-', '') === month)
          server.tables.table(to).counts.set(key, { ...row });
    },
  ],
  [
    /^EXCHANGE TABLES/,
    ({ tables }, { query }) => {
      const [, a = '', b = ''] = /TABLES (\w+) AND (\w+)/.exec(query) ?? [];
      const [first, second] = [tables.table(a), tables.table(b)];
      tables.counted.set(a, second).set(b, first);
    },
  ],
  [
    /^DROP TABLE IF EXISTS (rebuild_\w+)/,
    ({ tables }, { query }) => void tables.counted.delete(/EXISTS (\w+)/.exec(query)?.[1] ?? ''),
  ],
];
