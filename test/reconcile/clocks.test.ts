import { expect, test } from 'vitest';
import { clocksOf } from '../../src/reconcile/clocks.ts';

test('fixed offsets come first, those nearest to ours before the others', () => {
  const names = clocksOf('2026-07-01', '2026-07-31', 'Asia/Kolkata').map(({ name }) => name);
  expect(names.slice(0, 3)).toEqual(['UTC+05:30', 'UTC+05:15', 'UTC+05:45']);
  expect(names).toEqual(expect.arrayContaining(['UTC-12:00', 'UTC-09:30', 'UTC+12:45', 'UTC+14:00']));
});

test('a zone that changes its clocks within the days has both offsets, from the minute on', () => {
  const clocks = clocksOf('2026-10-20', '2026-10-31', 'Europe/Berlin');
  expect(clocks.filter(({ switches }) => switches.length === 0)).toHaveLength(105);
  expect(clocks.find(({ name }) => name === 'Europe/Berlin')).toEqual({
    name: 'Europe/Berlin',
    switches: [Date.parse('2026-10-25T01:00:00Z') / 1000],
    offsets: [7200, 3600],
  });
});
