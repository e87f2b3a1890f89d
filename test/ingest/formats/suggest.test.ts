import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { heldInput } from '../../../ingest/input/held-input.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { readBeginning } from '../../../ingest/suggest/beginning.ts';
import { knownExports } from '../../../ingest/suggest/known-exports.ts';
import { type Suggestion, suggestMapping } from '../../../ingest/suggest/suggest-mapping.ts';
import { examples } from '../../support/examples.ts';
import { useFolder } from '../../support/folder.ts';
import { useMappedLoads } from '../../support/mapped-loads.ts';

const loads = useMappedLoads();
const folder = useFolder();

async function suggestionFor(path: string, flags = {}): Promise<Suggestion['mapping']> {
  const beginning = await readBeginning(new LocalFile(path), flags);
  return suggestMapping(await knownExports('examples'), beginning).mapping;
}

async function suggestionOf(name: string, content: string | Buffer, flags = {}) {
  const path = join(folder, name);
  await writeFile(path, content);
  return suggestionFor(path, flags);
}

// A log has no names of columns.
test.each(Object.entries(examples).filter(([name]) => name !== 'web-log'))(
  'the suggestion for an export such as %s is its mapping, but for what only a person can say',
  async (name, { data, side, account }) => {
    const suggestion = await suggestionFor(`examples/${data}`);
    const { fill_in = {}, set = {}, expressions = {}, ...suggested } = suggestion;
    const example = JSON.parse(await readFile(`examples/${name}.json`, 'utf8'));
    const accounts = name === 'placements' ? ['advertiser_id', 'publisher_id'] : account ? [] : [side];
    // The days of these are all before the 13th.
    const days = ['microsoft-ads', 'linkedin-ads'].includes(name) ? ['event_time'] : [];
    // A person chooses the zone of its times.
    const zone = name === 'appsflyer' ? ['timezone'] : [];
    expect(Object.keys(fill_in)).toEqual([...accounts, ...days, ...zone]);
    expect(Object.keys({ ...set, ...example.set }).sort()).toEqual([...Object.keys(set), ...accounts].sort());
    const asked = days.map((field) => [field, example.expressions[field]]);
    expect({
      ...suggested,
      set: { ...set, ...example.set },
      expressions: { ...expressions, ...Object.fromEntries(asked) },
    }).toEqual({
      set: {},
      expressions: {},
      ...example,
    });
  },
);

const ask = expect.any(String);
const account = { advertiser_id: ask };

describe('a file of no known platform', () => {
  const files: Record<string, [name: string, content: string | Buffer, suggestion: object]> = {
    'counts and money that may be what they are called, with signs and without': [
      'doubtful.csv',
      'Date,Campaign ID,Imps,Purchase Orders,Revenue\n2026-03-01,c1,1000,12,"$1,211.57"\n',
      {
        fill_in: {
          ...account,
          impressions: 'Imps may be impressions: --map impressions=…, or take this line out',
          conversions: 'Purchase Orders may be conversions: --map conversions=…, or take this line out',
          spend: ask,
        },
        map: { campaign_id: 'Campaign ID', event_time: 'Date' },
        ignore_unknown: true,
      },
    ],
    'an amount that is spend beside one that may be either': [
      'both.csv',
      'Date,Campaign ID,Clicks,Cost,Revenue (USD),Revenue (EUR)\n2026-03-01,c1,5,1.5,2.5,2.2\n',
      {
        fill_in: {
          ...account,
          revenue: 'Revenue (USD) or Revenue (EUR) may be revenue: --map revenue=…, or take this line out',
        },
        map: { event_time: 'Date', campaign_id: 'Campaign ID', referrals: 'Clicks', spend: 'Cost' },
      },
    ],
    'days with points, decimal commas, a row of totals': [
      'sheet.csv',
      'Export\n\nTag;Campaign ID;Impr.;Clicks;Cost\n01.09.2026;7;1204;3;28,97\n02.09.2026;7;12;1;1.204,50\nSumme;;1216;4;1.233,47\n',
      {
        ...{ delimiter: ';', skip_lines: 2, fill_in: account, where: "{Tag} NOT IN ('Summe')" },
        map: { campaign_id: 'Campaign ID' },
        expressions: {
          event_time: "toDate(parseDateTimeOrNull({Tag}, '%e.%c.%Y'))",
          impressions: "replaceOne(replaceRegexpAll({Impr.}, '[.]([0-9]{3})\\\\b', '\\1'), ',', '.')",
          referrals: "replaceOne(replaceRegexpAll({Clicks}, '[.]([0-9]{3})\\\\b', '\\1'), ',', '.')",
          spend: "replaceOne(replaceRegexpAll({Cost}, '[.]([0-9]{3})\\\\b', '\\1'), ',', '.')",
        },
      },
    ],
    'thousands, signs of a currency, parts of conversions, the month first': [
      'us.csv',
      'Date,Campaign ID,Impressions,Conversions,Cost\n9/13/2026,1,"1,204",0.50,$26.04\n9/2/2026,1,12,1.00,"$1,128.05"\n',
      {
        ...{ fill_in: account, map: { campaign_id: 'Campaign ID' } },
        expressions: {
          event_time: "toDate(parseDateTimeOrNull({Date}, '%c/%e/%Y'))",
          impressions: "replaceRegexpAll({Impressions}, ',([0-9]{3})\\\\b', '\\1')",
          conversions: 'round({Conversions})',
          spend: "replaceRegexpAll({Cost}, '[$]|,([0-9]{3})\\\\b', '\\1')",
        },
      },
    ],
    'UTF-16, serial dates, an account': [
      'unicode.tsv',
      Buffer.from('\ufeffDay\tAdvertiser ID\tCampaign ID\tImpressions\r\n46266\ta\t1\t5\r\n', 'utf16le'),
      {
        dates: 'excel',
        map: {
          ...{ event_time: 'Day', advertiser_id: 'Advertiser ID', campaign_id: 'Campaign ID' },
          impressions: 'Impressions',
        },
      },
    ],
    'an array further inside, members of members, millionths': [
      'api.json',
      '{"status": "ok", "data": {"rows": [{"day": "2026-09-01", "campaign": {"id": 7}, "impressions": 3, "cost_micros": 1200000}]}}',
      {
        ...{ records: 'data.rows', fill_in: account },
        map: { event_time: 'day', campaign_id: 'campaign.id', impressions: 'impressions' },
        expressions: { spend: '{cost_micros} / 1000000' },
      },
    ],
    'answers in an array': [
      'stream.json',
      '[{"results": [{"day": "2026-09-01", "campaign": {"id": 7}, "impressions": 3}], "mask": "day"}, {"results": []}]',
      {
        ...{ records: 'results', fill_in: account },
        map: { event_time: 'day', campaign_id: 'campaign.id', impressions: 'impressions' },
      },
    ],
    'a large answer in an array': [
      'stream.json',
      `[{"results": [${'{"day": "2026-09-01", "campaign": {"id": 7}, "impressions": 3},\n'.repeat(10_000)}`,
      {
        ...{ records: 'results', fill_in: account },
        map: { event_time: 'day', campaign_id: 'campaign.id', impressions: 'impressions' },
      },
    ],
    'records with an array of their own': [
      'records.json',
      '[{"actions": [{"type": "view", "n": 4}], "day": "2026-09-01", "campaign": {"id": 7}, "impressions": 3}]',
      {
        fill_in: account,
        map: { event_time: 'day', campaign_id: 'campaign.id', impressions: 'impressions' },
      },
    ],
    'fields by their own names': [
      'own.ndjson',
      '{"event_time":"2026-09-01T10:00:00Z","publisher_id":"p","ad_unit_id":"u","impressions":1,"revenue":"2"}\n',
      {
        map: {
          ...{ event_time: 'event_time', publisher_id: 'publisher_id', ad_unit_id: 'ad_unit_id' },
          ...{ impressions: 'impressions', revenue: 'revenue' },
        },
      },
    ],
    'a number that is a name, behind which a path finds no amount': [
      'numbered.ndjson',
      '{"day":"2026-09-01","campaign":{"id":7},"clicks":1,"totals":{"0":{"cost":2.5}}}\n',
      {
        ...{ ignore_unknown: true, fill_in: account },
        map: { event_time: 'day', campaign_id: 'campaign.id', referrals: 'clicks' },
      },
    ],
    'what is doubtful is asked for: day or month, spend or revenue, thousands or a fraction, a zone': [
      'doubt.csv',
      'Date,Campaign ID,Impressions,Revenue\n03/04/2026,1,1.204,2\n05/06/2026,1,1.100,3\n',
      {
        fill_in: { ...account, event_time: ask, impressions: ask, spend: ask },
        map: { campaign_id: 'Campaign ID' },
      },
    ],
    'an amount that no example knows, and times without a zone': [
      'amount.csv',
      'Date,Campaign ID,Clicks,Amount\n2026-09-01 10:00:00,1,5,2\n',
      {
        fill_in: { ...account, timezone: ask, spend: ask },
        map: { event_time: 'Date', campaign_id: 'Campaign ID', referrals: 'Clicks' },
      },
    ],
    'no header': [
      'bare.csv',
      '2026-09-01,1,5\n2026-09-02,1,6\n',
      {
        header: false,
        fill_in: { ...account, impressions: ask, campaign_id: ask },
        map: { event_time: '1' },
      },
    ],
  };
  test.each(Object.entries(files))('%s', async (_, [name, content, suggestion]) => {
    const found = await suggestionOf(name, content);
    expect(found).toEqual({ ...suggestion, ignore_unknown: true });
    // It is a mapping, and refused only while something is to be filled in.
    const refusal = await loads.refusal(await loads.inFile(found));
    if (found.fill_in) expect(refusal).toMatch(/fill_in\.\w+: /);
    else expect(refusal).toBe('nothing');
  });

  test('a report of ours by day, whose records begin and end with the same day', async () => {
    const header = 'start_time,end_time,ad_unit,estimated_revenue,ad_requests';
    const day = '2026-09-01,2026-09-01,u1,2.5,7';
    const known = { ad_unit_id: 'ad_unit', revenue: 'estimated_revenue', ad_requests: 'ad_requests' };
    expect(await suggestionOf('report.csv', `${header}\n${day}\n`)).toEqual({
      fill_in: { publisher_id: ask },
      map: known,
      expressions: { event_time: 'if({start_time} = {end_time}, {start_time}, NULL)' },
      ignore_unknown: true,
    });
    expect(await suggestionOf('range.csv', `${header}\n${day}\n2026-09-01,2026-09-02,u1,2.5,7\n`)).toEqual({
      fill_in: {
        event_time: 'start_time or end_time may be event_time: in expressions {start_time} or {end_time}',
        publisher_id: ask,
      },
      map: known,
      ignore_unknown: true,
    });
  });

  test.each([
    ['Start date,End date', '2026-10-05,2026-10-11', 'Start date or End date may be event_time'],
    ['Start Date (in UTC),End Date (in UTC)', '10/26/2026,11/1/2026', 'in expressions toDate('],
    ['Day,Last day', '2026-10-05,2026-10-11', 'Day or Last day may be event_time'],
    ['Week', '2026-10-05', 'a record of Week may be of several days'],
    ['segments.month', '2026-10-01', 'a record of segments.month may be of several days'],
    ['Date', ['2026-10-05', '2026-10-12', '2026-10-19'], 'a record of Date may be of several days'],
    ['Date', ['01.08.2026', '01.09.2026', '01.10.2026'], 'a record of Date may be of several days'],
    ['Date', ['26.09.07', '26.09.08', '26.09.09'], '26.09.07 in Date may begin or end with the year'],
    ['Date', ['07.09.26', '14.09.26', '21.09.26'], 'a record of Date may be of several days'],
    ['Date', ['07/09/2026', '14/09/2026', '21/09/2026'], 'a record of Date may be of several days'],
    ['Quartal', '01.10.2026', "give it in expressions toDate(parseDateTimeOrNull({Quartal}, '%e.%c.%Y'))"],
  ])('a report whose records are of several days asks for the day: %s', async (columns, days, question) => {
    const records = [days].flat().map((day) => `${day},c1,5\n`);
    const text = `${columns},Campaign ID,Clicks\n${records.join('')}`;
    const { fill_in, map } = await suggestionOf('several.csv', text);
    expect(fill_in).toEqual({ advertiser_id: ask, event_time: expect.stringContaining(question) });
    expect(map).toEqual({ campaign_id: 'Campaign ID', referrals: 'Clicks' });
  });

  test.each([
    Array.from({ length: 30 }, (_, n) => `${n + 1}`.padStart(2, '0')).map((day) => `${day}/09/2026`),
    ['2026-09-07 10:00:00Z', '2026-09-14 11:30:00Z', '2026-09-21 00:00:00Z'],
  ])('days and times of each day are read: %s', async (...days) => {
    const records = days.map((day) => `${day},c1,5\n`).join('');
    const { fill_in } = await suggestionOf('daily.csv', `Date,Campaign ID,Clicks\n${records}`);
    expect(fill_in).toEqual({ advertiser_id: ask });
  });

  test('an export whose example has decimal commas is read with points between thousands, too', async () => {
    const example = await readFile('examples/placements.csv', 'utf8');
    const text = example.replace(';20170;', ';20.170;').replace(';28,9717;', ';1.028,9717;');
    const { expressions } = await suggestionOf('thousands.csv', text);
    const thousands = String.raw`, '[.]([0-9]{3})\\b', '\1'), ',', '.')`;
    expect(expressions).toMatchObject({
      impressions: `replaceOne(replaceRegexpAll({displays}${thousands}`,
      spend: `replaceOne(replaceRegexpAll({cost}${thousands}`,
    });
  });

  test('an export that has an example, with the days of weeks, asks for the day', async () => {
    const lines = (await readFile('examples/google-ads.csv', 'utf8')).split('\n');
    const weeks = [7, 14, 21].map((day) => lines[3]?.replace('-01,', `-${`${day}`.padStart(2, '0')},`));
    const text = [...lines.slice(0, 3), ...weeks, ''].join('\n');
    const { fill_in, map } = await suggestionOf('weeks.csv', text);
    expect(fill_in).toEqual({ ...account, event_time: expect.stringContaining('of Day may be of several') });
    expect(map).toEqual({ campaign_id: 'Campaign ID' });
  });

  test.each([
    ['hours of one day', ['2026-09-01 08:00', '2026-09-01 09:00', '2026-09-01 10:00']],
    ['serial dates', ['46266', '46267', '46268']],
    ['days, a Monday for the most part', ['2026-09-07', '2026-09-07', '2026-09-08', '2026-09-14']],
  ])('records of one day each are not taken for weeks: %s', async (_, times) => {
    const text = `Time,Campaign ID,Clicks\n${times.map((time) => `${time},c1,5\n`).join('')}`;
    expect((await suggestionOf('day.csv', text)).map).toMatchObject({ event_time: 'Time' });
  });

  test('a log of sessions that has event_time is read by it, whatever other times it has', async () => {
    const times = '2026-09-01T10:00:00Z,2026-09-01T10:05:00Z';
    const text = `event_time,end_time,Campaign ID,Clicks\n${times},c1,5\n`;
    const { fill_in, map } = await suggestionOf('sessions.csv', text);
    expect([fill_in, map]).toEqual([account, expect.objectContaining({ event_time: 'event_time' })]);
  });

  test.each([
    ['a last day', 'Until', () => '2026-12-31', undefined],
    ['the end of a campaign that has none', 'End date', () => '--', '{Day}'],
    ['receivers', 'To', () => 'anna@example.com', '{Day}'],
    ['the same day again', 'End date', (day: string) => day, 'if({Day} = {End date}, {Day}, NULL)'],
  ])('an export with a column that its example does not read: %s', async (_, name, cellOn, time) => {
    const example = await readFile('examples/google-ads.csv', 'utf8');
    const lines = example.trim().split('\n');
    const header = lines.findIndex((line) => line.includes(',Day,'));
    const more = lines.map((line, n) => {
      if (n < header) return line;
      return `${line},${n === header ? name : cellOn(/\d{4}-\d\d-\d\d/.exec(line)?.[0] ?? '--')}`;
    });
    const { fill_in, where, map, expressions } = await suggestionOf('google-ads.csv', more.join('\n'));
    const { event_time, ...others } = expressions ?? {};
    // All else is read as in the example.
    const known = JSON.parse(await readFile('examples/google-ads.json', 'utf8'));
    expect([where, others]).toEqual([known.where, known.expressions]);
    expect(event_time ?? (map?.event_time && `{${map.event_time}}`)).toBe(time);
    const question = 'Day or Until may be event_time: in expressions {Day} or {Until}';
    expect(fill_in).toEqual({ advertiser_id: ask, ...(time === undefined && { event_time: question }) });
  });

  test('a day beside the last day of its campaign or a time of change is the day', async () => {
    const text =
      'Day,Week,Campaign end date,Updated,Campaign ID,Clicks\n2026-10-05,2026-10-05,2026-12-31,2026-10-07,c1,5\n';
    expect((await suggestionOf('day.csv', text)).map).toMatchObject({ event_time: 'Day' });
  });

  test.each([
    [
      ['2026-09-01', 'next week', 'today'],
      'day is written in an unknown way in 2 of the first 3 records, such as "next week"',
    ],
    [
      ['2026-09-01', '20260902'],
      'day is written in several ways, and in none of them more often than in all others',
    ],
  ])('a column that is named as the time and cannot be read: %j', async (days, question) => {
    const text = ['day,clicks', ...days.map((day) => `${day},1`), ''].join('\n');
    const beginning = await readBeginning(heldInput('theirs', ['csv'], Buffer.from(text)), {});
    const { mapping } = suggestMapping([], beginning, { event_time: 'day' });
    expect(mapping.fill_in).toMatchObject({ event_time: question });
  });

  test.each([
    ['Cost', '{Cost}'],
    ['Amount', 'Amount may be spend, revenue or neither'],
  ])('amounts in several currencies are asked for, and not summed: %s', async (cost, read) => {
    const text = `Day,Campaign ID,Currency,Clicks,${cost}\n2026-09-01,1,EUR,5,1.5\n2026-09-01,2,USD,5,2.5\nTotal,,,10,4\n`;
    const { fill_in, map } = await suggestionOf('currencies.csv', text);
    expect(fill_in).toEqual({ ...account, spend: expect.stringContaining(read) });
    const choice = "load one of them by a where such as {Day} NOT IN ('Total') AND {Currency} = 'EUR'; ";
    expect(fill_in?.spend).toContain(choice);
    expect(map).not.toHaveProperty('spend');
    const chosen = await suggestionOf('euros.csv', text.replace('USD', 'EUR'));
    expect(chosen.fill_in?.spend).not.toEqual(expect.stringContaining('currencies'));
  });

  test.each([
    ['Currency', 'EUR', 'n/a'],
    ['Cost (account currency)', 'US$1.50', 'US$2.50'],
    ['Valutazione', 'Buono', 'Ottimo'],
  ])('what is no currency is not taken for one: %s', async (column, ...values) => {
    const records = values.map((value) => `2026-09-01,c,${value},5,1.5\n`).join('');
    const { fill_in } = await suggestionOf('no.csv', `Day,Campaign ID,${column},Clicks,Cost\n${records}`);
    expect(Object.values(fill_in ?? {}).join()).not.toContain('has several currencies');
  });

  test('whole amounts may be cents also where other columns have decimal commas', async () => {
    const records = Array.from({ length: 12 }, (_, n) => `2026-09-01;c;5;1,25 %;${1_000 + 37 * n}\n`).join(
      '',
    );
    for (const cost of ['Cost', 'Betrag']) {
      const text = `Day;Campaign ID;Clicks;CTR;${cost}\n${records}`;
      const { fill_in } = await suggestionOf('cents.csv', text);
      expect(fill_in?.spend).toMatch(/toDecimal64OrNull\(replaceOne\(.*, 6\) \/ 100 if they are cents/);
    }
  });

  test('an amount that is asked for is not told as read', async () => {
    const text = Buffer.from('day,campaign_id,clicks,revenue\n2026-09-01,c,5,1.5\n');
    const beginning = await readBeginning(heldInput('theirs', ['csv'], text), {});
    const { mapping, reasons } = suggestMapping([], beginning);
    expect(mapping.fill_in).toHaveProperty('revenue');
    expect(reasons).not.toContain('revenue: revenue');
  });

  test('another currency than that of the example', async () => {
    const text =
      'Date,Ad unit,Ad requests,Impressions,Clicks,Estimated earnings (USD)\n2026-09-01,a,5,4,1,0.5\n';
    expect(await suggestionOf('usd.csv', text)).toMatchObject({
      map: { ad_requests: 'Ad requests', revenue: 'Estimated earnings (USD)' },
    });
  });

  test('--encoding is part of the mapping', async () => {
    const text = Buffer.from('Day;Campaign ID;Clicks;Größe\n2026-09-01;1;5;x\n', 'latin1');
    await expect(suggestionOf('latin.csv', text)).rejects.toThrow(/not UTF-8.*--encoding/);
    expect(await suggestionOf('latin.csv', text, { encoding: 'windows-1252' })).toMatchObject({
      encoding: 'windows-1252',
    });
  });

  const wide = Array.from({ length: 9_000 }, (_, n) => `x${n}`).join();
  test.each([
    ['empty.csv', '', /no record/],
    ['sheet.csv', 'PK\x03\x04 [Content_Types].xml', /Excel workbook/],
    ['sheet.xlsx', '', /Excel workbooks cannot be read/],
    ['old.csv', Buffer.from('d0cf11e0a1b11ae1', 'hex'), /Excel workbook/],
    ['events.parquet', 'PAR1', /--suggest looks at text, and this is parquet: give a column .* by --map/],
    ['wide.csv', `${wide}\n${wide}\n`, /: its first lines have more than 65536 bytes/],
    ['wider.csv', `${wide},${wide}\n${wide}\n`, /: its first lines have more than 65536 bytes/],
    [
      'titled.csv',
      `Costs\nMarch\n${wide},${wide}\n${wide}\n`,
      /: its first lines have more than 65536 bytes/,
    ],
    ['twice.csv', 'Report,,\nDay,Cost,Cost\n2026-09-01,1,2\n', /column Cost appears twice/],
  ])('what cannot be loaded is refused: %s', async (name, content, message) => {
    await expect(suggestionOf(name, content)).rejects.toThrow(message);
  });
});

describe('of a file that anybody may have written', () => {
  const look = (ending: string, text: string) =>
    readBeginning(heldInput('theirs', [ending], Buffer.from(text)), {});
  const lines = (count: number, line: string) => `${line}\n`.repeat(count);

  test('a few hundred columns and records are looked at', async () => {
    const names = Array.from({ length: 3_000 }, (_, n) => `column ${n}`);
    const wide = [
      await look('csv', `${names.join()}\n${names.map(() => 1).join()}\n`),
      await look('ndjson', `${JSON.stringify(Object.fromEntries(names.map((each) => [each, 1])))}\n`),
    ];
    expect(wide.map(({ columns }) => columns.length)).toEqual([500, 500]);
    const cells = names.map(() => '1234567890123456').join();
    const theirs = heldInput('theirs', ['csv'], Buffer.from(lines(2, cells)));
    const { columns, rows } = await readBeginning(theirs, { header: false });
    expect([columns.length, rows.length]).toEqual([500, 1]);
    const long = [
      await look('csv', `a,b\n${lines(3_000, '1,2')}`),
      await look('ndjson', lines(3_000, '{"a":1}')),
    ];
    expect(long.map(({ rows }) => rows.length)).toEqual([199, 200]);
  });

  test('a string of JSON that is not closed ends with the text, so that no bracket in it is one of the file', async () => {
    await expect(look('json', '{"a": "[{')).rejects.toThrow('there is no record in it');
    await expect(look('json', `{"a": "${'\\"'.repeat(30_000)}[{`)).rejects.toThrow(
      'there is no record in it',
    );
  });

  test('records deep in brackets are not looked for', async () => {
    await expect(look('json', `{"a":${'['.repeat(99)}${'{"a":['.repeat(9_000)}`)).rejects.toThrow(
      'there is no record',
    );
    const { layout } = await look('json', `${'{"a":'.repeat(101)}[{"b":1}]${'}'.repeat(101)}`);
    expect(layout).toEqual({});
  });
});
