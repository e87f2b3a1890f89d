import { describe, expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { useMappedLoads } from '../../support/mapped-loads.ts';

const { db, loadText, inFile, refusal } = useMappedLoads();
const day = 'event_time=Day';

/** What is said against an expression. */
const refusedExpression = async (expression: string) =>
  (await refusal(await inFile({ expressions: { device: expression } }, 'ads.json'))).replace(
    'ads.json: expressions.device: ',
    '',
  );

describe('expressions', () => {
  const computed = async (expressions: object, text: string, fields: string, ending = 'csv') =>
    loadText({ ...(await inFile({ expressions, ignore_unknown: true })), map: [day] }, text, fields, ending);

  test('of text and of numbers, exact to the last digit', async () => {
    const expressions = {
      spend: '{Cost micros} / 1000000',
      revenue: '{Cost micros} * 0.7 / 1e6',
      device: "transform({Device}, ['DT', 'MO'], ['desktop', 'mobile'], {Device})",
      impressions: "if({Kind} = 'refund', 0, {Impr.} + 1)",
    };
    const text =
      'Day,Cost micros,Device,Kind,Impr.\n2026-03-01,100000010000,DT,,7\n2026-03-01, 30 ,X,refund,7\n2026-03-01,,MO,,\n';
    const fields = 'toString(spend), toString(revenue), device, toUInt32(impressions)';
    const { events, rejected } = await computed(expressions, text, fields);
    expect(events).toEqual([
      ['0.00003', '0.000021', 'X', 0],
      ['100000.01', '70000.007', 'desktop', 8],
    ]);
    // A count of nothing is no count: without it the record is no event.
    expect(rejected).toEqual(
      ['4 impressions cannot be computed from {Kind}, {Impr.}', expect.stringContaining('event_type')].slice(
        1,
      ),
    );
  });

  test('a value that is no number rejects its record, and no other', async () => {
    const text =
      'Day,Cost,impressions\n2026-03-01,12,1\n2026-03-01,n/a,1\n2026-03-01,,1\n2026-03-01,1e400,1\n2026-03-01,-,1\n';
    const { events, rejected } = await computed({ spend: '{Cost} / 100' }, text, 'toString(spend)');
    expect(events.flat()).toEqual(['0', '0.12']);
    const reason = 'spend must be computed from numbers, and {Cost} is no number';
    expect(rejected).toEqual([`3 ${reason}`, `5 ${reason}`, `6 ${reason}`]);
  });

  test('a record without a result is rejected when it was given something', async () => {
    const expressions = { spend: '{Cost} / nullIf({Rate}, 0)', device: "if({Device} = '-', '', {Device})" };
    const text =
      'Day,Cost,Rate,Device,impressions\n2026-03-01,12,0,-,1\n2026-03-01,12,2,tv,1\n2026-03-01,,,,1\n';
    const { events, rejected } = await computed(expressions, text, 'toString(spend), device');
    expect(events).toEqual([
      ['0', 'unknown'],
      ['6', 'tv'],
    ]);
    expect(rejected).toEqual(['2 spend cannot be computed from {Cost}, {Rate}']);
  });

  test('what an expression comes to is judged as a value of the file is', async () => {
    const { rejected } = await computed({ impressions: '{n} / 3' }, 'Day,n\n2026-03-01,1\n', '1');
    expect(rejected).toEqual([
      expect.stringMatching(/^2 impressions must be a whole number .*, not "0.333333333333"$/),
    ]);
  });

  test('dates and times: a day is the day, a time is what it is in the zone it is read in', async () => {
    const expressions = {
      event_time: "if({at} = '', {day}, toString(toDate(parseDateTimeOrNull({at}, '%d.%m.%Y'))))",
    };
    const text = 'day,at,impressions\n2026-03-01,,1\n,02.03.2026,1\n,31.02.2026,1\n';
    const flags = await inFile({ expressions, ignore_unknown: true });
    const { events, rejected } = await loadText(flags, text, 'toString(event_time)');
    expect(events.flat()).toEqual(['2026-03-01 00:00:00.000', '2026-03-02 00:00:00.000']);
    expect(rejected).toEqual([
      '4 event_time is required',
      '4 event_time cannot be computed from {at}, {day}',
    ]);

    const instant = await inFile({
      expressions: { event_time: "toDateTimeOrNull({at}, 'America/New_York')" },
    });
    const summer = await loadText(
      { ...instant, timezone: 'Asia/Tokyo', ignoreUnknown: true },
      'at,impressions\n2026-07-01 12:00:00,1\n',
      'toString(event_time)',
    );
    expect(summer.events).toEqual([['2026-07-01 16:00:00.000']]);
  });

  test('of NDJSON', async () => {
    const text = '{"Day":"2026-03-01","a":{"b":"tv"},"n":"3","x y":2}\n';
    const expressions = { device: "JSONExtractString({a}, 'b')", impressions: '{n} * {x y}' };
    expect((await computed(expressions, text, 'device, toUInt32(impressions)', 'ndjson')).events).toEqual([
      ['tv', 6],
    ]);
  });

  test.each([
    ['creative_id', 'left({Name}, 2)', 2],
    ['creative_id', 'unhex({Hex})', 3],
    ['device', 'left({Name}, 2)', 2],
    ['device', 'unhex({Hex})', 3],
  ])(
    'what comes to no valid text rejects its record, and no other: %s, %s',
    async (field, expression, line) => {
      const text = 'Day,Name,Hex,impressions\n2026-03-01,aäö,,1\n2026-03-01,abä,6100,1\n2026-03-01,ab,61,1\n';
      const { events, rejected } = await computed({ [field]: expression }, text, 'toUInt32(count())');
      expect(events).toEqual([[2]]);
      expect(rejected).toEqual([
        expect.stringMatching(
          `^${line} ${field} cannot be computed from {\\w+}, or comes to text that is not valid UTF-8 or has a NUL, not "a`,
        ),
      ]);
    },
  );

  test('a text without a result rejects its record, with a reason that says so', async () => {
    const expressions = { creative_id: "nullIf({Name}, 'none')" };
    const text = 'Day,Name,impressions\n2026-03-01,a,1\n2026-03-01,none,1\n';
    const { events, rejected } = await computed(expressions, text, 'creative_id');
    expect(events).toEqual([['a']]);
    expect(rejected).toEqual([
      '3 creative_id cannot be computed from {Name}, or comes to text that is not valid UTF-8 or has a NUL',
    ]);
  });

  test('a column that is called {so} stands in two pairs of braces', async () => {
    const text = 'Day,{Kind},impressions\n2026-03-01,MOBILE,1\n';
    expect((await computed({ device: 'lower({{Kind}})' }, text, 'device')).events).toEqual([['mobile']]);
  });

  test('blanks at the ends of a name are of the column where it has them, and else of the braces', async () => {
    const text = 'Day,Cost , Device,impressions\n2026-03-01,12,TV,1\n2026-03-01,,TV,1\n';
    const flags = {
      ...(await inFile({ expressions: { spend: '{Cost } / 100', device: 'lower({ Device})' } })),
    };
    const mapping = { ...flags, map: [day], where: "{ Day } != '' AND {Cost } != ''", ignoreUnknown: true };
    const { events, leftOut } = await loadText(mapping, text, 'toString(spend), device');
    expect(events).toEqual([['0.12', 'tv']]);
    expect(leftOut).toBe(1);
  });

  test('braces in text, quotes in names, lambdas and comments', async () => {
    const expressions = {
      device: "if(match({it's \"x\"}, '^[a-z]{2}$'), '{it}', 'it''s\\'') -- {no column}",
      creative_id:
        "arrayStringConcat(arrayMap(x -> upper(x), splitByChar('_', {it's \"x\"})), '-') /* {nor this} */",
    };
    const text = 'Day,"it\'s ""x""",impressions\n2026-03-01,ab,1\n2026-03-01,a_b,1\n';
    expect((await computed(expressions, text, 'device, creative_id')).events).toEqual([
      ["it's'", 'A-B'],
      ['{it}', 'AB'],
    ]);
  });
});

describe('refused before anything is sent', () => {
  test.each([
    [
      'toInt64({A})',
      'toInt64 fails for text that it cannot read; use toInt64OrNull: such a record is rejected',
    ],
    ["if(startsWith({A}, '10'), {A}::Int32, 0)", 'CAST to Int32 fails for text that it cannot read'],
    ['{A} / {B}', "fails for {A} = '1', {B} = '0': Division by zero. Divide by nullIf(…, 0)"],
    ['base64Decode({A})', "fails for {A} = '1': Invalid base64Decode value (1)"],
    ['toDecimal64({A} * {B}, 6)', 'overflow'],
    ["replaceAll({A}, ',', '') / 100", 'Text becomes a number by toDecimal64OrNull(…, 6)'],
    ['toInt64OrNull({A}) / 3', 'comes to a Float64, which is not exact'],
    ["splitByChar(',', {A})", 'comes to a Array(String), which is not one value'],
    ['fromUnixTimestamp64Milli(toInt64OrZero({A}))', 'comes to a time in no zone'],
    ['NULL', 'is always NULL'],
    ['{A} > {B}', 'greater compares {A} and {B} as text'],
    ['upper({A}', 'is no SQL expression'],
    ['Cost', 'Cost is no value; a column is written {Cost}'],
    ['nosuch({A})', 'there is no function nosuch of one record'],
  ])('%s', async (expression, message) => {
    expect(await refusedExpression(expression)).toContain(message);
  });

  test.each([
    '(SELECT max(spend) FROM events)',
    '{A} IN (SELECT campaign_id FROM events)',
    '{A} IN events',
    'exists(SELECT 1)',
    '1) FROM events WHERE (1',
    '1 FROM events',
    '1; DROP TABLE events',
    '1 SETTINGS max_threads = 1',
    '1 UNION ALL SELECT 2',
    'DISTINCT {A}',
    '{A}, {B}',
    '*',
    "COLUMNS('a')",
    '{A} AS record',
    'record',
    '`at_line`',
    'sum({A})',
    'count() OVER ()',
    "arrayExists(`system.one` -> `system.one` = '1', ['1']) AND {A} IN system.one",
    "arrayExists(`system.one` -> `system.one` = '1', ['1']) AND notNullIn({A}, system.one)",
    "arrayReduce('sum', [1])",
    'rand()',
    'now()',
    'sleep(1)',
    'rowNumberInAllBlocks()',
    'hostName()',
    'currentUser()',
    "getSetting('max_threads')",
    "file('/etc/passwd')",
    "url('http://127.0.0.1')",
    "dictGet('campaign_names', 'name', {A})",
    "joinGet('events', 'spend', {A})",
    "throwIf({A} = 'x')",
    "input('a String')",
  ])('no function of one record: %s', async (expression) => {
    expect(await refusedExpression(expression)).not.toBe('nothing');
    expect(await select(db.store, 'SELECT count() >= 0 AS there FROM events')).toEqual([{ there: 1 }]);
  });
});
