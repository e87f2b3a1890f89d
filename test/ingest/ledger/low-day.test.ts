import { describe, expect, test } from 'vitest';
import { type JudgedDay, judgeDay } from '../../../ingest/history/low-day.ts';
import { type EventLine, event, load } from '../../support/events.ts';
import { useStore } from '../../support/store.ts';

const rule = { percent: 50, events: 100, afterHours: 12 };
/** 15 hours after the end of the day that is judged, a Thursday. */
const now = new Date('2026-04-10T15:00:00Z');
const judgedDay = '2026-04-09';
const before = (days: number) =>
  new Date(Date.parse(judgedDay) - days * 86_400_000).toISOString().slice(0, 10);

/** Impressions of an advertiser: as many as said for a number of days before the day that is judged. */
function impressions(account: string, usual: number, special: Record<number, number> = {}): EventLine[] {
  return Array.from({ length: 35 }, (_, days) => days).flatMap((days) => {
    const quantity = special[days] ?? usual;
    if (quantity === 0) return [];
    return [
      event({
        event_time: `${before(days)}T10:00:00Z`,
        advertiser_id: account,
        publisher_id: '',
        ad_unit_id: '',
        quantity,
      }),
    ];
  });
}

const from = (days: number): Record<number, number> =>
  Object.fromEntries(Array.from({ length: 36 - days }, (_, n) => [days + n, 0]));
const until = (days: number): Record<number, number> =>
  Object.fromEntries(Array.from({ length: days }, (_, n) => [n, 0]));

const of = (judged: readonly JudgedDay[], measure = 'impressions') =>
  judged.find((each) => each.measure === measure && each.family === 'campaigns');
const named = (judged: readonly JudgedDay[]) => of(judged)?.lowest.map(({ account }) => account) ?? [];

describe('of accounts', () => {
  const db = useStore();
  const judge = (at = now, changed = {}, timezone = 'UTC') =>
    judgeDay(db.store, at, { timezone, rule: { ...rule, ...changed } });

  test('those are named that have far less than on the same weekdays before, and no others', async () => {
    await load(db.store, [
      ...impressions('steady', 10_000),
      ...impressions('forty-per-cent', 1_000, { 0: 400 }),
      ...impressions('nothing', 2_000, { 0: 0 }),
      ...impressions('began-lately', 1_000, { 0: 0, ...from(20) }),
      ...impressions('ended', 1_000, until(4)),
      ...impressions('sixty-per-cent', 1_000, { 0: 600 }),
      ...impressions('small', 50, { 0: 0 }),
      ...impressions('other-days-only', 1_000, { 0: 0, 7: 0, 14: 0, 21: 0, 28: 0 }),
      // A holiday and a hole among its like are no measure, nor is a peak.
      ...impressions('odd-history', 1_000, { 0: 400, 7: 10, 14: 0, 21: 90_000 }),
    ]);
    const judged = await judge();
    expect(of(judged)).toEqual({
      family: 'campaigns',
      measure: 'impressions',
      day: judgedDay,
      events: 10_000 + 400 + 600 + 400,
      // Of 14,050 a week before and the like.
      usual: expect.any(Number),
      low: false,
      accounts: 3,
      missing: expect.closeTo((2000 + 600 + 600) / (of(judged)?.usual ?? 0), 6),
      lowest: [
        { account: 'nothing', events: 0, usual: 2000 },
        { account: 'forty-per-cent', events: 400, usual: 1000 },
        { account: 'odd-history', events: 400, usual: 1000 },
      ],
    });
  });

  test('a day is judged when what comes late has come, in the time zone of the store', async () => {
    const dayAt = async (at: string, timezone?: string) => of(await judge(new Date(at), {}, timezone))?.day;
    expect(await dayAt('2026-04-10T11:59:00Z')).toBe('2026-04-08');
    expect(await dayAt('2026-04-10T12:01:00Z')).toBe('2026-04-09');
    // Half past noon of the 10th there, and the night before here.
    expect(await dayAt('2026-04-10T00:30:00Z', 'Pacific/Auckland')).toBe('2026-04-09');
    expect(await dayAt('2026-04-10T00:30:00Z', 'America/New_York')).toBe('2026-04-08');
    // Too little of the 9th is no fault yet; who ended on the 5th is missed until the 8th.
    expect(named(await judge(new Date('2026-04-10T11:59:00Z')))).toEqual(['ended']);
  });

  test('the operator says what is far, and what is too small to tell', async () => {
    expect(named(await judge(now, { percent: 70 }))).toContain('sixty-per-cent');
    expect(named(await judge(now, { percent: 30 }))).toEqual(['nothing']);
    expect(named(await judge(now, { events: 50 }))).toContain('small');
    expect(named(await judge(now, { percent: 0 }))).toEqual([]);
  });

  test('an account that ends is told of for three days, and one that rests at weekends on Monday', async () => {
    const ended = impressions('ended-thursday', 20_000, { 0: 0 });
    const weekdays = impressions('weekdays', 20_000).filter(
      ({ event_time }) => ![0, 6].includes(new Date(event_time).getUTCDay()),
    );
    const friday = weekdays
      .slice(0, 1)
      .map((line) => ({ ...line, event_id: 'friday', event_time: '2026-04-10T10:00:00Z' }));
    await load(db.store, [...ended, ...weekdays, ...friday]);
    const named: Record<string, string[]> = {};
    for (const day of ['09', '10', '11', '12', '13']) {
      const evening = new Date(Date.parse(`2026-04-${day}T15:00:00Z`) + 86_400_000);
      const { lowest } = of(await judge(evening)) ?? { lowest: [] };
      for (const { account } of lowest) named[account] = [...(named[account] ?? []), `2026-04-${day}`];
    }
    const days = (account: string) => named[account] ?? [];
    expect(days('ended-thursday')).toEqual(['2026-04-09', '2026-04-10', '2026-04-11']);
    // Its Monday is missing; Saturday and Sunday never have any.
    expect(days('weekdays')).toEqual(['2026-04-13']);
  });
});

describe('of a network', () => {
  const db = useStore();
  const judge = (at = now) => judgeDay(db.store, at, { timezone: 'UTC', rule });

  test('one without events, and one that is younger than three weeks, has no like', async () => {
    expect(await judge()).toEqual([]);
    await load(db.store, impressions('young', 1_000, { 0: 0, ...from(21) }));
    expect(of(await judge())).toMatchObject({ events: 0, usual: 0, low: false, accounts: 0 });
  });

  test('a day with less than half is low, also when no account had enough before', async () => {
    const many = Array.from({ length: 20 }, (_, n) => impressions(`of-many-${n}`, 90, { 0: 40 }));
    await load(db.store, many.flat());
    // 2,800 on the two Thursdays before, 1,800 on those when the other one had not begun: the lower one counts.
    expect(of(await judge())).toMatchObject({ events: 800, usual: 1800, low: true, accounts: 0, missing: 0 });
  });

  test('one count may be missing while the others are there', async () => {
    const conversions = impressions('converts', 500, { 0: 0 }).map((line) => ({
      ...line,
      event_type: 'conversion' as const,
    }));
    await load(db.store, [...conversions, ...impressions('converts', 100_000)]);
    const judged = await judge();
    expect(of(judged, 'conversions')).toMatchObject({ events: 0, usual: 500, low: true, accounts: 1 });
    expect(of(judged)).toMatchObject({ low: false, accounts: 0 });
  });

  test('a network that stays away does not become usual while its like are there', async () => {
    const sunday = await judge(new Date('2026-04-12T15:00:00Z'));
    expect(of(sunday)).toMatchObject({ day: '2026-04-11', events: 0, low: true, accounts: 2 });
    const tuesday = await judge(new Date('2026-04-14T15:00:00Z'));
    expect(of(tuesday)).toMatchObject({ day: '2026-04-13', events: 0, low: true, accounts: 0 });
  });
});
