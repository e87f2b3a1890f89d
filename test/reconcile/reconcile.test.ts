import { beforeAll, describe, expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { clocksOf } from '../../src/reconcile/model/clocks.ts';
import { all, causeless, causes, days, knownCauses, theirs } from '../support/known-causes.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { onEveryShard, useStore } from '../support/store.ts';
import { compare, loadHappened } from '../support/two-sides.ts';

const db = useStore();
const account = 'acme';
beforeAll(() => loadHappened(db, account, all));

test('of equal reports nothing is explained', async () => {
  const { verdict, causes: found } = await compare(db, account, theirs([]), days);
  expect(found).toEqual([]);
  expect(verdict.figures.impressions?.gap).toEqual({ net: '0', total: '0' });
});

describe('a cause by itself', () => {
  test.each(knownCauses)('%s is found, and explains all', async (cause) => {
    const { verdict, causes: found } = await compare(db, account, theirs([cause]), days);
    expect(found).toEqual([cause]);
    expect(verdict.explained[0]?.what).toMatch(causes[cause].what);
    for (const { unexplained } of Object.values(verdict.figures)) {
      expect(unexplained.total).toBe('0');
    }
  });
});

test('another time zone and a missing load are both found, and explain all', async () => {
  const { verdict, causes: found } = await compare(db, account, theirs(['time_zone', 'missing_load']), days);
  expect(found).toEqual(['time_zone', 'missing_load']);
  for (const { unexplained } of Object.values(verdict.figures)) expect(unexplained.total).toBe('0');
});

test('rows add up to what is unexplained where an explanation moves ours to a day that neither side has', async () => {
  const single = { campaign: 'single', load: 0, impressions: 7, conversions: 0, referrals: 0, spent: 1_000 };
  const at = new Date('2026-03-05T02:00:00Z');
  await loadHappened(db, 'thin', [...all, { ...single, at }]);
  const { verdict, causes: found, rows } = await compare(db, 'thin', theirs(['time_zone']), days);
  expect(found).toEqual(['time_zone']);
  expect(verdict.figures.impressions?.unexplained).toEqual({ net: '-7', total: '7' });
  const ofSingle = rows.filter(({ campaign_id }) => campaign_id === 'single');
  expect(ofSingle.map(({ day, status, impressions }) => [day, status, impressions.unexplained])).toEqual([
    ['2026-03-04', 'equal', '-7'],
    ['2026-03-05', 'only_ours', '0'],
  ]);
});

test('a load that the ledger has forgotten is told by its id', async () => {
  await loadHappened(db, 'forgotten', all);
  const query = `SELECT load_id AS id FROM loads FINAL WHERE file LIKE '%feed-1.ndjson' ORDER BY started_at DESC LIMIT 1`;
  const [load] = await select<{ id: string }>(db.store, query);
  await onEveryShard(db, 'DELETE FROM loads WHERE load_id = {id:String}', { id: load?.id });
  const { verdict } = await compare(db, 'forgotten', theirs(['missing_load']), days);
  expect(verdict.explained.map(({ what }) => what)).toEqual([`their report lacks load ${load?.id}`]);
});

test.each(['each figure a little off', 'other figures of other campaigns'])(
  `%s is never explained (seed ${testSeed})`,
  async (name) => {
    const { verdict, causes: found } = await compare(
      db,
      account,
      causeless[name]?.(seededRandom(testSeed)) ?? [],
      days,
    );
    expect(found).toEqual([]);
    for (const { gap, unexplained } of Object.values(verdict.figures)) expect(unexplained).toEqual(gap);
  },
);

test('fixed offsets come first, those nearest to ours before the others', async () => {
  const names = (await clocksOf('2026-07-01', '2026-07-31', 'Asia/Kolkata')).map(({ name }) => name);
  expect(names.slice(0, 3)).toEqual(['UTC+05:30', 'UTC+05:15', 'UTC+05:45']);
  expect(names).toEqual(expect.arrayContaining(['UTC-12:00', 'UTC-09:30', 'UTC+12:45', 'UTC+14:00']));
});

test('a zone that changes its clocks within the days has both offsets, from the minute on', async () => {
  const clocks = await clocksOf('2026-10-20', '2026-10-31', 'Europe/Berlin');
  expect(clocks.filter(({ switches }) => switches.length === 0)).toHaveLength(105);
  expect(clocks.find(({ name }) => name === 'Europe/Berlin')).toEqual({
    name: 'Europe/Berlin',
    switches: [Date.parse('2026-10-25T01:00:00Z') / 1000],
    offsets: [7200, 3600],
  });
});

test('while the clocks of two years are found others have their turns', async () => {
  let turns = 0;
  const counting = setInterval(() => turns++, 0);
  const clocks = await clocksOf('2026-01-01', '2027-12-31', 'Europe/Berlin');
  clearInterval(counting);
  expect(turns).toBeGreaterThan(10);
  expect(clocks.find(({ name }) => name === 'Europe/Berlin')?.switches).toHaveLength(4);
});
