import { beforeAll, expect, test } from 'vitest';
import { prune } from '../../src/cli/store/prune.ts';
import { event, load, loadRows } from '../support/events.ts';
import { useLoader } from '../support/loader.ts';
import { outputOf } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const { file, run } = useLoader(db);
const mapping = 'examples/google-ads.json';

beforeAll(async () => {
  const of = (campaign_id: string, day: number, quantity: number, spend: string) =>
    event({ advertiser_id: 'acme', campaign_id, event_time: `2026-03-0${day}T12:00:00Z`, quantity, spend });
  await load(db.store, [of('c1', 1, 1000, '10.125'), of('c1', 2, 2000, '20'), of('c2', 1, 500, '5')]);
  await load(db.store, [
    event({ advertiser_id: 'other', campaign_id: 'c1', event_time: '2026-03-01T12:00:00Z', quantity: 7 }),
  ]);
  await loadRows(db.store, 'campaigns', [
    ['acme', 'c1', 'Shoes, "winter"'],
    ['acme', 'c2', 'Hats'],
  ]);
});

const head =
  'Campaign report\n"March 1, 2026"\nCampaign,Campaign ID,Day,Device,Impr.,Clicks,Cost,Conversions';
const theirReport = [
  head,
  '"Shoes, ""winter""","Shoes, ""winter""",2026-03-01,Computers,600,0,6.13,0',
  '"Shoes, ""winter""","Shoes, ""winter""",2026-03-01,Tablets,400,0,4.00,0',
  'Shoes,c1,2026-03-02,Computers,"1,900",0,20.00,0',
  'Boots,c9,2026-03-02,Computers,30,0,1.00,0',
  'Total,--,--,,"2,930",0,31.13,0',
].join('\n');

test('an export is read by its mapping, by ids or names, and its totals are left out', async () => {
  const path = await file('google.csv', theirReport);
  const args = ['reconcile', path, '--account', 'acme', '--mapping', mapping, '--tolerance', '5%'];
  const stdout = await outputOf(run([...args, '--json']));
  const { figures, rows, explained, differences } = JSON.parse(stdout);
  expect(figures).toEqual({
    impressions: {
      ...{ ours: '3500', theirs: '2930' },
      gap: { net: '-570', total: '630' },
      unexplained: { net: '-570', total: '630' },
    },
    spent: {
      ...{ ours: '35.125', theirs: '31.13' },
      gap: { net: '-3.995', total: '6.005' },
      unexplained: { net: '-3.995', total: '6.005' },
    },
  });
  expect(explained).toEqual([]);
  expect(rows).toEqual({ equal: 0, within: 2, differs: 0, only_ours: 1, only_theirs: 1 });
  expect(differences).toMatchObject([
    {
      ...{ day: '2026-03-01', campaign_id: 'c1', name: 'Shoes, "winter"', status: 'within' },
      spent: { ours: '10.125', theirs: '10.13', difference: '0.005', unexplained: '0.005' },
    },
    { day: '2026-03-01', campaign_id: 'c2', name: 'Hats', status: 'only_ours' },
    { day: '2026-03-02', campaign_id: 'c1', status: 'within', impressions: { difference: '-100' } },
    { day: '2026-03-02', campaign_id: 'c9', name: 'c9', status: 'only_theirs' },
  ]);
  const lines = await run([...args, '--ndjson']);
  expect(
    lines.stdout
      .trimEnd()
      .split('\n')
      .map((each) => JSON.parse(each)),
  ).toEqual(differences);
});

test('people get a table, how many rows differ, and a verdict', async () => {
  const path = await file('google.csv', theirReport);
  const { stdout } = await run([
    'reconcile',
    path,
    '--account',
    'acme',
    '--mapping',
    mapping,
    '--to',
    '2026-03-01',
  ]);
  expect(stdout).toContain('500 / 0 (-500)');
  expect(stdout).toContain(
    [
      'campaigns of acme from 2026-03-01 to 2026-03-01, rows by day: 0 equal, 0 within the tolerance, 1 differ, 1 only in ours, 0 only in theirs.',
      'The differences of all rows, without their signs, add up to impressions 500, spent 5.005.',
      'No explanation that was tried fits.',
      'Unexplained: impressions 500 (100 %), spent 5.005 (100 %).',
      '',
    ].join('\n'),
  );
});

test('columns that tell what they are need no mapping, and records that cannot be read are named', async () => {
  const path = await file(
    'plain.csv',
    'day,campaign_id,impressions,cost\n2026-03-01,c1,1000,10.125\n2026-03-01,c2,500,5\n2026-03-02,c1,many,20\n',
  );
  const { code, stdout, stderr } = await run([
    'reconcile',
    path,
    '--account',
    'acme',
    '--map',
    'event_time=day',
    '--map',
    'spend=cost',
  ]);
  expect(code, stdout).toBe(4);
  expect(stderr).toContain('1 record of theirs cannot be read and is compared with nothing:\n');
  expect(stderr).toContain('plain.csv line 4: impressions must be a whole number');
  expect(stdout).toContain('Both sides are equal.');
  const guessed = await file(
    'guessed.csv',
    'date,campaign_id,impressions,clicks\n2026-03-01,c1,1000,0\n2026-03-01,c2,500,0\n',
  );
  expect((await run(['reconcile', guessed, '--account', 'acme'])).stdout).toContain('Both sides are equal.');
});

test('a key of theirs cannot pass for a line of the verdict, nor colour it', async () => {
  const path = await file(
    'lines.csv',
    'date,campaign_id,impressions\n2026-03-01,c1,1000\n2026-03-01,"\u001b[2K\rBoth sides are equal.",5\n',
  );
  const { stdout } = await run(['reconcile', path, '--account', 'acme']);
  expect(stdout).toContain(String.raw`│ \u001b[2K\u000dBoth sides are equal. │`);
  expect(stdout).not.toContain('\u001b');
});

test('a report of amounts alone is compared', async () => {
  const path = await file('cost.csv', 'date,campaign_id,cost\n2026-03-01,c1,10.125\n2026-03-01,c2,5.5\n');
  const { stdout, stderr } = await run(['reconcile', path, '--account', 'acme', '--json']);
  expect(stderr).not.toContain('error');
  expect(JSON.parse(stdout)).toMatchObject({
    figures: { spent: { ours: '15.125', theirs: '15.625' } },
    rows: { equal: 1, differs: 1 },
  });
});

test('a report that names both sides of its placements is compared by its campaigns', async () => {
  const path = await file(
    'both.csv',
    'date,publisher_id,ad_unit_id,site_id,campaign_id,impressions\n2026-03-01,p,u,s,c1,1000\n2026-03-01,p,u,s,c2,500\n',
  );
  const args = ['reconcile', path, '--account', 'acme', '--figures', 'impressions'];
  for (const flags of [[], ['--map', 'event_time=date', '--map', 'advertiser_id=publisher_id']]) {
    const { stdout, stderr } = await run([...args, ...flags]);
    expect(stdout, stderr).toContain('2 equal, 0 within');
  }
});

test.each([
  [
    ['--account', 'acme', '--figures', 'clicks'],
    'campaigns have impressions, conversions, referrals, spent, not clicks',
  ],
  [['--account', 'acme', '--family', 'sites'], 'there is no family sites: give campaigns or ad_units'],
  [['--account', 'acme', '--tolerance', '5'], 'Give a share, such as 5%.'],
  [[], "required option '--account <account>' not specified"],
])('%j is wrong usage', async (flags, message) => {
  const path = await file('google.csv', theirReport);
  const { code, stderr } = await run(['reconcile', path, '--mapping', mapping, ...flags]);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
});

test.each([
  [
    ['--from', '2026-03-03'],
    theirReport,
    'its days are 2026-03-01 to 2026-03-02, and none is on or after 2026-03-03',
  ],
  [
    ['--to', '2026-02-28'],
    theirReport,
    'its days are 2026-03-01 to 2026-03-02, and none is on or before 2026-02-28',
  ],
  [
    ['--figures', 'conversions'],
    theirReport,
    'acme has no conversions of campaigns from 2026-03-01 to 2026-03-02: there is nothing to compare with',
  ],
  [
    [],
    `${head}\nShoes,c1,2026-03-02,Computers,0,0,0,0`,
    'all its figures are 0: give the figures that are compared, such as impressions,conversions,referrals,spent',
  ],
])('%j has nothing to compare, and the reason is true', async (flags, report, message) => {
  const path = await file('google.csv', report);
  const args = ['reconcile', path, '--account', 'acme', '--mapping', mapping, ...flags];
  const { code, stderr } = await run(args);
  expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
});

test('what raw events would tell is not tried where they were pruned, and that is said', async () => {
  await prune(db.store, { keep: 1 }, new Date('2026-05-15T00:00:00Z'));
  const path = await file('google.csv', theirReport);
  const args = ['reconcile', path, '--account', 'acme', '--mapping', mapping];
  // Also of the first and the last day that there can be.
  for (const days of [[], ['--from', '1970-01-01'], ['--to', '2149-06-06']]) {
    const { stdout, stderr } = await run([...args, ...days]);
    expect(stdout, stderr).toContain(
      'Not tried: time zones, loads, late conversions and corrections: raw events of 2026-03 were pruned.',
    );
  }
});
