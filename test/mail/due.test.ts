import { expect, test, vi } from 'vitest';
import { daysOf, dueUntil, type Timing } from '../../src/schedules/due.ts';
import { type MailSources, mailsOf } from '../../src/schedules/mails.ts';
import { ownOf, type Schedule } from '../../src/schedules/schedules.ts';
import { toldOf } from '../../src/schedules/told.ts';
import { dailySchedule } from '../support/mails.ts';

const timing = (given: Partial<Timing> = {}): Timing => ({
  every: 'day',
  at: '06:00',
  ...given,
});
/** The mails of such schedules on 31 March 2026 at noon. */
const mailsAt = (...given: Partial<Schedule>[]) => mailsWith(new Map(), ...given);
const mailsWith = (answers: MailSources['answers'], ...given: Partial<Schedule>[]) => {
  const of = { ...dailySchedule('acme'), since: new Date('2020-01-01T00:00:00Z') };
  const schedules = given.map((more) => ({ ...of, ...more }));
  const sources = { schedules, answers, attempts: new Map() };
  return mailsOf(sources, new Date('2026-03-31T12:00:00Z'), 'UTC');
};
const last = (given: Partial<Timing>, now: string, timezone: string) => {
  const { day, at } = dueUntil(timing(given), new Date(now), timezone).at(-1) ?? {};
  return `${day} ${at?.toISOString()}`;
};

test.each([
  ['day', '06:00', '2026-03-02T05:00:00Z', 'Europe/Vienna', '2026-03-02 2026-03-02T05:00:00.000Z'],
  ['day', '06:00', '2026-03-02T04:59:59Z', 'Europe/Vienna', '2026-03-01 2026-03-01T05:00:00.000Z'],
  ['day', '06:00', '2026-03-01T21:00:00Z', 'Asia/Tokyo', '2026-03-02 2026-03-01T21:00:00.000Z'],
  ['day', '23:30', '2026-03-02T04:30:00Z', 'America/New_York', '2026-03-01 2026-03-02T04:30:00.000Z'],
  // Clocks are put forward from 2 to 3, and back from 3 to 2.
  ['day', '02:30', '2026-03-29T12:00:00Z', 'Europe/Vienna', '2026-03-29 2026-03-29T01:30:00.000Z'],
  ['day', '02:30', '2027-03-14T12:00:00Z', 'America/New_York', '2027-03-14 2027-03-14T07:30:00.000Z'],
  ['day', '01:30', '2027-11-07T12:00:00Z', 'America/New_York', '2027-11-07 2027-11-07T05:30:00.000Z'],
  ['day', '00:00', '2026-09-06T12:00:00Z', 'America/Santiago', '2026-09-06 2026-09-06T04:00:00.000Z'],
  ['day', '06:00', '2026-03-29T12:00:00Z', 'Europe/Vienna', '2026-03-29 2026-03-29T04:00:00.000Z'],
  ['day', '06:00', '2026-10-25T12:00:00Z', 'Europe/Vienna', '2026-10-25 2026-10-25T05:00:00.000Z'],
  ['week', '06:00', '2026-03-01T12:00:00Z', 'UTC', '2026-02-23 2026-02-23T06:00:00.000Z'],
  ['week', '06:00', '2026-03-02T06:00:00Z', 'UTC', '2026-03-02 2026-03-02T06:00:00.000Z'],
  ['month', '06:00', '2026-03-31T12:00:00Z', 'UTC', '2026-03-01 2026-03-01T06:00:00.000Z'],
] as const)('each %s at %s: at %s in %s the last one was due on %s', (every, at, now, timezone, expected) => {
  expect(last({ every, at }, now, timezone)).toBe(expected);
});

test('what was missed for two weeks is due, longer ago only the last one, and nothing from before the schedule', () => {
  const days = (given: Partial<Timing>) =>
    dueUntil(timing(given), new Date('2026-03-31T12:00:00Z'), 'UTC').map(({ day }) => day);
  expect(days({})).toHaveLength(15);
  expect(days({})[0]).toBe('2026-03-17');
  expect(days({ every: 'week' })).toEqual(['2026-03-23', '2026-03-30']);
  expect(days({ every: 'month' })).toEqual(['2026-03-01']);
  const since = new Date('2026-03-30T06:00:01Z');
  const agreed = { since: new Date('2020-01-01T00:00:00Z'), hasAgreed: true };
  const answers = new Map([[ownOf('acme'), new Map([['anna@example.com', agreed]])]]);
  for (const mails of [mailsAt({ since }), mailsWith(answers, { since, madeBy: 'person jo' })]) {
    expect(mails.map(({ due }) => due.day)).toEqual(['2026-03-31']);
  }
});

test('a clock is asked once for all schedules of one time of day', () => {
  const asked = vi.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts');
  const timesFor = (schedules: number) => {
    asked.mockClear();
    expect(mailsAt(...Array.from({ length: schedules }, () => ({})))).toHaveLength(15 * schedules);
    return asked.mock.calls.length;
  };
  expect(timesFor(100)).toBe(timesFor(1));
  asked.mockRestore();
});

test('a list looks at each mail once, however many schedules there are', () => {
  const looksAt = (schedules: number) => {
    let looks = 0;
    const given = Array.from({ length: schedules }, (_, n) => ({
      ...dailySchedule('acme'),
      get id() {
        looks++;
        return `${n}`;
      },
    }));
    const sources = { schedules: given, answers: new Map(), attempts: new Map() };
    const told = toldOf(sources, new Date('2026-03-31T12:00:00Z'), 'UTC');
    expect(told.map(({ mails }) => mails.length)).toEqual(given.map(() => 15));
    return looks;
  };
  expect(looksAt(20)).toBe(2 * looksAt(10));
});

test.each([
  ['yesterday', '2026-03-01', '2026-02-28', '2026-02-28'],
  ['last_week', '2026-03-02', '2026-02-23', '2026-03-01'],
  ['last_week', '2026-03-01', '2026-02-16', '2026-02-22'],
  ['last_month', '2026-03-01', '2026-02-01', '2026-02-28'],
  ['last_month', '2026-01-15', '2025-12-01', '2025-12-31'],
  ['month_to_date', '2026-03-15', '2026-03-01', '2026-03-14'],
  ['month_to_date', '2026-03-01', '2026-02-01', '2026-02-28'],
] as const)('%s, due on %s, is from %s to %s', (period, day, start, end) => {
  expect(daysOf(period, day)).toEqual({ start, end });
});

test('the clock of a zone is made once, however many days are looked at', () => {
  const { DateTimeFormat } = Intl;
  let made = 0;
  Intl.DateTimeFormat = new Proxy(DateTimeFormat, {
    construct: (target, args) => {
      made++;
      return Reflect.construct(target, args);
    },
  });
  try {
    const now = new Date('2026-03-31T12:00:00Z');
    for (let n = 0; n < 3; n++) expect(dueUntil(timing(), now, 'Asia/Kathmandu')).toHaveLength(15);
  } finally {
    Intl.DateTimeFormat = DateTimeFormat;
  }
  expect(made).toBe(1);
});
