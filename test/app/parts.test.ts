import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { TextColumn } from '../../src/app/arrow/columns.ts';
import { decimalText, percentChange, ratio } from '../../src/app/arrow/decimal.ts';
import { digitsKept } from '../../src/app/rows/asked.ts';
import { Figures } from '../../src/app/rows/figures.ts';
import { metricsOf } from '../../src/app/state/fields.ts';
import { drawnOf, isPart, periodsOf, presets } from '../../src/app/state/ranges.ts';
import { bodyOf, pathOf } from '../../src/app/state/request.ts';
import {
  comparedDaysOf,
  fromHash,
  initialState,
  ofFamily,
  type State,
  toHash,
  unreadIn,
} from '../../src/app/state/state.ts';
import { contrast, readableColours } from '../../src/config/branding.ts';

describe('decimals of the page', () => {
  test('are written with every digit', () => {
    expect(decimalText(1_234_500_000n, 6)).toBe('1234.5');
    expect(decimalText(-1n, 6)).toBe('-0.000001');
    expect(decimalText(0n, 6)).toBe('0');
    expect(decimalText(2n ** 90n, 0)).toBe(String(2n ** 90n));
  });

  test('divide as the service does: cut off after 7 places, then rounded half away from zero', () => {
    expect(ratio(2_000_000n, 6, 3n, 1)).toBe(666_667n);
    expect(ratio(-2_000_000n, 6, 3n, 1)).toBe(-666_667n);
    expect(ratio(1n, 0, 3n, 1)).toBe(333_333n);
    expect(ratio(11_729_836n, 6, 2444n, 1000)).toBe(4_799_442n);
    expect(ratio(1n, 6, 0n, 1000)).toBe(0n);
  });

  test('change by so many percent', () => {
    expect(percentChange(150n, 100n)).toBe(50);
    expect(percentChange(-50n, -100n)).toBe(50);
    expect(percentChange(1n, 0n)).toBeUndefined();
  });
});

test('a name is what the service says, also where it begins with a mark of byte order', () => {
  const column = new TextColumn('campaign');
  const texts = Buffer.from('\uFEFFbootsboots');
  const ends = Buffer.from(new Int32Array([0, 8, 13]).buffer);
  column.reserve(2);
  column.add([Uint8Array.from(ends), Uint8Array.from(texts)], 2, 0);
  expect([column.text(0), column.text(1)]).toEqual(['\uFEFFboots', 'boots']);
});

test.each([
  ['en-GB', '+2.2 pp', '-0.0034 pp', '60.8%'],
  ['de-DE', '+2,2 PP', '-0,0034 PP', '60,8\u00a0%'],
  ['ja-JP', '+2.2ポイント', '-0.0034ポイント', '60.8%'],
])('shares are in percent, and their changes in points, in %s', (locale, gain, loss, share) => {
  const figures = new Figures(metricsOf('ad_units'), locale);
  const of = (column: string, units: bigint) => figures.short(column, { units, scale: 6 });
  expect(of('fill_rate_change', 22_000n)).toBe(gain);
  expect(of('fill_rate_change', -34n)).toBe(loss);
  expect(of('fill_rate_compared', 608_000n)).toBe(share);
  expect(figures.whole('rtr_change', { units: 21_953n, scale: 6 })).toMatch(
    /^\+2[.,]1953\s?(pp|PP|ポイント)$/,
  );
});

describe('the address', () => {
  const state: State = {
    ...initialState('campaigns'),
    dimensions: ['device', 'creative'],
    grain: 'week',
    range: { start: '2026-01-31', end: '2026-02-28' },
    compare: 'previous_year',
    filters: { campaign: ['a,b&c=d', '', 'ä #'], device: ['mobile'] },
    metrics: ['spent', 'cpm'],
    chart: 'cpm',
    sort: { column: 'spent_change', descending: true },
    find: 'x y',
  };

  test('holds the whole state of the page', () => {
    expect(fromHash(toHash(state), 'ad_units')).toEqual(state);
    expect(toHash(initialState('ad_units'))).toBe('#report=ad_units');
  });

  test('that nobody can read is that of the start', () => {
    const nonsense =
      '#report=x&by=site,&each=hour&days=2026-02-30/2026-03-01&compare=1&show=a&chart=b&sort=%00';
    expect(fromHash(nonsense, 'campaigns')).toEqual(initialState('campaigns'));
  });

  test('tells which of its parts say nothing', () => {
    expect(unreadIn(toHash(state), state)).toEqual([]);
    const usual = '#report=campaigns&each=day&token=adt_x&find=&by=';
    expect(unreadIn(usual, initialState('campaigns'))).toEqual([]);
    for (const part of [
      ...['filter.campaign=a', 'only.site=a', 'eahc=week', 'each=hour', 'by=device,site', 'report=x'],
      ...['days=2026-02-30/2026-03-01', 'compare=1', 'show=spent,cost', 'chart=cost', 'sort=-cost'],
    ]) {
      expect(unreadIn(`#${part}`, fromHash(part, 'campaigns'))).toEqual([part]);
    }
  });

  test('has no order by a column that the table does not have', () => {
    const ordered = (column: string, change: Partial<State>) =>
      fromHash(toHash({ ...state, ...change, sort: { column, descending: true } }), 'campaigns').sort?.column;
    expect(ordered('end_time', {})).toBe('end_time');
    expect(ordered('end_time', { grain: 'day' })).toBeUndefined();
    expect(ordered('start_time', { grain: 'total' })).toBeUndefined();
    expect(ordered('campaign_id', {})).toBe('campaign_id');
    expect(ordered('device', { dimensions: ['creative'] })).toBeUndefined();
    expect(ordered('spent_change', { compare: 'none' })).toBeUndefined();
    expect(ordered('spent', { metrics: ['cpm'] })).toBeUndefined();
    expect(ordered('earned', {})).toBeUndefined();
  });

  test('has a figure that is shown in the chart', () => {
    expect(fromHash('#show=impressions,cpm', 'campaigns').chart).toBe('impressions');
    expect(fromHash('#show=cpm,spent', 'campaigns').chart).toBe('spent');
    expect(fromHash('#show=cpm,spent&chart=impressions', 'campaigns').chart).toBe('cpm');
  });

  test('becomes a request', () => {
    expect(pathOf(state)).toBe('/v1/campaigns/breakdowns/device_creative_date');
    expect(pathOf({ ...state, dimensions: [], grain: 'total' })).toBe('/v1/campaigns');
    expect(bodyOf(state, '2026-11-22')).toEqual({
      start_time: '2026-01-31',
      end_time: '2026-02-28',
      time_grain: 'week',
      filters: state.filters,
      compare_to: 'previous_year',
    });
    expect(bodyOf(initialState('campaigns'), '2026-11-22')).toEqual({
      start_time: '2026-10-25',
      end_time: '2026-11-21',
    });
  });

  test.each([
    ['previous_year', '2028-01-01', '2028-12-31', '2027-01-01', '2027-12-31'],
    ['previous_year', '2027-06-01', '2028-05-31', '2026-06-01', '2027-05-31'],
    ['previous_year', '2029-01-01', '2029-12-31', '2028-01-01', '2028-12-30'],
    ['previous_year', '2028-02-29', '2028-02-29', '2027-02-28', '2027-02-28'],
    ['previous_period', '2026-10-01', '2026-10-31', '2026-08-31', '2026-09-30'],
    ['previous_month', '2026-10-01', '2026-10-31', '2026-09-01', '2026-09-30'],
    ['previous_month', '2026-11-01', '2026-11-26', '2026-10-01', '2026-10-26'],
    ['previous_month', '2028-03-30', '2028-03-31', '2028-02-29', '2028-02-29'],
    ['previous_month', '2026-01-01', '2026-01-31', '2025-12-01', '2025-12-31'],
    ['previous_weeks', '2026-10-01', '2026-10-31', '2026-08-27', '2026-09-26'],
    ['previous_weeks', '2026-11-02', '2026-11-15', '2026-10-19', '2026-11-01'],
  ] as const)('%s of %s to %s is %s to %s', (compare, start, end, first, last) => {
    const compared = comparedDaysOf({ ...state, compare, range: { start, end } }, '2030-01-01');
    expect(compared).toEqual({ start: first, end: last });
  });

  test('of the other family keeps what that has, too', () => {
    const { dimensions, filters, range } = ofFamily(state, 'ad_units');
    expect({ dimensions, filters, range }).toEqual({
      dimensions: ['device'],
      filters: { device: ['mobile'] },
      range: state.range,
    });
  });
});

test.each([
  ['this_quarter', '2026-05-15', '2026-04-01', '2026-05-15'],
  ['last_month', '2026-01-31', '2025-12-01', '2025-12-31'],
  ['last_month', '2024-03-31', '2024-02-01', '2024-02-29'],
  ['this_month', '2026-12-01', '2026-12-01', '2026-12-01'],
  ['yesterday', '2026-01-01', '2025-12-31', '2025-12-31'],
  ['last_365_days', '2026-11-22', '2025-11-22', '2026-11-21'],
] as const)('%s as of %s is %s to %s', (name, today, start, end) => {
  expect(presets[name](today)).toEqual({ start, end });
});

test.each([
  ['day', '2026-11-03', '2026-11-03', false],
  ['week', '2026-11-02', '2026-11-08', false],
  ['week', '2026-11-03', '2026-11-08', true],
  ['week', '2026-11-02', '2026-11-07', true],
  ['month', '2028-02-01', '2028-02-29', false],
  ['month', '2028-02-01', '2028-02-28', true],
  ['month', '2028-02-02', '2028-02-29', true],
] as const)('a %s from %s to %s is a part: %s', (each, start, end, part) => {
  expect(isPart({ start, end }, each)).toBe(part);
});

test.each(['day', 'week', 'month'] as const)('each %s ends with the year 9999', (each) => {
  const periods = periodsOf({ start: '9999-11-30', end: '9999-12-31' }, each);
  expect([periods[0]?.start, periods.at(-1)?.end]).toEqual(['9999-11-30', '9999-12-31']);
});

test('months of the first century are those of that century', () => {
  expect(periodsOf({ start: '0026-01-31', end: '0026-03-01' }, 'month')).toEqual([
    { start: '0026-01-31', end: '0026-01-31' },
    { start: '0026-02-01', end: '0026-02-28' },
    { start: '0026-03-01', end: '0026-03-01' },
  ]);
});

test('of a far range the part that has rows is drawn, of another all of it', () => {
  const far = { start: '0001-01-01', end: '9999-12-31' };
  const starts = ['2026-11-09', '2026-10-26', '2026-11-02'];
  expect(drawnOf(far, starts, 'day')).toEqual({ start: '2026-10-26', end: '2026-11-09' });
  expect(drawnOf(far, starts, 'week')).toEqual({ start: '2026-10-26', end: '2026-11-15' });
  expect(drawnOf({ ...far, end: '2026-11-10' }, starts, 'week').end).toBe('2026-11-10');
  expect(drawnOf(far, [], 'month')).toEqual({ start: '0001-01-01', end: '0001-01-31' });
  const year = { start: '2026-01-01', end: '2026-12-31' };
  expect(drawnOf(year, starts, 'day')).toBe(year);
});

test('any colour of a network can be read, on light and on dark', () => {
  const rgb = (colour: string) =>
    [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)) as [number, number, number];
  for (let n = 0; n < 200; n++) {
    const { light, dark } = readableColours(`#${randomBytes(3).toString('hex')}`);
    expect(contrast(rgb(light), [255, 255, 255])).toBeGreaterThan(4.5);
    expect(contrast(rgb(dark), [25, 29, 34])).toBeGreaterThan(4.5);
  }
});

test('figures of a short answer keep each digit, and names stay as they are, whatever is in them', () => {
  for (const name of ['say ":5', ':30 Spot', ':5', '"', '\\', '\\":5', '":-1.5,"x":2', '5', '{"a":5}']) {
    const json = `{"name":${JSON.stringify(name)},"spent":123456789012345678.123456,"rows":[{"clicks":-7,"name":${JSON.stringify(name)}}],"none":null}`;
    expect(JSON.parse(digitsKept(json)), name).toEqual({
      ...{ name, spent: '123456789012345678.123456', none: null },
      rows: [{ clicks: '-7', name }],
    });
  }
});
