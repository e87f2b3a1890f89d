import { describe, expect, test } from 'vitest';
import { useLoader } from '../../support/loader.ts';
import { useStore } from '../../support/store.ts';

/** What a load says although nothing is rejected. The days of reports are those of New York. */
const db = useStore('America/New_York');
const { own, ...loader } = useLoader(db);

const columns = ['event_time', 'advertiser_id', 'campaign_id', 'impressions'];
const table = (...times: readonly string[]) =>
  [columns, ...times.map((time, n) => [time, own.account, `c${n}`, '1'])]
    .map((row) => `${row.join(',')}\n`)
    .join('');
const warnings = async (file: string, ...flags: string[]) => {
  const { code, stderr } = await loader.ingest(...flags, file);
  expect(code, stderr).toBe(0);
  return stderr.split('\n').filter((line) => line.startsWith('warning: '));
};

describe('days that are written as midnight', () => {
  test('of another zone than that of reports are said, with the zone to name', async () => {
    const path = await loader.file('e.csv', table('2019-06-30 00:00:00', '2019-07-01 00:00:00'));
    expect(await warnings(path, '--dry-run')).toEqual([
      expect.stringMatching(
        /all times are 00:00:00 in UTC.* days: load the file with --timezone America\/New_York/,
      ),
    ]);
    const [warning, ...more] = await warnings(path);
    expect(warning).toContain(`${path}: all times are 00:00:00 in UTC`);
    expect(warning).toContain('--timezone America/New_York');
    expect(more).toEqual([]);
    const named = await loader.file('named.csv', table('2019-06-30 00:00:00'));
    expect(await warnings(named, '--timezone', 'America/New_York')).toEqual([]);
    const other = await loader.file('other.csv', table('2019-01-30 00:00:00', '2019-07-30 00:00:00'));
    expect(await warnings(other, '--timezone', 'Asia/Tokyo')).toEqual([
      expect.stringContaining('00:00:00 in Asia/Tokyo'),
    ]);
  });

  test('are not said beside a time, in another chunk either, or where they are days alone', async () => {
    const days = await loader.file('days.csv', table('2019-06-30', '2019-07-01'));
    expect(await warnings(days)).toEqual([]);
    const times = Array.from({ length: 40 }, () => '2019-06-30 00:00:00');
    const path = await loader.file('times.csv', table(...times, '2019-06-30 10:00:00'));
    for (const flags of [['--dry-run'], []]) {
      expect(await warnings(path, '--chunk-bytes', '300', ...flags)).toEqual([]);
    }
    const all = await loader.file('all.csv', table('2019-08-30 00:00:00', ...times));
    expect(await warnings(all, '--chunk-bytes', '300')).toHaveLength(1);
  });
});

test('days in the future and before 2000 are counted, also by a dry run', async () => {
  const now = new Date().toISOString();
  const tomorrow = `${new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)} 12:00:00`;
  const path = await loader.file(
    'e.csv',
    table('2094-03-01 12:00:00', '1999-12-31T12:00:00Z', '1980-01-01 01:00:00', now, tomorrow),
  );
  for (const flags of [['--dry-run'], []]) {
    expect(await warnings(path, ...flags)).toEqual([
      expect.stringMatching(
        /e\.csv: days of events are hardly right: 1 in the future, 2 before 2000\..*--map event_time/,
      ),
    ]);
  }
  expect(
    await warnings(await loader.file('right.csv', table(now, '2000-01-01T12:00:00Z', tomorrow))),
  ).toEqual([]);
});

describe('an amount that is read because of its name', () => {
  const text = (separator: string) =>
    [
      ['Day', 'campaign_id', 'Impr', 'revenue'],
      ['2026-03-01', 'c', '1', '99'],
    ]
      .map((row) => `${row.join(separator)}\n`)
      .join('');
  const flags = () => [
    ...['--ignore-unknown', '--map=event_time=Day', '--map=impressions=Impr'],
    `--set=advertiser_id=${own.account}`,
  ];

  test.each([
    ['csv', () => text(',')],
    ['ndjson', () => '{"Day":"2026-03-01","campaign_id":"c","Impr":1,"revenue":99}\n'],
  ])('is named once, until the mapping names it: %s', async (ending, content) => {
    const file = (name: string) => loader.file(`${name}.${ending}`, content());
    expect(await warnings(await file('a'), ...flags())).toEqual([
      expect.stringMatching(/column revenue is read because.*--map revenue=revenue.*--set revenue=0/),
    ]);
    expect(await warnings(await file('b'), ...flags(), '--again', '--set=revenue=0')).toEqual([]);
    // Read on purpose it is money of a publisher, and there is none.
    expect(await warnings(await file('b'), ...flags(), '--again', '--map=revenue=revenue')).toEqual([
      expect.stringMatching(/revenue is read and no publisher_id, so no report shows it. Is it spend\?/),
    ]);
    const empty = await file('b');
    expect(await warnings(empty, ...flags(), '--again', '--set=revenue=')).toEqual([]);
    const publisher = ['--set=publisher_id=p', '--set=ad_unit_id=u', '--map=revenue=revenue'];
    expect(await warnings(await file('c'), ...flags(), '--again', ...publisher)).toEqual([]);
  });

  test('is none in a file of the own columns, or where unknown ones are refused', async () => {
    const ours = [
      [...columns, 'revenue'],
      ['2026-03-01', own.account, 'c', '1', '5'],
    ]
      .map((row) => `${row.join(',')}\n`)
      .join('');
    expect(
      await warnings(await loader.file('own.csv', ours), '--ignore-unknown', '--set', 'device=tv'),
    ).toEqual([]);
  });
});

test('the first ten rejected rows are those of the order of the files, whichever chunk ends first', async () => {
  const bad = (n: number) => (n % 3 === 0 ? 'never' : '2026-03-01T12:00:00Z');
  const files = await Promise.all(
    [4, 60].map((count) => {
      const times = Array.from({ length: count }, (_, n) => bad(n));
      return loader.file(`e${count}.csv`, table(...times).replace(/,c(?=\d)/g, `,c${count}-`));
    }),
  );
  const { stderr } = await loader.ingest('--chunk-bytes', '200', ...files);
  const said = stderr
    .split('\n')
    .flatMap((line) => /^rejected: .*\/(e\d+)\.csv line (\d+)/.exec(line)?.slice(1).join(' ') ?? []);
  expect(said).toEqual([...['e4 2', 'e4 5'], ...[2, 5, 8, 11, 14, 17, 20, 23].map((line) => `e60 ${line}`)]);
});
