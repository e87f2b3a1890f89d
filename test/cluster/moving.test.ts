import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { readMigrations } from '../../clickhouse/migrate/migration-files.ts';
import { rollups } from '../../clickhouse/rollups.ts';

const page = readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8');
const [, told = ''] = /\n## Moving from one machine\n(.*?)\n## /s.exec(page) ?? [];

test('a store that moves to a cluster by docs/scaling.md keeps its time zone, which makes the days of events', () => {
  expect(told).toContain('`REPORT_TIMEZONE`');
});

test('a store that moves to a cluster by docs/scaling.md takes along every table that cannot be computed', async () => {
  const computed = [
    ...rollups(catalog).map(({ table }) => table),
    ...['incoming', 'incoming_staging', 'placements', 'publisher_events'],
  ];
  const made = (await readMigrations())
    .flatMap(({ statements }) => statements)
    .flatMap(({ text, name }) => (/^CREATE TABLE/m.test(text) ? [name] : []));
  expect(made.length).toBeGreaterThan(30);
  const stored = made.filter((name) => !computed.includes(name));
  expect(stored.filter((name) => !new RegExp(`\\b${name}\\b`).test(told))).toEqual([]);
});
