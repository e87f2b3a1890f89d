import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { readMigrations, tablesOnEveryNode } from '../../clickhouse/migrate/migration-files.ts';
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
  const [, listed = ''] = /\n(- .*?)\n\n/s.exec(told) ?? [];
  const named = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  expect(stored.filter((name) => !['events', ...named(listed)].includes(name))).toEqual([]);
  const [, onEveryNode = ''] = /\n- to every node (.*)/s.exec(listed) ?? [];
  const whole = (await tablesOnEveryNode()).filter((name) => stored.includes(name));
  expect(named(onEveryNode).sort()).toEqual(whole.sort());
});
