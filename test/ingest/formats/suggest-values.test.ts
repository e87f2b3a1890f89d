import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { heldInput } from '../../../ingest/input/held-input.ts';
import { readBeginning } from '../../../ingest/suggest/beginning.ts';
import { knownExports } from '../../../ingest/suggest/known-exports.ts';
import { suggestMapping } from '../../../ingest/suggest/suggest-mapping.ts';
import { useMappedLoads } from '../../support/mapped-loads.ts';

/** How days, times and numbers are written, and what is loaded of them through the suggestion. */
const loads = useMappedLoads();

async function suggested(text: string, ending = 'csv', flags: Parameters<typeof readBeginning>[1] = {}) {
  const beginning = await readBeginning(heldInput('theirs', [ending], Buffer.from(text)), flags);
  const { mapping } = suggestMapping(await knownExports('examples'), beginning);
  return mapping;
}

/** Loads a table through its suggestion; what is to be filled in is given. */
async function loaded(text: string, fields: string) {
  const { fill_in: _, map, ...mapping } = await suggested(text);
  // The campaign is that of the load.
  const { campaign_id: __, ...others } = map ?? {};
  return loads.loadText(await loads.inFile({ ...mapping, map: others }), text, fields);
}

const table = (header: string, rows: readonly string[]) => `${[header, ...rows].join('\n')}\n`;

describe('days and times', () => {
  const of = (...values: readonly string[]) =>
    table(
      'When;Clicks',
      values.map((value) => `${value};1`),
    );

  /** Loads one record with all of these times, each as its suggestion reads it. */
  async function timesLoaded(written: readonly string[], timezone?: string) {
    const suggestions = await Promise.all(
      written.map((value, n) => suggested(table(`When ${n};Clicks`, [`${value};1`]))),
    );
    const events = suggestions.map(({ map, expressions }) => ({
      map: { ...map, referrals: 'Clicks' },
      expressions: expressions ?? {},
    }));
    const flags = await loads.inFile({ delimiter: ';', ignore_unknown: true, events });
    const header = [...written.map((_, n) => `When ${n}`), 'Clicks'].join(';');
    const { events: times, rejected } = await loads.loadText(
      { ...flags, ...(timezone !== undefined && { timezone }) },
      table(header, [[...written, '1'].join(';')]),
      'toString(event_time)',
    );
    return { asked: suggestions.map(({ fill_in }) => fill_in?.timezone), times: times.flat(), rejected };
  }

  test('a day whose year may come first is asked for, and a cell of any length is looked at', async () => {
    for (const value of ['26.09.01', '26/09/01'])
      expect(
        (await suggested(table('When;Clicks', [`${value};1`, `${value};2`]))).fill_in?.event_time,
      ).toMatch(/may begin or end with the year/);
    const long = `2026-09-01 10:00 A${'1'.repeat(60_000)}/`;
    expect((await suggested(table('When;Clicks', [`${long};1`]))).map).toEqual({ referrals: 'Clicks' });
  });

  test.each([
    [
      'without a question where there is one way to read them',
      undefined,
      {
        '9/13/26': '2026-09-13 00:00:00.000',
        '14.9.26': '2026-09-14 00:00:00.000',
        'September 2, 2026': '2026-09-02 00:00:00.000',
        '03-Sep-2026': '2026-09-03 00:00:00.000',
        '2026-09-01 10:15:42.5 UTC': '2026-09-01 10:15:42.500',
        '9/13/2026 1:05:42 PM GMT': '2026-09-13 13:05:42.000',
        '01/Sep/2026:10:15:42 +0200': '2026-09-01 08:15:42.000',
        '1788221742123456': '2026-09-01 00:15:42.123',
      },
    ],
    [
      'in the zone that is asked for where they name none that is known',
      'America/Los_Angeles',
      {
        '9/13/2026 1:05:42 PM': '2026-09-13 20:05:42.000',
        '9/13/2026 12:05 AM': '2026-09-13 07:05:00.000',
        '13.09.2026 10:15': '2026-09-13 17:15:00.000',
        '2026-09-01-10:15:42': '2026-09-01 17:15:42.000',
        '2026090110': '2026-09-01 17:00:00.000',
        '20260901101543': '2026-09-01 17:15:43.000',
        '2026-09-01 10:15:44 PDT': '2026-09-01 17:15:44.000',
      },
    ],
  ])('%s', async (_, timezone, times) => {
    const written = Object.keys(times);
    expect(await timesLoaded(written, timezone)).toEqual({
      asked: written.map((each) => timezone && expect.stringContaining(each)),
      times: Object.values(times).sort(),
      rejected: [],
    });
  });

  test.each([
    ['9/1/26', "'%e/%c/%y')) or '%c/%e/%y'"],
    ['9/1/2026 1:05 PM', "'%e/%c/%Y %l:%i %p', 'UTC')) or '%c/%e/%Y %l:%i %p', with --timezone"],
    ['14101210', 'no column holds days or times'],
  ])('%s is asked for', async (written, question) => {
    expect((await suggested(of(written))).fill_in).toMatchObject({
      event_time: expect.stringContaining(question),
    });
  });

  test('days of two digits that may begin with the year are asked for', async () => {
    const { fill_in } = await suggested(of('26/09/01', '26/09/02', '26/09/13'));
    expect(fill_in).toMatchObject({ event_time: expect.stringContaining('may begin or end with the year') });
  });

  test('year, month and day in columns of their own, in several columns, and ids that look like times', async () => {
    const parts = await suggested(table('start.year,start.month,start.day,clicks', ['2026,9,1,5']));
    const expression = `{start.year} || '-' || leftPad({start.month}, 2, '0') || '-' || leftPad({start.day}, 2, '0')`;
    expect(parts.fill_in).toMatchObject({ event_time: expect.stringContaining(expression) });
    const several = await suggested(
      table('Sent,SentUsec,order_id,clicks', ['2026-09-01T10:00:00Z,1788221742123456,1788221742,5']),
    );
    expect(several.fill_in).toMatchObject({
      event_time: 'Sent or SentUsec may be event_time: in expressions {Sent} or left({SentUsec}, 13)',
    });
  });
});

describe('numbers', () => {
  const money = 'toString(spend)';
  const of = (...costs: readonly string[]) =>
    table(
      'Day;Clicks;Cost',
      costs.map((cost, n) => `2026-09-${`${n + 10}`};5;${cost}`),
    );

  test.each([
    [
      ['$1,234.50', '-$0.5'],
      ['-0.5', '1234.5'],
    ],
    [
      ['1 234,56 €', '0,5 €'],
      ['0.5', '1234.56'],
    ],
    [
      ["CHF 1'234.50", 'CHF 2'],
      ['1234.5', '2'],
    ],
    [
      ['1.234.567', '28'],
      ['1234567', '28'],
    ],
  ])('%j', async (costs, stored) => {
    expect(await suggested(of(...costs))).not.toHaveProperty('fill_in.spend');
    expect(await loaded(of(...costs), money)).toMatchObject({
      events: stored.map((each) => [each]),
      rejected: [],
    });
  });

  test('what is written in another way than the others is rejected, never another amount', async () => {
    const { fill_in: _, ...mapping } = await suggested(of('$1,234.50', '$1'));
    const odd = ['($12.50)', '$1.2K', '€3.00', '$28,97', 'n/a'];
    const { events, rejected } = await loads.loadText(
      await loads.inFile(mapping),
      of('$1,234.50', ...odd),
      money,
    );
    expect(events).toEqual([['1234.5']]);
    expect(rejected).toHaveLength(odd.length);
  });

  test('one number of a file tells how the others are written', async () => {
    const { fill_in, expressions } = await suggested(
      table('Tag;Impr.;Clicks;Cost', ['2026-09-01;1.204;2.000;28,97', '2026-09-02;3;4;5']),
    );
    expect(Object.keys(fill_in ?? {})).toEqual(['campaign_id', 'advertiser_id']);
    expect(expressions).toMatchObject({ impressions: expect.stringContaining('[.]([0-9]{3})') });
    const dots = await suggested(table('Day,Impr.,CTR,Cost', ['2026-09-01,5,0.31%,"1,204"']));
    expect(dots.expressions).toEqual({
      spend: String.raw`replaceRegexpAll({Cost}, ',([0-9]{3})\\b', '\1')`,
    });
  });

  test.each(['Tag;Einheit;Impressions;Clicks;Cost', 'Day;Campaign ID;Device;Impr.;Clicks;Conversions;Cost'])(
    'behind small numbers come thousands with a point: %s',
    async (header) => {
      const row = (count: string, cost: string) =>
        [
          '2026-09-01',
          ...header
            .split(';')
            .slice(1, -1)
            .map(() => count),
          cost,
        ].join(';');
      const { fill_in: _, ...mapping } = await suggested(table(header, [row('5', '28,97'), row('7', '3')]));
      const text = table(header, [row('1.000', '1.204'), row('2.345', '1.204,50'), row('8', '0,5')]);
      const fields = 'toUInt32(impressions), toUInt32(referrals), toString(spend)';
      expect(await loads.loadText(await loads.inFile(mapping), text, fields)).toMatchObject({
        events: [
          [8, 8, '0.5'],
          [1000, 1000, '1204'],
          [2345, 2345, '1204.5'],
        ],
        rejected: [],
      });
    },
  );

  test('no number tells that is none, and one odd number does not turn a column', async () => {
    const spendOf = async (header: string, ...rows: string[]) => {
      const { expressions, fill_in } = await suggested(table(header, rows));
      return expressions?.spend ?? fill_in?.spend;
    };
    const thousands = /^replaceRegexpAll/;
    expect(await spendOf('Day,Slots,Cost', '2026-09-01,"1,2","1,204"')).toMatch(
      /may be thousands or a decimal/,
    );
    expect(await spendOf('Day;OS;Cost', '2026-09-01;17.4;1.204')).toMatch(/may be thousands or a fraction/);
    expect(await spendOf('Day,Cost', '2026-09-01,"1,204,567"', '2026-09-01,"1,20"')).toMatch(thousands);
    const mixed = ['$1,204.50', '$1,204', '$28,97'].map((cost) => `2026-09-01,"${cost}"`);
    expect(await spendOf('Day,Cost', ...mixed)).toMatch(thousands);
    expect(await spendOf('Day,Cost', '2026-09-01,"1,23,456"')).toMatch(/groups of two digits/);
    expect(await spendOf('Day,Avg. cost', '2026-09-01,5.5')).toBe(undefined);
    expect(await spendOf('Day,Spend (Microsoft)', '2026-09-01,5.5')).toBe(undefined);
    const parts = await loads.loadText(
      await loads.inFile(await suggested(of('1,204.50', '2'))),
      of('1,204', '0,1234', '28,9700'),
      money,
    );
    expect(parts.events).toEqual([['1204']]);
    expect(parts.rejected).toHaveLength(2);
  });

  test('of an example: as its file writes them, which a setting of its user decides', async () => {
    const header = 'Campaign,Campaign ID,Day,Device,Clicks,Impr.,Cost,Conversions';
    const file = table(header, [
      'C,c,2026-09-01,Computers,5,12,"28,97","1,00"',
      'C,c,2026-09-02,Computers,5,1.204,"1.028,97","1,50"',
    ]);
    const fields = 'toUInt32(impressions), toUInt32(conversions), toString(spend)';
    expect(await loaded(file, fields)).toMatchObject({
      events: [
        [12, 1, '28.97'],
        [1204, 2, '1028.97'],
      ],
      rejected: [],
    });
    // The example as it is refuses them.
    const {
      map: _,
      skip_lines: __,
      set: ___,
      ...example
    } = JSON.parse(await readFile('examples/google-ads.json', 'utf8'));
    const flags = await loads.inFile({ ...example, map: { event_time: 'Day' } });
    expect(await loads.loadText(flags, file, fields)).toMatchObject({ events: [] });
  });

  describe('cells that say that there is no number', () => {
    const fields = 'toUInt32(impressions), toUInt32(conversions), toString(spend)';
    const figures = (none: string) => ['"1,204",3,€5.50', `7,${none},${none}`, `8,2,${none}`];
    const events = [
      [7, 0, '0'],
      [8, 2, '0'],
      [1204, 3, '5.5'],
    ];
    const behind = (before: string, rows: readonly string[]) => rows.map((row) => `${before},${row}`);
    const plain = (none: string) =>
      table('Day,Campaign ID,Impr.,Conversions,Cost', behind('2026-09-01,c', figures(none)));
    /** Of an example, which rounds conversions, and reads thousands that the first records do not have. */
    const google = (none: string) => {
      const many = ['9,0.50,1', ...Array.from({ length: 200 }, () => '0,0,0'), '10,0,"1,204.50"'];
      return table(
        'Day,Campaign ID,Device,Clicks,Impr.,Conversions,Cost',
        behind('2026-09-01,c,Computers,0', [...figures(none), ...many]),
      );
    };
    /** Of one that rounds the column alone. */
    const microsoft = (some: string) => (none: string) =>
      table(
        'TimePeriod,CampaignId,DeviceType,Clicks,Impressions,Conversions,Spend',
        behind('9/13/2026,c,Computer,0', [`12,${some},5.5`, `7,${none},${none}`]),
      );
    const examples = [google, microsoft('3.00'), microsoft('2.50')];

    test('are read as 0, also through examples', async () => {
      const [first, ...others] = await Promise.all(examples.map((of) => loaded(of('--'), fields)));
      expect(first).toMatchObject({
        events: expect.arrayContaining([...events, [9, 1, '1'], [10, 0, '1204.5']]),
        rejected: [],
      });
      const read = [
        [7, 0, '0'],
        [12, 3, '5.5'],
      ];
      for (const each of others) expect(each).toMatchObject({ events: read, rejected: [] });
    });

    test.each(['--', ' --', '-', '—', 'N/A', 'null', '(not set)'])('may be %s', async (none) => {
      expect(await loaded(plain(none), fields)).toMatchObject({ events, rejected: [] });
      // Nothing else is suggested through examples than for the cells that are loaded above.
      for (const of of examples) {
        const [own, known] = await Promise.all([suggested(of(none)), suggested(of('--'))]);
        expect(JSON.stringify(own).replaceAll(`'${none}'`, "'--'")).toBe(JSON.stringify(known));
      }
      const whole = await suggested(table('Day,Clicks,Cost', ['2026-09-01,5,120', `2026-09-01,5,${none}`]));
      expect(whole.fill_in?.spend).toContain('may be parts of a unit');
    });
  });

  test('of an example: days that are written otherwise than there', async () => {
    const header = 'TimePeriod,CampaignId,DeviceType,Impressions,Clicks,Spend,Conversions';
    const { expressions, fill_in } = await suggested(
      table(header, ['9/13/2026 1:00:00 PM,c,Computer,5,1,0.5,0']),
    );
    expect(expressions).toMatchObject({
      event_time: "toString(parseDateTimeOrNull({TimePeriod}, '%c/%e/%Y %l:%i:%s %p', 'UTC'))",
    });
    expect(fill_in).toHaveProperty('timezone');
  });

  test('of an example without expressions: days and numbers that need some', async () => {
    const header = 'Date;Ad unit;Ad requests;Impressions;Clicks;Estimated earnings (EUR)';
    const rows = ['13.09.2026;a;9120;8841;61;1.020,63', '14.09.2026;a;9120;8841;61;20,50'];
    expect((await suggested(table(header, rows))).expressions).toMatchObject({
      event_time: "toDate(parseDateTimeOrNull({Date}, '%e.%c.%Y'))",
      revenue: expect.stringContaining('{Estimated earnings (EUR)}'),
    });
  });

  test.each([
    [['$5.00', '€5.00'], 'several currencies, $ and €'],
    [['1.204', '3.100'], 'may be thousands or a fraction'],
    [['1.2K', '3.1M'], 'is no plain number'],
    [Array.from({ length: 10 }, (_, n) => `${n + 1}0000`), '{Cost} / 1000000 if they are millionths'],
    [['6470280000', '0'], '{Cost} / 100 if they are cents'],
  ])('%j is asked for', async (costs, question) => {
    expect((await suggested(of(...costs))).fill_in).toMatchObject({
      spend: expect.stringContaining(question),
    });
  });

  test.each(['Impressions (000)', "Impr. ('000s)", 'Cost ($000)', 'Cost (k EUR)', 'Kosten (Tsd. €)'])(
    'thousands are asked for and not read as ones: %s',
    async (column) => {
      for (const written of ['1.2', '12']) {
        const { fill_in, map, expressions } = await suggested(
          table(`Day;Clicks;${column}`, [`2026-09-01;5;${written}`]),
        );
        expect(Object.values(fill_in ?? {}).join()).toContain(`{${column}} * 1000`);
        expect(JSON.stringify([map, expressions])).not.toContain(column);
      }
    },
  );

  test.each([
    [
      'Impressions (000);Cost (Tsd. €)',
      ['1,5;12,5', '0,001;1.204,50'],
      [
        [1, '1204500'],
        [1500, '12500'],
      ],
    ],
    [
      'Impressions;Cost (cents)',
      ['1500;1.250,5', '1;5'],
      [
        [1, '0.05'],
        [1500, '12.505'],
      ],
    ],
  ])(
    'the expressions that are shown for other units read what the file has: %s',
    async (names, rows, events) => {
      const text = table(
        `Day;${names}`,
        rows.map((row) => `2026-09-01;${row}`),
      );
      const { fill_in = {}, expressions, map, ...mapping } = await suggested(text);
      const shown = Object.fromEntries(
        Object.entries(fill_in).flatMap(([field, question]) => {
          const [, expression] = /as an expression, such as (.*?)(?:; or .*)?$/.exec(question) ?? [];
          return expression === undefined ? [] : [[field, expression]];
        }),
      );
      const flags = await loads.inFile({
        ...mapping,
        map: { ...map },
        expressions: { ...expressions, ...shown },
      });
      expect(await loads.loadText(flags, text, 'toUInt32(impressions), toString(spend)')).toMatchObject({
        events,
        rejected: [],
      });
    },
  );

  test.each(['Cost in millionths', 'Spend (millionths)'])('%s is no millions', async (column) => {
    const { fill_in, expressions } = await suggested(table(`Day,Clicks,${column}`, ['2026-09-01,5,550000']));
    const question = `${column} may be spend, revenue or neither: in expressions `;
    const [read] = (expressions?.spend ?? fill_in?.spend ?? '').replace(question, '').split(';');
    expect(read).toBe(`{${column}} / 1000000`);
  });

  test('amounts in cents are named as such; prices of a thousand are no amounts', async () => {
    const mapping = await suggested(table('Day,Clicks,fee_cents_total,CPM price', ['2026-09-01,5,120,3']));
    expect(mapping.fill_in?.spend).toBe(
      'fee_cents_total may be spend, revenue or neither: in expressions {fee_cents_total} / 100; or the same of revenue with --set spend=; or take this line out',
    );
    const asRevenue = { map: ['revenue=fee_cents_total'], set: ['spend='] };
    expect(await loads.refusal({ ...(await loads.inFile(mapping)), ...asRevenue })).not.toContain(
      'fill_in.spend',
    );
  });
});

describe('names and totals', () => {
  test('titles and groups of columns above their names, which may hold line ends', async () => {
    const report = [
      'Report,,,',
      '"From:","2026-09-01",,',
      'Dimensions,,Metrics,',
      'Day,"Campaign\nID",Clicks,Cost',
    ];
    expect(await suggested(table('# made by hand', [...report, '2026-09-01,c,5,0.5']))).toMatchObject({
      skip_lines: 4,
      map: { event_time: 'Day', campaign_id: 'Campaign\nID', referrals: 'Clicks', spend: 'Cost' },
    });
  });

  test.each(['', '#', '№'])(
    'numbers of rows whose column is called %j take nothing from the others',
    async (name) => {
      const text = table(`${name},Day,Clicks,%,Cost`, ['0,2026-09-01,5,3,0.5', '1,2026-09-02,6,3,0.5']);
      expect(await suggested(text)).toMatchObject({
        map: { event_time: 'Day', referrals: 'Clicks', spend: 'Cost' },
      });
      expect(await suggested(text)).not.toHaveProperty('where');
    },
  );

  test('names of groups are not taken for those of columns, where the cell over the key is empty', async () => {
    const groups = ',Time,Performance,Money';
    const record = ',2026-09-01,5,1.5';
    expect(await suggested(table(groups, ['Campaign ID,Day,Clicks,Cost', `c1${record}`]))).toMatchObject({
      skip_lines: 1,
      map: { campaign_id: 'Campaign ID', event_time: 'Day', referrals: 'Clicks', spend: 'Cost' },
    });
    const both = await suggested(table(groups, [',Day,Clicks,Cost', `0${record}`, `1${record}`]));
    expect(both).not.toHaveProperty('where');
    expect(both).not.toHaveProperty('map.event_time', 'Time');
  });

  test('a file without names whose cells look like some is read with --no-header, as its refusal says', async () => {
    const text = table('01-Sep-26,c1,mobile,mobile', ['02-Sep-26,c1,mobile,mobile']);
    await expect(suggested(text)).rejects.toThrow('column mobile appears twice (--no-header, or');
    expect(await suggested(text, 'csv', { header: false })).toMatchObject({
      header: false,
    });
  });

  test('days in a column without a name are read by its number', async () => {
    const text = table(',Clicks,Cost', ['2026-09-01,5,0.5', '2026-09-02,6,0.5']);
    expect(await suggested(text)).toMatchObject({ header: false, map: { event_time: '1' } });
  });

  test('a time is no name of a column', async () => {
    const log = table('2026-09-01T10:00:00Z,c1,click', ['2026-09-01T10:00:01Z,c2,view']);
    expect(await suggested(log)).toMatchObject({ header: false, map: { event_time: '1' } });
  });

  test('members of JSON by their last name, and names in braces', async () => {
    const record = { dim: { campaign_id: 'c', day: '2026-09-01' }, metrics: { clicks: 3, spend: '0.5' } };
    expect(await suggested(`${JSON.stringify(record)}\n`, 'ndjson')).toMatchObject({
      map: { campaign_id: 'dim.campaign_id', referrals: 'metrics.clicks', spend: 'metrics.spend' },
    });
    expect(await suggested(table('{created_at},{campaign_id}', ['1788221742,c']))).toMatchObject({
      map: { event_time: '{created_at}', campaign_id: '{campaign_id}' },
    });
  });

  test('types of events that are none of ours are asked for', async () => {
    const { fill_in, map } = await suggested(table('day,event_type', ['2026-09-01,imp', '2026-09-01,click']));
    expect(fill_in?.event_type).toContain("transform({event_type}, ['imp', 'click'], ['…', '…'], '')");
    expect(map).not.toHaveProperty('event_type');
  });

  test('totals beside a day are left out', async () => {
    const rows = ['2026-09-01,a,5', '2026-09-01,Subtotal,5', '2026-09-02,a,6', ',Total,11'];
    expect(await suggested(table('Day,Campaign,Clicks', rows))).toMatchObject({
      where: "{Day} NOT IN ('') AND {Campaign} NOT IN ('Subtotal')",
    });
  });

  test.each([
    ['Clicks', '50'],
    ['Clicks', '1.204'],
    ['Visits', '50'],
    ['Klicks', '50'],
    ['Anything', '50', 'no figure'],
  ])(
    'records without a day that are no totals are asked about: a pivot writes each day once: %s of %s',
    async (figure, some, no?: string) => {
      const rows = [`2026-09-01,a,${some}`, ',b,20', '2026-09-02,a,6', '2026-09-02,b,7', ',,'];
      const read = (total: string) =>
        suggested(table(`Day,Campaign ID,${figure}`, rows.with(1, `,b,${total}`)));
      for (const total of ['20', ...(no ? [some] : [])]) {
        const suggestion = await read(total);
        expect(suggestion.fill_in?.event_time).toMatch(/^Day is blank in records that are no totals/);
        expect(suggestion).not.toHaveProperty('where');
      }
      for (const total of no ? [] : [some, '13'])
        expect(await read(total)).toMatchObject({ where: "{Day} NOT IN ('')" });
    },
  );

  test('a note and a name of any length are looked at', async () => {
    const begun = process.cpuUsage();
    const name = `${'.'.repeat(60_000)} x`;
    expect(await suggested(table(`${name},Day,Clicks`, ['c,2026-09-01,5']))).toMatchObject({
      map: { event_time: 'Day', referrals: 'Clicks' },
    });
    const rows = ['2026-09-01,c,5', '2026-09-01,c,6', 'a'.repeat(60_000)];
    expect(await suggested(table('Day,Campaign ID,Clicks', rows))).toMatchObject({
      where: expect.stringMatching(/a{60000}/),
    });
    // How long it holds the process, in µs, however busy the machine is.
    expect(process.cpuUsage(begun).user).toBeLessThan(1_000_000);
  });

  test('attempts of a mediation may be requests', async () => {
    const { fill_in } = await suggested(table('Day,Ad Unit ID,Attempts,Impressions', ['2026-09-01,u,9,5']));
    expect(fill_in?.ad_requests).toMatch(/^Attempts may be ad_requests/);
  });

  test('lines about the report below its records are left out, and lines of records that lack cells are not', async () => {
    const below = [',c,d', 'Report Time:,2026/09/03', '© Theirs', '2026-09-04,c', 'Total %_ rows: 3'];
    const text = table('Date,Campaign ID,Device,Clicks', [
      ...['01', '02', '03'].map((day) => `2026-09-${day},c,d,2`),
      ...below,
    ]);
    const mapping = await loads.inFile(await suggested(text));
    const load = await loads.loadText(mapping, text.replace('rows: 3', 'rows: 4'), 'toUInt32(referrals)');
    expect(load).toMatchObject({ events: [[2], [2], [2]], leftOut: 3 });
    const rejected = [5, 8].map((line) =>
      expect.stringMatching(new RegExp(`^${line} .* as many cells as the header`)),
    );
    expect(load.rejected).toEqual(rejected);
  });

  test('sums of each day that no word tells are asked about: they were another campaign, and counted twice', async () => {
    const days = ['01', '02', '03', '04'].flatMap((day) =>
      [
        ['a', 50, 5, '1.5'],
        ['b', 31, 4, '"1,000.02"'],
        ['b', 20, 0, ''],
        ['-', 101, 9, '"1,001.51"'],
      ].map(([key, ...figures]) => `2026-09-${day},,${key},${figures.join(',')}`),
    );
    const inTable = (rows: readonly string[]) =>
      suggested(table('Day,Device,Campaign,Clicks,Conversions,Cost', rows));
    const asked = async (rows: readonly string[]) => (await inTable(rows)).fill_in?.where;
    const question =
      "records whose Campaign is '-' have each day the sums of all others: give where or --where, {Campaign} NOT IN ('-') if they are totals, else {Day} NOT IN ('')";
    // The first records end within a day.
    expect(await asked(days.slice(0, -2))).toBe(question);
    const lastFirst = [
      'Cost,Clicks,Conversions,Campaign,Day',
      ...days.map((row) => row.replace(/^(.*?),,(.*?),(.*?),(.*?),(.*)/, '$5,$3,$4,$2,$1')),
    ];
    expect((await suggested(`${lastFirst.join('\n')}\n`)).fill_in?.where).toBe(question);
    // One day, and one figure.
    expect(await asked(days.slice(0, 4))).toBe(question);
    const clicks = await suggested(
      table(
        'Day,Campaign,Clicks',
        ['a,50', 'b,31', 'b,20', '-,101'].map((row) => `2026-09-01,${row}`),
      ),
    );
    expect(clicks.fill_in?.where).toBe(question);
    // What has no sums beside it.
    for (const average of [
      'Coste medio',
      'Coût moyen',
      'Gem. kosten',
      'Ort. maliyet',
      'Śr. koszt',
      'Price',
      'Budget amount',
      'Taux d’impressions',
    ]) {
      const rows = days.map((row, n) => `${row},0.${n + 1}`);
      const beside = await suggested(table(`Day,Device,Campaign,Clicks,Conversions,Cost,${average}`, rows));
      expect(beside.fill_in?.where).toBe(question);
    }
    // Neither a fee with the clicks of all others, nor fewer of them.
    expect(await asked(days.map((row) => row.replace('1,001.51', '3.25')))).toBeUndefined();
    expect(await asked(days.map((row) => row.replace(',9,', ',8,')))).toBeUndefined();
    // Small numbers are alike by chance.
    expect(
      await asked(days.map((row) => row.replace(/\d*(\d),\d,([^,"]*|".*")$/, '$1,0,0'))),
    ).toBeUndefined();
    // Of two campaigns alike neither is the sum.
    const two = days.filter((_, n) => n % 4 < 2);
    expect(await asked(two.map((row) => row.replace(/\d+,\d,.*$/, '50,11,20')))).toBeUndefined();
    const known = [',a,50,5,20', ',a,30,5,20', ',b,80,10,40'];
    const twice = [1, 2, 3, 4].flatMap((day) => known.map((row) => `2026-09-0${day},${row}`));
    expect(await asked(twice)).toContain("Campaign is 'b'");
    expect(
      await asked(
        twice
          .map((row) => row.replace('b,80,10,40', 'b,40,5,20'))
          .flatMap((row) => (row.includes('b,') ? [row, row] : [row])),
      ),
    ).toBeUndefined();
    // Records whose device nobody knows are no totals, nor those of one device; and a condition stays.
    const withDevices = days.map((row) => row.replace(/,,([ab]),/, ',mobile,$1,'));
    expect(await asked(withDevices.map((row) => row.replace(',,-', ',tv,-')))).toBe(question);
    const items = await suggested(table('Day,Device,Item,Clicks,Conversions,Cost', withDevices));
    expect(items.fill_in?.where).toContain("Item is '-'");
    expect(await asked([...withDevices, ',,-,404,36,0'])).toBe(
      question.replace('{C', "{Day} NOT IN ('') AND {C"),
    );
    const { fill_in: _, ...mapping } = await inTable(days);
    const flags = await loads.inFile({ ...mapping, fill_in: { where: question } });
    expect(await loads.refusal(flags)).toContain(`fill_in.where: ${question}`);
    const text = table('Day,Device,Campaign,Clicks,Conversions,Cost', days);
    const load = await loads.loadText({ ...flags, where: "{Campaign} NOT IN ('-')" }, text, 'referrals');
    expect(load).toMatchObject({ leftOut: 4 });
  });

  test.each([
    'Tag;Kampagnen-ID;Einblendungen;Klicks;Kosten;CPC-Kosten',
    'Дата;№ Кампании;Показы;Клики;Расход (руб.);Ср. цена клика (руб.)',
    '日期;推广计划;展现;点击;消费;平均点击价格',
    'Datum;Campagne;Vertoningen;Klikken;Besteed bedrag;CPM',
    'Dia;ID da campanha;Impressões;Cliques;Valor usado (EUR);Valor de conversões',
    'Dia;Campanha;Impressões;Cliques;Custo;Custo médio',
    'Gün;Kampanya;Gösterim;Tıklamalar;Maliyet;Customers',
    'Gün;Kampanya;Gösterim;Tıklamalar;Harcanan Tutar (TRY);CPM',
    'Dzień;Kampania;Wyświetlenia;Kliknięcia;Wydana kwota (PLN);Koszt/konw.',
    'Dag;Kampanj;Visningar;Klick;Kostnad;Kostnad/konv.',
    '年月日;キャンペーン;表示回数;クリック;コスト;平均CPC',
    '日付;キャンペーン;インプレッション;クリック;消化金額;CPM',
    '时间;计划;曝光;点击;消耗;每次点击成本',
    '日期;计划;曝光;点击;总价;CPM',
  ])('columns that may be counts, money or campaigns, in other languages: %s', async (header) => {
    const { fill_in } = await suggested(table(header, ['2026-09-01;k;1\u00a0204;1;1\u00a0000,50 €;2']));
    const [, campaign, impressions, clicks, spend] = header.split(';');
    const asked = (column: string | undefined, what: string) =>
      expect.stringMatching(new RegExp(`^${column?.replace(/[().]/g, '\\$&')} may be ${what}`));
    expect(fill_in).toEqual({
      impressions: asked(impressions, 'impressions'),
      referrals: asked(clicks, 'referrals'),
      spend: asked(spend, 'spend'),
      campaign_id: asked(campaign, 'a campaign'),
      advertiser_id: expect.any(String),
    });
  });

  test('totals of a Google Ads export whose first column is the day are left out, not rejected', async () => {
    const figures = 'EUR,84,"1,204",6.98%,0.31,26.04,7.00';
    const report = table('Campaign report\n"September 1, 2026 - September 2, 2026"', [
      'Day,Campaign,Campaign ID,Device,Currency code,Clicks,Impr.,CTR,Avg. CPC,Cost,Conversions',
      `2026-09-01,Brand,1,Computers,${figures}`,
      `Total: Account,--,--,--,${figures}`,
    ]);
    expect(await loaded(report, 'impressions')).toMatchObject({ events: [[1204]], rejected: [] });
  });

  test.each([
    ['Impressionen;Ausgaben', 'Ausgaben'],
    ['Nombre total d’impressions;CPM;Total des revenus CPM et CPC', 'Total des revenus CPM et CPC'],
    ['Total de impresiones;Total de ingresos', 'Total de ingresos'],
    ['Impr.;Avg. cost;Cost / conv.;Importo speso', 'Importo speso'],
    ['Gösterim;Maliyet', 'Maliyet', '₺5,50'],
    ['Impr.;Purchase amount', 'Purchase amount', '$5,50'],
    ['Impr.;Order total', 'Order total', '$5,50'],
    ['Impr.;Order total', 'Order total'],
    ['Impr.;Sales orders', 'Sales orders'],
    ['Impr.;Kosten / Cost', 'Kosten / Cost'],
    ['Impr.;Cost w/ fees', 'Cost w/ fees'],
    ['Impr.;Revenue eCPM;Revenue eCPC (Adv Currency);Amount', 'Amount'],
  ])(
    'an amount is asked for, and no count or cost of one is taken for it: %s',
    async (names, amount, cell = '5,50') => {
      const cells = names.replace(/[^;]+$/, cell).replaceAll(/[^;]+(?=;)/g, '5,50');
      const { fill_in } = await suggested(
        table(`Day;Campaign ID;Clicks;${names}`, [`2026-09-01;c;7;${cells}`]),
      );
      expect(fill_in?.spend).toMatch(new RegExp(`^${amount} may be spend`));
      if (cell.startsWith('$')) expect(fill_in).not.toHaveProperty('conversions');
    },
  );

  test('prices, bids and budgets are no amounts, whatever sign they have', async () => {
    const text = table('Day,Campaign ID,Clicks,CPV,Bid,Budget,Maliyet', [
      '2026-09-01,c,5,₺1.5,₺2.5,₺9.5,₺5.5',
    ]);
    expect((await suggested(text)).fill_in?.spend).toMatch(/^Maliyet may be spend/);
  });

  test('the way that is shown is that of an amount by its name, before one by its sign', async () => {
    const text = table('Day,Campaign ID,Clicks,Bedrag,Amount', ['2026-09-01,c,5,€2.5,$1.5']);
    expect((await suggested(text)).fill_in?.spend).toMatch(
      /^Amount or Bedrag may be spend.*replaceRegexpAll\(\{Amount\}/,
    );
  });

  test('amounts called revenue are one question, whose answers fill in all of it', async () => {
    const text = table('Day,Campaign ID,Clicks,Media spend total,Revenue', ['2026-09-01,c,5,1.2,1.3']);
    const mapping = await suggested(text);
    expect(mapping.fill_in).toEqual({
      spend: expect.stringMatching(
        /^Revenue or Media spend total may be spend, revenue or neither.* --set spend=;/,
      ),
      advertiser_id: expect.any(String),
    });
    const answered = { map: ['revenue=Revenue'], set: ['spend=', 'advertiser_id=a'] };
    expect(await loads.refusal({ ...(await loads.inFile(mapping)), ...answered })).not.toContain('fill_in');
  });

  test('amounts of ad units are asked for as revenue', async () => {
    for (const column of ['Est. Revenue', 'Revenue']) {
      const text = table(`Day,Ad Unit ID,Impressions,${column}`, ['2026-09-01,u,7,5.5']);
      expect((await suggested(text)).fill_in).toEqual({
        revenue: `${column} may be revenue: --map revenue=…, or take this line out`,
        publisher_id: expect.any(String),
      });
    }
  });

  test.each([
    ['day,publisher_id,creative_id,tag_id,clicks', ['publisher_id'], { ad_unit_id: 'tag_id ' }],
    [
      'day,advertiser_id,creative_id,ad_unit_id,order_id,clicks',
      ['advertiser_id', 'creative_id', 'ad_unit_id'],
      { campaign_id: 'order_id ', publisher_id: '' },
    ],
    ['day,campaign_id,site_id,clicks', ['campaign_id'], { advertiser_id: '' }],
  ])(
    '%s: what is read beside an account is of a side that is asked for or known',
    async (header, read, asked) => {
      const { fill_in = {}, map = {} } = await suggested(
        table(header, [header.replace('day', '2026-09-01').replace('clicks', '5')]),
      );
      const { event_time: _, referrals: __, ...texts } = map;
      expect(Object.keys(texts).sort()).toEqual([...read].sort());
      expect(Object.keys(fill_in)).toEqual(Object.keys(asked));
      for (const [field, begin] of Object.entries(asked))
        expect(fill_in[field]?.startsWith(begin)).toBe(true);
    },
  );
});
