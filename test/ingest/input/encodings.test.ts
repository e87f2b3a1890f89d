import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { useMappedLoads } from '../../support/mapped-loads.ts';

const { loadText, inFile, refusal } = useMappedLoads();

const header = 'event_time,creative_id,impressions\n';
const creatives = (text: string | Buffer, flags = {}, ending = 'csv') =>
  loadText(flags, text, 'creative_id', ending);

describe('text that is not Unicode', () => {
  const windows = Buffer.concat([
    Buffer.from(`${header}2026-09-01,plain,1\n2026-09-01,Fr`),
    // ü € – “ in windows-1252.
    Buffer.from([0xfc, 0x80, 0x96, 0x93]),
    Buffer.from(',2\n'),
  ]);

  test('is refused with the flag, and read by it: by any name of the encoding, by a mapping, packed', async () => {
    await expect(creatives(windows)).rejects.toThrow(/\.csv: the text is not UTF-8.*--encoding/);
    const loaded = { events: [['Frü€–“'], ['plain']], rejected: [], leftOut: 0 };
    for (const encoding of ['windows-1252', 'Latin1', 'cp1252']) {
      expect(await creatives(windows, { encoding })).toEqual(loaded);
    }
    expect(await creatives(windows, await inFile({ encoding: 'windows-1252' }))).toEqual(loaded);
    expect(await creatives(gzipSync(windows), { encoding: 'windows-1252' })).toEqual(loaded);
  });

  test.each([
    ['shift_jis', [0x83, 0x5c, 0x95, 0x5c], 'ソ表'],
    ['gbk', [0xc4, 0xe3, 0xba, 0xc3], '你好'],
    ['koi8-r', [0xf0, 0xd2], 'Пр'],
    ['euc-kr', [0xc7, 0xd1], '한'],
  ])('%s, whose second bytes may look like others', async (encoding, bytes, text) => {
    const content = Buffer.concat([
      Buffer.from(`${header}2026-09-01,`),
      Buffer.from(bytes),
      Buffer.from(',1\n'),
    ]);
    expect((await creatives(content, { encoding })).events).toEqual([[text]]);
  });

  test('of NDJSON and of arrays', async () => {
    const line = (text: string) =>
      Buffer.from(`{"event_time":"2026-09-01","creative_id":"${text}","impressions":1}`, 'latin1');
    const array = Buffer.concat([Buffer.from('['), line('ü'), Buffer.from(','), line('ö'), Buffer.from(']')]);
    const encoding = 'latin1';
    expect((await creatives(line('ü'), { encoding }, 'ndjson')).events).toEqual([['ü']]);
    expect((await creatives(array, { encoding }, 'json')).events).toEqual([['ö'], ['ü']]);
  });

  test('bytes that are none of the encoding fail, and a wrong name is refused with some that there are', async () => {
    const broken = Buffer.concat([
      Buffer.from(`${header}2026-09-01,`),
      Buffer.from([0x83]),
      Buffer.from(',1\n'),
    ]);
    await expect(creatives(broken, { encoding: 'shift_jis' })).rejects.toThrow('SHIFT_JIS text is damaged');
    expect(await refusal({ encoding: 'windows1259' })).toMatch(
      /^--encoding: windows1259 is no encoding; give one that browsers know, such as utf-8, .*windows-1252.*shift_jis/,
    );
  });

  test('--encoding utf-8 rejects the records that are not', async () => {
    const { events, rejected } = await creatives(windows, { encoding: 'utf-8' });
    expect(events).toEqual([['plain']]);
    expect(rejected).toEqual([expect.stringContaining('3  the record is not valid UTF-8')]);
  });
});

describe('blanks between cells', () => {
  test('one space is a delimiter like any other', async () => {
    const text = 'event_time creative_id impressions\n2026-09-01 "a b" 1\n2026-09-01  2\n';
    expect((await creatives(text, { delimiter: ' ' })).events).toEqual([[''], ['a b']]);
  });

  test('the log of a web server: any number of blanks, quotes and brackets', async () => {
    const flags = await inFile({
      delimiter: 'blanks',
      header: false,
      map: { creative_id: '5' },
      set: { impressions: '1' },
      expressions: { event_time: "parseDateTimeOrNull({4}, '%d/%b/%Y:%H:%i:%s %z', 'UTC')", device: '{6}' },
    });
    const lines = [
      '10.0.0.1 - - [10/Oct/2026:13:55:36 -0700] "GET /a?q=\\"x\\" HTTP/1.1"   200',
      '10.0.0.1\t-  - [10/Oct/2026:05:55:36 +0000] "" 404 ',
      '10.0.0.1 - - [10/Oct/2026:05:55:36 +0000] "GET /open 200',
      '10.0.0.1 - - [10/Oct/2026:05:55:36 +0000] "GET"x 200',
      '10.0.0.1 - - [10/Oct/2026:05:55:36 "GET" 200',
    ];
    const { events, rejected } = await loadText(
      flags,
      `${lines.join('\n')}\n`,
      'toString(event_time), creative_id, device',
      'log.csv',
    );
    expect(events).toEqual([
      ['2026-10-10 05:55:36.000', '', '404'],
      ['2026-10-10 20:55:36.000', 'GET /a?q=\\"x\\" HTTP/1.1', '200'],
    ]);
    const reason = ' a quote or a bracket in the record is not closed, or text follows a closing one';
    expect(rejected).toEqual([3, 4, 5].map((line) => `${line} ${reason}`));
  });

  test('the header of such a file has its cells alike', async () => {
    const text = 'event_time   "creative_id"\timpressions\n2026-09-01  x  1\n';
    expect((await creatives(text, { delimiter: 'blanks' })).events).toEqual([['x']]);
  });
});

test('hours of one digit', async () => {
  const times = [
    '2021-09-15 5:00:00',
    '2021-09-15T5:01Z',
    '2021-09-15 5:02:00.5+02:00',
    '2021-09-15 24:00:00',
  ];
  const text = `event_time,impressions\n${times.map((time) => `${time},1\n`).join('')}`;
  const { events, rejected } = await loadText({ timezone: 'Asia/Tokyo' }, text, 'toString(event_time)');
  expect(events.flat()).toEqual([
    '2021-09-14 20:00:00.000',
    '2021-09-15 03:02:00.500',
    '2021-09-15 05:01:00.000',
  ]);
  expect(rejected).toHaveLength(1);
});

describe('serial dates', () => {
  const load = (flags: object, ...serials: string[]) =>
    loadText(
      flags,
      `event_time;impressions\n${serials.map((serial) => `${serial};1\n`).join('')}`,
      'toString(event_time)',
    );
  const excel = { delimiter: ';', dates: 'excel' };

  test('are days, or times of a day to the millisecond, however the sheet writes fractions', async () => {
    const serials = [
      '45297',
      '45298.5',
      '45298,5',
      '45299.354166666664',
      '45300.99998842593',
      '45301.0000000116',
    ];
    expect((await load(excel, ...serials)).events.flat()).toEqual([
      '2024-01-06 00:00:00.000',
      '2024-01-07 12:00:00.000',
      '2024-01-07 12:00:00.000',
      '2024-01-08 08:30:00.000',
      '2024-01-09 23:59:59.000',
      '2024-01-10 00:00:00.001',
    ]);
  });

  test('of 1904 are 1,462 days later', async () => {
    const [[first] = []] = (await load({ ...excel, dates: 'excel-1904' }, `${45297 - 1462}`)).events;
    expect(first).toBe('2024-01-06 00:00:00.000');
  });

  test('with a fraction are times on the wall of --timezone, also where the clock changes', async () => {
    const { events } = await load({ ...excel, timezone: 'Europe/Berlin' }, '46110.25', '46110', '46111.5');
    // The clock went from 2 to 3 on 2026-03-29.
    expect(events.flat()).toEqual([
      '2026-03-29 00:00:00.000',
      '2026-03-29 04:00:00.000',
      '2026-03-30 10:00:00.000',
    ]);
  });

  test('are none without the flag; with it other times are what they were', async () => {
    const { rejected } = await load({ delimiter: ';' }, '45297');
    expect(rejected).toEqual([expect.stringContaining('--dates excel')]);
    const { events, rejected: bad } = await load(
      excel,
      '2026-01-31',
      '1767225600',
      '1',
      '999999',
      '45297.5.1',
    );
    expect(events.flat()).toEqual(['2026-01-01 00:00:00.000', '2026-01-31 00:00:00.000']);
    expect(bad.map((each) => each.slice(0, 1))).toEqual(['4', '5', '6']);
    expect(await refusal({ dates: 'lotus' })).toBe(
      '--dates: lotus is no kind of serial dates; there are excel, excel-1904',
    );
  });
});
