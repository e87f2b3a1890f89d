import { ClickHouseError } from '@clickhouse/client';
import { describe, expect, test } from 'vitest';
import type { Store } from '../../../clickhouse/client.ts';
import { mappingFingerprint } from '../../../ingest/event/mapping.ts';
import { type MappingFlags, readMapping } from '../../../ingest/mapping/read-mapping.ts';
import { validateMapping } from '../../../ingest/mapping/validate-mapping.ts';
import { useMappedLoads } from '../../support/mapped-loads.ts';

const { db, loadText, inFile, refusal } = useMappedLoads();
const day = 'event_time=Day';

test.each([
  ['timezone', 'Europe/Vienna'],
  ['expressions', { spend: '{Cost} / 100' }],
])('what ClickHouse says of itself is nothing against a mapping: its %s', async (member, value) => {
  const content = JSON.stringify({ map: { event_time: 'Day' }, [member]: value });
  const spec = await readMapping({ mapping: { name: 'shop.json', content } });
  let asked = 0;
  /** Judges the mapping while statement `failing` fails. */
  const valid = (failing: number, error?: ClickHouseError) => {
    asked = 0;
    const each = <T>(ask: () => Promise<T>) => (++asked === failing ? Promise.reject(error) : ask());
    const store = {
      query: (query: Parameters<Store['query']>[0]) => each(() => db.store.query(query)),
      exec: (query: Parameters<Store['exec']>[0]) => each(() => db.store.exec(query)),
    };
    return validateMapping(store as Store, spec);
  };
  await valid(0);
  const statements = asked;
  const memory = { message: '(total) memory limit exceeded', code: '241' };
  for (const type of ['MEMORY_LIMIT_EXCEEDED', 'ABORTED', 'QUERY_WAS_CANCELLED']) {
    const error = new ClickHouseError({ ...memory, type });
    for (let failing = 1; failing <= statements; failing++)
      await expect(valid(failing, error), `statement ${failing}`).rejects.toBe(error);
  }
});

describe('fields from columns and constants', () => {
  test('columns of other names, constants, and columns of the same name', async () => {
    const flags = { map: [day, 'spend=Cost, net', 'impressions=Impr.'], set: ['device=tv'] };
    const text = 'Day,"Cost, net",Impr.,clicks,conversions\n2026-03-01,1.5,10,3,2\n';
    const fields =
      'toString(event_time), toString(spend), toUInt32(impressions), toUInt32(referrals), toUInt32(conversions), device';
    expect((await loadText({ ...flags, ignoreUnknown: true }, text, fields)).events).toEqual([
      ['2026-03-01 00:00:00.000', '1.5', 10, 0, 2, 'tv'],
    ]);
  });

  test.each([
    ['csv', 'Day,"Impr. ""all"""\n2026-03-01,7\n'],
    ['tsv', 'Day\tImpr. "all"\n2026-03-01\t7\n'],
    ['ndjson', '{"Day":"2026-03-01","Impr. \\"all\\"":7}\n'],
  ])('of %s', async (ending, text) => {
    const flags = { map: [day, 'impressions=Impr. "all"'] };
    const { events } = await loadText(flags, text, 'toDate(event_time), toUInt32(impressions)', ending);
    expect(events).toEqual([['2026-03-01', 7]]);
  });

  test('a column that nothing reads is named, unless unknown ones are left out', async () => {
    const text = 'Day,impressions,CTR\n2026-03-01,7,0.1\n';
    await expect(loadText({ map: [day] }, text, '1')).rejects.toThrow(
      /column CTR is not a field of an event \(--suggest, or a mapping, tells what is meant\); there are event_id, .* \(--ignore-unknown, or "ignore_unknown": true in a mapping, leaves it out\)$/,
    );
    expect((await loadText({ map: [day], ignoreUnknown: true }, text, '1')).events).toEqual([[1]]);
    const ended = 'Day,impressions\n2026-03-01,7,\n';
    expect((await loadText({ map: [day] }, ended, '1')).events).toEqual([[1]]);
    const empty = text.replace(',CTR', ',,').replace(',0.1', ',0.1,');
    expect((await loadText({ map: [day], ignoreUnknown: true }, empty, '1')).events).toEqual([[1]]);
    const nameless = text.replace(',CTR', ',');
    await expect(loadText({ map: [day] }, nameless, '1')).rejects.toThrow(
      ': column (without a name) is not a field of an event',
    );
    await expect(loadText({ map: [day] }, text.replace(',CTR', ',CTR,'), '1')).rejects.toThrow(
      ': columns CTR, (without a name) are not fields of an event',
    );
    const many = Array.from({ length: 30 }, (_, n) => `c${n}`).join(',');
    await expect(loadText({ map: [day] }, text.replace('CTR', many), '1')).rejects.toThrow(
      ', c18, c19, … are not fields of an event',
    );
    await expect(loadText({ map: [day] }, text.replace('CTR', 'c'.repeat(200)), '1')).rejects.toThrow(
      `: column ${'c'.repeat(100)}… is not a field of an event`,
    );
    // Blanks would not be seen, and the rest would clear the screen.
    await expect(loadText({ map: [day] }, text.replace(',CTR', ', CTR,"\x1b[2J\nCTR"'), '1')).rejects.toThrow(
      ': columns " CTR", "\\u001b[2J\\nCTR" are not fields of an event',
    );
    await expect(loadText({ map: [day] }, text.replace('CTR', 'C\u202eT\u200bR\x9b'), '1')).rejects.toThrow(
      ': column "C\\u202eT\\u200bR\\u009b" is not a field of an event',
    );
  });

  test('a first line that nobody meant is refused at once', async () => {
    await expect(loadText({ map: [day] }, `Day${','.repeat(2 << 20)}\n1\n`, '1')).rejects.toThrow(
      ': the first line has over 1048576 characters; is the format right?',
    );
    const escaped = `${'\\'.repeat(300_000)},${'\\,'.repeat(10)}\n1\n`;
    await expect(loadText({ map: [day], escapes: true }, escaped, '1')).rejects.toThrow(
      /there is no column Day; .* has \\{100}…, (\\,){10}$/,
    );
  });

  test('another delimiter, no header, lines before the first', async () => {
    const flags = { delimiter: ';', header: false, skipLines: 2, map: ['event_time=1', 'impressions=3'] };
    const text = 'Report\n"of two; days"\n2026-03-01;x;7\n2026-03-02;"y;z";8\n';
    const { events, rejected } = await loadText(flags, text, 'toDate(event_time), toUInt32(impressions)');
    expect({ events, rejected }).toEqual({
      events: [
        ['2026-03-01', 7],
        ['2026-03-02', 8],
      ],
      rejected: [],
    });
  });

  test('times that name no zone are in that of the mapping, through both changes of the clock', async () => {
    const text = [
      't,impressions',
      '2026-03-29 01:59:59,1',
      '2026-03-29 03:00:00,1',
      '2026-10-25 12:00:00,1',
      '2026-10-25T12:00:00Z,1',
      '',
    ].join('\n');
    const { events } = await loadText(
      { map: ['event_time=t'], timezone: 'Europe/Berlin' },
      text,
      'toString(event_time)',
    );
    expect(events.flat()).toEqual([
      '2026-03-29 00:59:59.000',
      '2026-03-29 01:00:00.000',
      '2026-10-25 11:00:00.000',
      '2026-10-25 12:00:00.000',
    ]);
  });
});

describe('refused before anything is sent', () => {
  test.each<[unknown, string]>([
    ['{"map": {"spend": "A",}}', 'ads.json: is not JSON'],
    [[], 'ads.json: must be a JSON object with map, set, expressions, where, events, timezone'],
    [{ maps: {} }, 'ads.json: maps is no member of a mapping; there are map, set, expressions'],
    [{ map: { cost: 'Cost' } }, 'ads.json: map.cost: cost is no field of an event; there are event_id'],
    [{ map: { spend: 5 } }, 'ads.json: map.spend must be text'],
    [{ map: { spend: '' } }, 'ads.json: map.spend is empty: leave it out'],
    [
      { map: { spend: 'A' }, set: { spend: '1' } },
      'ads.json: set.spend: ads.json: map.spend says it already',
    ],
    ['{"map": {"spend": "A", "spend": "B"}}', 'ads.json: spend stands there twice'],
    [
      { fill_in: { spend: 'which column?', campaign_id: 'whose?' } },
      'ads.json: fill_in.spend: which column?\nads.json: fill_in.campaign_id: whose?',
    ],
    [
      { set: { spend: '1,5' } },
      'ads.json: set.spend: must be a decimal number with at most 12 digits before the point, not "1,5"',
    ],
    [{ set: { device: 'x'.repeat(33) } }, 'ads.json: set.device: must be at most 32 characters'],
    [{ timezone: 'Europe/Wien' }, 'ads.json: timezone: Europe/Wien is no IANA time zone'],
    [{ timezone: "x'); DROP" }, 'is no IANA time zone'],
    [{ delimiter: ';;' }, 'ads.json: delimiter: ";;" cannot separate cells'],
    [{ skip_lines: 1.5 }, 'ads.json: skip_lines must be a whole number from 0'],
    [{ header: 'no' }, 'ads.json: header must be true or false'],
  ])('a mapping file: %j', async (mapping, message) => {
    expect(await refusal(await inFile(mapping, 'ads.json'))).toContain(message);
  });

  test('flags: what they say, and twice', async () => {
    expect(await refusal({ map: ['spend'] })).toBe('--map spend: give field=column');
    expect(await refusal({ set: ['=x'] })).toBe('--set =x: give field=constant');
    expect(await refusal({ map: ['cost=Cost'] })).toContain('--map cost: cost is no field of an event');
    expect(await refusal({ map: ['spend=A', 'spend=B'] })).toContain(
      '--map spend: --map spend says it already',
    );
    expect(await refusal({ set: ['event_time=46327'] })).toContain('--set event_time: must be a date-time');
    expect(await refusal({ set: ['event_time=46327'], dates: 'excel' })).toBe('nothing');
    expect(await refusal({ timezone: 'Mars' })).toContain('--timezone: Mars is no IANA time zone');
    expect(await refusal({ mapping: '/nowhere/none.json' })).toContain('none.json: there is no such file');
  });

  test('columns that the file has not', async () => {
    const mapping = await inFile({ expressions: { spend: '{Cost micro} / 100' } }, 'ads.json');
    const text = 'event_time,Cost micros,impressions\n';
    await expect(loadText(mapping, text, '1')).rejects.toThrow(
      /^ads.json: expressions.spend: there is no column Cost micro; .*\.csv has event_time, Cost micros, impressions; did you mean Cost micros\?$/,
    );
    await expect(loadText(mapping, 'event_time,Cost micro ,impressions\n', '1')).rejects.toThrow(
      /there is no column Cost micro; .*\.csv has event_time, "Cost micro ", impressions; did you mean "Cost micro "\?$/,
    );
  });
});

test('flags win over the file', async () => {
  const file = await inFile({
    map: { spend: 'A', revenue: 'B' },
    timezone: 'UTC',
    delimiter: ';',
    header: false,
  });
  const spec = await readMapping({ ...file, set: ['spend=1'], timezone: 'Asia/Tokyo', delimiter: '\\t' });
  expect(spec).toMatchObject({ timezone: { name: 'Asia/Tokyo' }, delimiter: '\t', header: false });
  expect([...spec.sources].map(([field, { kind }]) => [field, kind])).toEqual([
    ['spend', 'constant'],
    ['revenue', 'column'],
  ]);
});

test('the fingerprint is of what decides the events, however it was said', async () => {
  const print = async (flags: MappingFlags) => mappingFingerprint(await readMapping(flags));
  expect(await print({ map: ['spend=spend'], timezone: 'UTC', ignoreUnknown: true, roundMoney: true })).toBe(
    '',
  );
  const ways = [
    { map: ['spend=A', 'revenue=B'], set: ['device=tv'] },
    { map: ['revenue=B', 'spend=A'], set: ['device=tv'] },
    { ...(await inFile({ set: { device: 'tv' }, map: { revenue: 'B', spend: 'A' } })), ignoreUnknown: true },
  ];
  expect(new Set(await Promise.all(ways.map(print))).size).toBe(1);
  const others = [
    {},
    { map: ['spend=A'] },
    { set: ['spend=A'] },
    await inFile({ expressions: { spend: 'A' } }),
    { timezone: 'Asia/Tokyo' },
    { delimiter: ';' },
    { header: false },
  ];
  expect(new Set(await Promise.all(others.map(print))).size).toBe(others.length);
});
