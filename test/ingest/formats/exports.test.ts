import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { useMappedLoads } from '../../support/mapped-loads.ts';

/** Files as sheets, ad platforms and databases write them. */
const { db, loadText } = useMappedLoads();

describe('TSV', () => {
  const header = 'event_time\tcreative_id\timpressions';
  const table = (...cells: readonly string[]) =>
    `${[header, ...cells.map((cell, n) => `2026-09-01\t${cell}\t${2 ** n}`)].join('\n')}\n`;
  const creatives = 'toUInt32(impressions), creative_id';

  test('a backslash is a backslash; a cell in quotes may hold tabs and line ends', async () => {
    const cells = ['C:\\temp\\new', 'ads\\banner', '50\\50', '"a\tb\nc"', 'say "hi"', '\\N'];
    const { events, rejected } = await loadText({}, table(...cells), creatives, 'tsv');
    const stored = ['C:\\temp\\new', 'ads\\banner', '50\\50', 'a\tb\nc', 'say "hi"', ''];
    expect({ events, rejected }).toEqual({ events: stored.map((text, n) => [2 ** n, text]), rejected: [] });
  });

  test('of a database: escapes, and quotes that mean nothing', async () => {
    const cells = ['C:\\\\temp', 'a\\tb\\nc', '"open', '\\N', 'x\\qy', 'a\\Nb', '"\\N"', '\\x41'];
    const { events, rejected } = await loadText({ escapes: true }, table(...cells), creatives, 'tsv');
    const stored = ['C:\\temp', 'a\tb\nc', '"open', ''];
    expect(events).toEqual(stored.map((text, n) => [2 ** n, text]));
    const reason = 'a backslash in the record begins no escape of a dump';
    expect(rejected).toEqual([6, 7, 8, 9].map((line) => `${line}  ${reason}`));
  });

  test('escapes of ClickHouse: as it writes every character, and \\0 is a NUL', async () => {
    const characters = String.fromCharCode(...Array.from({ length: 127 }, (_, n) => n + 1));
    const { stream } = await db.store.exec({
      query: "SELECT {text:String}, 'it\\'s', '\\'', '\\\\\\'\\\\', 'a\\0b' FORMAT TabSeparated",
      query_params: { text: characters },
    });
    const [all = '', ...cells] = (await text(stream)).trimEnd().split('\t');
    const { events, rejected } = await loadText(
      { escapes: true },
      table(all, ...cells, '\\"\\v\\\\v\\\\0', '\\0', '\\\\\\q'),
      creatives,
      'tsv',
    );
    const stored = [characters, "it's", "'", "\\'\\", undefined, '"\v\\v\\0'];
    expect(events).toEqual(stored.flatMap((each, n) => (each === undefined ? [] : [[2 ** n, each]])));
    expect(rejected).toEqual([
      '6  the record holds a NUL byte',
      '8  the record holds a NUL byte',
      '9  a backslash in the record begins no escape of a dump',
    ]);
  });

  test.each([
    ['|', 'csv'],
    ['\t', 'tsv'],
  ])(
    'escapes of MySQL between %s: of the delimiter itself, behind others, in a row',
    async (delimiter, ending) => {
      const d = `\\${delimiter}`;
      const [, ...lines] = table('a\\nb', `x${d}${d}y`, `x\\\\`, `\\\\${d}`, '"\u0001"').split('\n');
      const dump = lines.join('\n').replaceAll('\t', delimiter);
      const bare = { header: false, map: ['event_time=1', 'creative_id=2', 'impressions=3'] };
      const stored = ['a\nb', `x${delimiter}${delimiter}y`, 'x\\', `\\${delimiter}`, '"\u0001"'];
      expect(await loadText({ escapes: true, delimiter, ...bare }, dump, creatives, ending)).toMatchObject({
        events: stored.map((text, n) => [2 ** n, text]),
        rejected: [],
      });
    },
  );
});

describe.each([
  [',', 'csv'],
  ['\t', 'tsv'],
])('line ends in quotes, between cells %j', (delimiter, ending) => {
  const table = (...rows: readonly (readonly string[])[]) =>
    rows.map((row) => `${row.join(delimiter)}\r\n`).join('');
  const fields = 'toUInt32(impressions), toString(spend)';

  test('in the name of a column, as Excel writes them', async () => {
    const header = ['event_time', '"Spend\n""net"" (USD)"', '"impressions"'];
    const text = table(header, ['2026-09-01', '0.5', '1'], ['2026-09-01', 'x', '2']);
    const { events, rejected } = await loadText({ map: ['spend=Spend\n"net" (USD)'] }, text, fields, ending);
    expect(events).toEqual([[1, '0.5']]);
    expect(rejected).toEqual([expect.stringMatching(/^4 spend must be/)]);
  });

  test('in the first record of a file without a header', async () => {
    const text = table(['2026-09-01', '"a\n\nb"', '1'], ['2026-09-01', 'c', 'x'], ['2026-09-01', 'd', '2']);
    const flags = { header: false, map: ['event_time=1', 'creative_id=2', 'impressions=3'] };
    const { events, rejected } = await loadText(flags, text, 'toUInt32(impressions), creative_id', ending);
    expect(events).toEqual([
      [1, 'a\n\nb'],
      [2, 'd'],
    ]);
    expect(rejected).toEqual([expect.stringMatching(/^4 impressions must be/)]);
  });
});
