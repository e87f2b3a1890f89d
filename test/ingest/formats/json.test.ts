import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { useLoader } from '../../support/loader.ts';
import { useMappedLoads } from '../../support/mapped-loads.ts';

/** JSON as programs and APIs write it. */
const { db, loadText, inFile } = useMappedLoads();
const { own, ...loader } = useLoader(db);

const record = (impressions: number, more: object = {}) => ({
  ...{ event_time: '2026-09-01', impressions, creative_id: `x${impressions}` },
  ...more,
});
const impressions = 'toUInt32(impressions)';
const loadJson = (text: string | Buffer, flags = {}, fields = impressions) =>
  loadText(flags, text, fields, 'json');

const notJson = 'the record is not JSON that can be read; put numbers beyond 64 bits in quotes';

test('a number beyond 64 bits is rejected with what to do, and in quotes it is read', async () => {
  const reads = { set: ['creative_id='], map: ['device=trace'] };
  const big = ['18446744073709551616', '-9223372036854775809', '1e400'];
  const line = (trace: string) => `{"event_time":"2026-09-01","impressions":1,"trace":${trace}}`;
  const text = [...big, ...big.map((each) => `"${each}"`), '18446744073709551615'].map(line).join('\n');
  const { events, rejected } = await loadJson(text, reads, 'device');
  expect(rejected).toEqual([1, 2, 3].map((n) => `${n}  ${notJson}`));
  expect(events.flat().toSorted()).toEqual([...big, '18446744073709551615'].toSorted());
});

describe('an array of records', () => {
  const records = [record(1), record(2, { creative_id: '[{"}],' }), record(4, { device: 'ü夏' }), record(8)];

  test.each([
    ['a record a line', `[\n${records.map((each) => JSON.stringify(each)).join(',\n')}\n]\n`],
    ['with CRLF', JSON.stringify(records, null, 2).replaceAll('\n', '\r\n')],
    ['with CR', JSON.stringify(records, null, 2).replaceAll('\n', '\r')],
    ['in UTF-16', Buffer.from(`\ufeff${JSON.stringify(records, null, '\t')}`, 'utf16le')],
    ['behind a byte order mark', `\ufeff${JSON.stringify(records)}`],
    ['behind one, with CR', `\ufeff${JSON.stringify(records, null, 2).replaceAll('\n', '\r')}`],
    ['packed', gzipSync(JSON.stringify(records))],
  ])('%s', async (_, text) => {
    const { events, rejected } = await loadJson(text, {}, `${impressions}, creative_id, device`);
    expect({ events, rejected }).toEqual({
      events: [
        [1, 'x1', 'unknown'],
        [2, '[{"}],', 'unknown'],
        [4, 'x4', 'ü夏'],
        [8, 'x8', 'unknown'],
      ],
      rejected: [],
    });
  });

  test('without records is no failure', async () => {
    expect(await loadJson('[ ]\n')).toEqual({ events: [], rejected: [], leftOut: 0 });
  });

  test('elements that are no events are rejected by their number', async () => {
    const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`;
    const bad = ['7', '[{}]', '{"x":"a\nb"}', deep, '{"impressions":1 "b":2}', JSON.stringify(record(-1))];
    const { events, rejected } = await loadJson(`[\n  ${[...bad, JSON.stringify(record(3))].join(',\n  ')}]`);
    expect(events).toEqual([[3]]);
    expect(rejected).toEqual([
      '1  the record is not a JSON object',
      '2  the record is not a JSON object',
      ...[3, 4, 5].map((n) => `${n}  ${notJson}`),
      expect.stringContaining('6 impressions must be a whole number'),
    ]);
  });

  test('a record is called a record in what is said of it', async () => {
    const path = await loader.file('e.json', JSON.stringify([record(1), record(-1)]));
    const set = ['--set', `advertiser_id=${own.account}`, '--set', 'campaign_id=c'];
    expect((await loader.ingest(...set, path)).stderr).toContain(`${path} record 2: impressions must be`);
  });

  test('that ends too early is not loaded, and counts once when it is whole', async () => {
    const whole = JSON.stringify(
      Array.from({ length: 300 }, (_, n) => ({ ...record(n), advertiser_id: own.account })),
    );
    const set = ['--set', 'campaign_id=c'];
    const path = await loader.file('e.json', whole.slice(0, -1));
    // Chunks before the end may have been stored.
    for (const chunks of [[], ['--chunk-bytes', '4000']]) {
      const { code, stderr } = await loader.ingest(...set, ...chunks, path);
      expect(code).toBe(1);
      expect(stderr).toContain(
        `${path}: the JSON ends too early, behind or within record 300: it is truncated`,
      );
    }
    await loader.file('e.json', whole);
    const { rows, repeated_rows } = JSON.parse((await loader.ingest(...set, path)).stdout);
    expect(rows + repeated_rows).toBe(300);
    expect(await loader.counted()).toBe(300);
  });
});

describe('an answer of an API', () => {
  const answer = {
    data: [
      {
        campaign: '1',
        impressions: '120',
        actions: [{ type: 'click', value: '7' }],
        date_start: '2026-09-01',
      },
      { campaign: '1', impressions: '80', date_start: '2026-09-01' },
    ],
    paging: { cursors: { before: 'a', after: 'b' } },
  };
  const map = ['event_time=date_start'];

  test('its records are those of the array that is named, by a flag or in the mapping', async () => {
    const flags = { map, ignoreUnknown: true };
    for (const text of [JSON.stringify(answer), JSON.stringify(answer, null, 2)]) {
      const loaded = { events: [[80], [120]], rejected: [], leftOut: 0 };
      expect(await loadJson(text, { ...flags, records: 'data' })).toEqual(loaded);
      expect(await loadJson(text, { ...flags, ...(await inFile({ records: 'data' })) })).toEqual(loaded);
      const within = `{"report":{"rows":${text},"x":1}}`;
      expect(await loadJson(within, { ...flags, records: 'report.rows.data' })).toEqual(loaded);
    }
  });

  test.each([
    ['over several lines', JSON.stringify(answer, null, 2), '--records data'],
    [
      'on one line',
      '{"data":[{"day":1}]}',
      'the first record has nothing that an event is read from, but an array (--records data, or "records": "data" in a mapping, reads its elements)',
    ],
    [
      'behind a byte order mark, with CR line ends',
      `\ufeff${JSON.stringify(answer, null, 2).replaceAll('\n', '\r')}`,
      '--records data',
    ],
    [
      'that begins with other members',
      JSON.stringify({ next: { a: [] }, ...answer }, null, 1),
      '--records data',
    ],
    ['that is no answer', JSON.stringify(record(1), null, 2), 'Write one record a line'],
  ])('%s, without a name, is refused with it', async (_, text, advice) => {
    await expect(loadJson(text, { map })).rejects.toThrow(advice);
  });

  test('a first line that is cut off spoils itself and no other', async () => {
    const lines = [JSON.stringify(record(1)), JSON.stringify(record(2))];
    for (const cut of ['{"impressions":3,', '{"tags":["a"],"impressions":3,', '{"event_time":"2026']) {
      const { events, rejected } = await loadJson([cut, ...lines].join('\n'));
      expect({ events, rejected }).toEqual({
        events: [[1], [2]],
        rejected: [`1  ${notJson}`],
      });
    }
  });

  test('a path without a name in it is refused', async () => {
    await expect(loadJson('{}', { records: 'a..b' })).rejects.toThrow('--records: give the names of members');
  });
});

describe('members of members', () => {
  const nested = (impressions: number, more: object = {}) => ({
    ts: 1767225600123,
    campaign: { id: `c${impressions}` },
    imp: impressions,
    price: { amount: 0.0123, currency: 'USD' },
    tags: ['a', { name: 'b' }],
    ...more,
  });
  const map = ['event_time=ts', 'creative_id=campaign.id', 'impressions=imp'];
  const lines = (...records: readonly object[]) =>
    records.map((each) => `${JSON.stringify(each)}\n`).join('');
  const load = (text: string, flags: object) => loadText(flags, text, fields, 'ndjson');
  const fields = `${impressions}, creative_id, toString(spend), device`;

  test('are columns by their path, in map, expressions and where; a number is a place in a list', async () => {
    const file = await inFile({
      map: { event_time: 'ts', impressions: 'imp', creative_id: 'campaign.id', device: 'tags.1.name' },
      expressions: { spend: '{price.amount} * 2' },
      where: "{price.currency} = 'USD'",
    });
    const other = nested(8, { price: { amount: 1, currency: 'EUR' } });
    // A text of JSON is no object, an object no list, and what is not there is empty.
    const odd = nested(2, { campaign: '{"id":"x"}', tags: { 0: {}, 1: { name: 'c' } } });
    const { events, rejected, leftOut } = await load(lines(nested(1), odd, other), {
      ...file,
      ignoreUnknown: true,
    });
    expect({ events, rejected, leftOut }).toEqual({
      events: [
        [1, 'c1', '0.0246', 'b'],
        [2, '', '0.0246', 'unknown'],
      ],
      rejected: [],
      leftOut: 1,
    });
  });

  test('what is read from within an object is no unknown member; a key with a dot comes first', async () => {
    const flat = { ts: 1767225600123, imp: 4, 'campaign.id': 'flat', campaign: { id: 'deep' } };
    const { events, rejected } = await load(lines(flat, nested(1, { price: undefined, tags: undefined })), {
      map,
    });
    expect({ events, rejected }).toEqual({
      events: [
        [1, 'c1', '0', 'unknown'],
        [4, 'flat', '0', 'unknown'],
      ],
      rejected: [],
    });
  });

  test('a number that begins a path is the name of a member, for a record is no list', async () => {
    const flags = { map: [...map, 'spend=0.cost'], ignoreUnknown: true };
    const costs = lines(nested(1, { '0.cost': 0.5 }), nested(2, { 0: { cost: 0.25 } }));
    expect((await load(costs, flags)).events).toEqual([
      [1, 'c1', '0.5', 'unknown'],
      [2, 'c2', '0.25', 'unknown'],
    ]);
  });

  test('money keeps its digits, and an object is no text', async () => {
    const long = '{"ts":1767225600123,"imp":1,"campaign":{"id":"x"},"price":{"amount":123456789012.123456}}';
    const other = '{"ts":1767225600123,"imp":2,"campaign":{"id":{}},"price":{"amount":1}}';
    const twice =
      '{"ts":1767225600123,"imp":3,"amount":1.5,"campaign":{},"price":{"amount":123456789012.123456}}';
    const flags = { map: [...map, 'spend=price.amount'], ignoreUnknown: true };
    expect(await load([long, other, twice, ''].join('\n'), flags)).toMatchObject({
      events: [[1, 'x', '123456789012.123456', 'unknown']],
      rejected: [
        expect.stringContaining('2 creative_id must be text, not an object or a list'),
        expect.stringContaining('3 spend has more digits than a JSON number keeps'),
      ],
    });
  });

  test('an expression takes the digits of its own member, and of no other of that name', async () => {
    const noise = 'spend must be computed from numbers, and {price.amount} is no number';
    const file = await inFile({
      map: { event_time: 'ts', impressions: 'imp', creative_id: 'campaign.id' },
      expressions: { spend: '{price.amount} * 2' },
    });
    const other = (n: number, amount: string) =>
      `{"ts":1767225600123,"imp":${n},"budget":{"amount":100},"price":{"amount":${amount}}}`;
    const own = '{"ts":1767225600123,"imp":3,"campaign":{"id":"x"},"price":{"amount":123456789012.123456}}';
    const text = [other(1, '12.34'), other(2, '12.340000000000002'), own, ''].join('\n');
    expect(await load(text, { ...file, ignoreUnknown: true })).toEqual({
      events: [
        [1, '', '24.68', 'unknown'],
        [3, 'x', '246913578024.246912', 'unknown'],
      ],
      rejected: [`2 ${noise}`],
      leftOut: 0,
    });
    const where = { ...(await inFile({ where: '{price.amount} > 50' })), map, ignoreUnknown: true };
    expect(await load(text, where)).toEqual({
      events: [[3, 'x', '0', 'unknown']],
      rejected: [`2  where${noise.slice(5)}`],
      leftOut: 1,
    });
  });

  test('an id of an expression is made of the digits of its own member, and of no other of that name', async () => {
    const file = await inFile({
      map: { event_time: 'ts', impressions: 'imp' },
      expressions: { creative_id: "concat('u', {made.at})" },
    });
    const text = [
      '{"ts":1767225600123,"imp":1,"made":{"at":1767225600.123}}',
      '{"ts":1767225600123,"imp":2,"at":5,"made":{"at":1767225600.123}}',
      '',
    ].join('\n');
    expect(await load(text, { ...file, ignoreUnknown: true })).toEqual({
      events: [[1, 'u1767225600.123', '0', 'unknown']],
      rejected: [expect.stringContaining('2 creative_id cannot be computed from {made.at}, or ')],
      leftOut: 0,
    });
  });

  test('a long number in a list is not taken for nothing in an expression', async () => {
    const file = await inFile({ expressions: { spend: '{costs.0} * 1' } });
    const costs = lines(nested(1, { costs: [0.5] }), nested(2, { costs: [12.340000000000002] }));
    expect(await load(costs, { ...file, map, ignoreUnknown: true })).toEqual({
      events: [[1, 'c1', '0.5', 'unknown']],
      rejected: ['2 spend must be computed from numbers, and {costs.0} is no number'],
      leftOut: 0,
    });
  });

  test.each([
    [
      'campain.id',
      'campaign.id',
      /--map creative_id: no record of .*\.ndjson has campain\.id; did you mean campaign\.id\?/,
    ],
    ['Imp', 'imp', /no record of .* has Imp; did you mean imp\?/],
    ['price.currency.x', '', /no record of .* has price\.currency\.x; did you mean price\.currency\?/],
  ])('a column that no record has is refused: %s', async (name, _, message) => {
    const text = lines(nested(1), nested(2));
    const flags = { map: ['event_time=ts', 'impressions=imp', `creative_id=${name}`], ignoreUnknown: true };
    await expect(load(text, flags)).rejects.toThrow(message);
  });

  test('one that a mapping file calls optional is not', async () => {
    const mapping = await loader.file(
      'm.json',
      JSON.stringify({ map: { event_time: 'ts', impressions: 'imp', spend: 'cost' }, optional: ['cost'] }),
    );
    const text = lines(nested(1), nested(2));
    const path = await loader.file('e.ndjson', text);
    const { code, stderr } = await loader.ingest('--mapping', mapping, '--ignore-unknown', '--dry-run', path);
    expect(code, stderr).not.toBe(2);
    expect(stderr).not.toContain('no record of');
    await expect(load(text, { map: [...map, 'spend=cost'], ignoreUnknown: true })).rejects.toThrow(
      /has cost\. If a file may be without it, say so in a mapping file: "optional": \["cost"\]$/,
    );
  });

  test('one that some record has is not, however it is written', async () => {
    const flags = { map: [...map, 'device=Gerät/x'], ignoreUnknown: true };
    for (const key of ['"Gerät/x"', '"Ger\\u00e4t/x"', '"Gerät\\/x"']) {
      const text = `${lines(nested(1), nested(2)).slice(0, -2)},${key}:"tv"}`;
      expect((await load(text, flags)).events.map((event) => event[3])).toEqual(['unknown', 'tv']);
    }
  });

  test('in a file of several chunks one that no record has is a warning, and the rest of the mapping holds', async () => {
    const records = Array.from({ length: 5_000 }, (_, n) => ({
      ...record(1),
      advertiser_id: own.account,
      campaign_id: `c${n}`,
    }));
    const path = await loader.file('e.ndjson', lines(...records).replaceAll('{', `{${' '.repeat(1_000)}`));
    const { stderr, stdout } = await loader.ingest('--map', 'spend=Cost', '--chunk-bytes', '1200000', path);
    expect(stderr).toContain(`warning: --map spend: no record of ${path} has Cost`);
    expect(JSON.parse(stdout)).toMatchObject({ rows: 5_000 });
  });

  test('unknown members of a record are named together, and what there is once', async () => {
    const bad = { ...record(1), advertiser_id: own.account, campaign_id: 'c', ctr: 1, cpc: 2 };
    const { stderr } = await loader.ingest(await loader.file('e.ndjson', lines(bad, bad, bad)));
    expect(stderr).toContain(
      'line 3: ctr, cpc is not a field of an event (--ignore-unknown, or "ignore_unknown": true in a mapping, leaves it out)\n',
    );
    expect(stderr.match(/advertiser_id/g)).toHaveLength(1);
  });
});
