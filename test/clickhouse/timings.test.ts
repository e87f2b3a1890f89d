import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as timings from '../../clickhouse/timings.ts';

const textOf = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const schema = textOf('clickhouse/schema.sql');
const allIn = (text: string, pattern: RegExp) => [
  ...new Set([...text.matchAll(pattern)].map(([, value]) => Number(value))),
];

test('names are shown by all servers after the lifetime of their dictionaries', () => {
  const [lifetime = Number.NaN, ...others] = allIn(schema, /LIFETIME\(MIN \d+ MAX (\d+)\)/g);
  expect(others).toEqual([]);
  expect(timings.namesFollowWithinSeconds).toBeGreaterThan(lifetime);
});

test('a chunk is taken for forgotten before ClickHouse forgets it', () => {
  const [window = Number.NaN, ...others] = allIn(schema, /deduplication_window = (\d+)/g);
  expect(others).toEqual([]);
  expect(timings.rememberedParts).toBeLessThan(window);
});

test('a copy in memory is read again at least twice before it is too old', () => {
  for (const maxAgeMs of [timings.accountsMaxAgeMs, timings.placementsMaxAgeMs])
    expect(maxAgeMs).toBeGreaterThan(2 * timings.refreshMs);
});

test('whoever changes something waits until no service goes on with what it knew', () => {
  expect(timings.placementsFollowWithinMs).toBeGreaterThan(timings.placementsMaxAgeMs);
  expect(timings.layoutFollowsWithinMs).toBeGreaterThan(timings.layoutMaxAgeMs + timings.placementsMaxAgeMs);
  expect(timings.accountsFollowWithinMs).toBeGreaterThan(timings.accountsMaxAgeMs);
  expect(textOf('docs/configuration.md').replace(/\s+/g, ' ')).toContain(
    `A revoked token is refused within ${timings.accountsFollowWithinMs / 1_000} seconds`,
  );
});

test('a load knows that it may count as dead before others take it for dead', () => {
  expect(timings.lapsedAfterMs).toBeLessThan(timings.deadAfterMs - timings.heartbeatMs);
});
