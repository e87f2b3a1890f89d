import { expect, test } from 'vitest';
import type { JudgedDay } from '../../ingest/history/low-day.ts';
import type { DataStatus } from '../../src/cli/store/data-status.ts';
import { describeStatus, formatBytes } from '../../src/cli/store/describe-status.ts';
import { nextSteps } from '../../src/cli/store/next-steps.ts';
import { months } from '../../src/cli/store/prune.ts';
import { s3Target } from '../../src/cli/store/s3-target.ts';
import { loadConfig } from '../../src/config/config.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { event, load } from '../support/events.ts';
import { environmentOf } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const run = useCommandRunners();

test('status tells what is stored and what to do next, also of a database that is not there yet', async () => {
  await load(db.store, [event({ event_time: '2026-02-01T00:00:00Z' }), event({ campaign_id: '' })]);
  const { code, stdout, stderr } = await run(['status', '--json'], environmentOf(db.address));
  expect(code, stderr).toBe(0);
  const status = JSON.parse(stdout);
  expect(status).toMatchObject({
    database: db.address.database,
    migrations: [],
    data: {
      events: 1,
      first_day: '2026-02-01',
      last_day: '2026-02-01',
      open: { rejectedRows: 1, chunksInDoubt: 0 },
    },
  });
  expect(status.next).toContain('correct rejected rows: adtally rejects lists them');
  const screen = describeStatus(status).split('\n');
  expect(screen.length).toBeLessThan(16);
  expect(screen.join('\n')).toMatch(/^data +1 event from 2026-02-01 to 2026-02-01, [\d.]+ kB in \d+ parts$/m);

  const env = { ...environmentOf(db.address), CLICKHOUSE_DATABASE: `${db.address.database}_new` };
  const fresh = await run(['status'], env);
  expect(fresh).toMatchObject({ code: 0, stdout: expect.stringMatching(/^next +adtally migrate: /m) });
  const forCron = await run(['status', '--next'], environmentOf(db.address));
  expect(forCron).toMatchObject({ code: 0, stdout: 'correct rejected rows: adtally rejects lists them\n' });
});

const wellStored: DataStatus = {
  timezone: 'UTC',
  today: '2026-11-20',
  events: 10,
  folded_rows: 0,
  first_day: '2026-11-01',
  last_day: '2026-11-19',
  size: { bytes: 1000, parts: 12, most_parts: 800 },
  closed: { months: 0, bytes: 0 },
  past: { events: 0, bytes: 0 },
  damaged: [],
  disk: { free: 15, total: 100 },
  loads: {
    loads: 1,
    rows: 10,
    bytes: 1000,
    rejected_rows: 0,
    failed: 0,
    running: 0,
    last_ended: '',
  },
  failing: { files: 0, file: '', load: '', times: 0, error: '' },
  followed: { files: 0, last_at: '', waited_seconds: 0 },
  longest: { seconds: 6 * 3600, load: '1', file: 'follow.ndjson' },
  last_events: '2026-11-19T00:00:00.000Z',
  low_day: [],
  open: { rejectedRows: 0, chunksInDoubt: 0, unconfirmedDays: 3 },
  unconfirmed: { oldest_day: '2026-11-01', oldest_account: 'acme' },
  interruptedUnloads: [],
  interruptedRewrites: [],
};
const { alerts } = loadConfig({});
const now = new Date('2026-11-20T02:00:00Z');
const judged: JudgedDay = {
  family: 'ad_units',
  measure: 'ad_requests',
  day: '2026-11-18',
  events: 400,
  usual: 1000,
  low: true,
  accounts: 0,
  missing: 0,
  lowest: [],
};
const lowest = [{ account: 'acme\n2', events: 1, usual: 300 }];

test.each<[what: string, change: Partial<DataStatus>, step: RegExp | undefined]>([
  ['all is well', {}, undefined],
  ['the disk is nearly full', { disk: { free: 14, total: 100 } }, /^make room on the disk: adtally prune/],
  [
    'a load was interrupted',
    { open: { ...wellStored.open, chunksInDoubt: 1 } },
    /^load the files of failed loads again/,
  ],
  [
    'a load fails each time',
    { failing: { files: 3, file: 'a.csv', load: '7', times: 4, error: 'no such column' } },
    /^load a\.csv again, once its cause is mended: it failed 4 times \(no such column\); or give it up: adtally unload 7 takes back what that load has stored, also where another file .*; 2 more files failed, too/,
  ],
  [
    'a replacement fails',
    { failing: { files: 1, file: 'a.csv --replaces 5', load: '7', times: 1, error: '' } },
    /^load a\.csv --replaces 5 again, once its cause is mended: it failed once; or give it up: adtally unload 7, if it has not begun to replace, takes back /,
  ],
  [
    'a body fails that came over HTTP',
    { failing: { files: 1, file: 'push from web-1', load: '7', times: 1, error: '' } },
    /^have the sender send the body again \(push from web-1\), once its cause is mended: it failed once; or give it up: adtally unload 7 takes back /,
  ],
  [
    'a replay fails',
    { failing: { files: 1, file: 'replay of 20261122120000-ab12', load: '7', times: 1, error: '' } },
    /^run adtally replay 20261122120000-ab12 FILE, with its corrected rows, once its cause is mended: it failed once; or give it up: adtally unload 7 takes back /,
  ],
  [
    'a load hangs',
    { longest: { seconds: 7.5 * 3600, load: '7', file: 'b.csv' } },
    /^look after load 7 of b\.csv, under way for 7 hours: if it hangs, stop it and run the same command again$/,
  ],
  [
    'no events came for longer than the operator expects',
    { last_events: '2026-11-18T23:00:00.000Z' },
    /^see why no events have come for 27 hours: /,
  ],
  [
    'the network had few events on a day',
    { low_day: [judged] },
    /^see whether files of 2026-11-18 are missing: 400 instead of 1,000 ad requests of ad units$/,
  ],
  [
    'an account had few events on a day',
    { low_day: [{ ...judged, low: false, accounts: 2, lowest }] },
    /2026-11-18 are missing: too few events of accounts; accounts: acme\\u000a2 \(1 instead of 300 ad requests\) and more$/,
  ],
  [
    'money stays unconfirmed for long',
    { unconfirmed: { oldest_day: '2026-09-20', oldest_account: 'acme' } },
    /^confirm old days: of 3 unconfirmed days the oldest is 2026-09-20, of account acme: adtally confirm/,
  ],
  [
    'an unload was interrupted',
    {
      open: { ...wellStored.open, chunksInDoubt: 2 },
      interruptedUnloads: [{ load: '20261120-1', chunks: 2 }],
    },
    /^take load 20261120-1 back: .* adtally unload 20261120-1 completes it$/,
  ],
  [
    'a change of reports was interrupted',
    { interruptedRewrites: ['2026-03', '2026-04'] },
    /^complete what was interrupted in 2026-03, 2026-04: run the same command again, or adtally rebuild; /,
  ],
  ['a month has many parts', { size: { ...wellStored.size, most_parts: 801 } }, /too many parts$/],
  ['rows are rejected', { open: { ...wellStored.open, rejectedRows: 2 } }, /adtally rejects lists them$/],
  ['nothing is loaded', { events: 0 }, /^load events: adtally ingest events FILE$/],
])('when %s, status says what to do', (_, change, step) => {
  const steps = nextSteps({ ...wellStored, ...change }, alerts, now);
  expect(steps).toEqual(step ? [expect.stringMatching(step)] : []);
});

test('prune and close go by the clock of ClickHouse, and not by that of the machine where they run', async () => {
  const now = new Date();
  const [month, before] = [0, 1].map((ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  );
  await load(db.store, [event({ event_time: now.toISOString(), advertiser_id: 'now', confirmed: true })]);
  const ahead = `const Real = Date; const years = 10 * 365 * 86400000;
    globalThis.Date = class extends Real {
      constructor(...given) { if (given.length) super(...given); else super(Real.now() + years); }
      static now() { return Real.now() + years; }
    };`;
  const env = {
    ...environmentOf(db.address),
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(ahead)}`,
  };
  const pruned = await run(['prune', '--keep', '1mo', '--dry-run'], env);
  expect(pruned).toMatchObject({ code: 0, stderr: expect.stringContaining(`before ${before}-01`) });
  const closed = await run(['close', 'now', month ?? ''], env);
  expect(closed).toMatchObject({ code: 1, stderr: expect.stringContaining('the month has not ended') });
});

test('of several things status says the most urgent first', () => {
  const open = { rejectedRows: 1, chunksInDoubt: 1, unconfirmedDays: 0 };
  const steps = nextSteps({ ...wellStored, disk: { free: 1, total: 100 }, open }, alerts, now);
  expect(steps.map((step) => step.split(' ')[0])).toEqual(['make', 'load', 'correct']);
  expect(nextSteps(undefined, alerts, now)).toEqual([expect.stringContaining('adtally migrate')]);
});

test.each([
  ['25mo', 25],
  ['3y', 36],
])('--keep %s is %i months', (text, expected) => {
  expect(months(text)).toBe(expected);
});

test.each(['25', '0mo', '2.5y', '1m', ''])('--keep "%s" is refused', (text) => {
  expect(() => months(text)).toThrow('25mo or 3y');
});

test('a backup in S3 is named as the tools of AWS name it, and its keys are in no message', () => {
  const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: "se'cret" };
  expect(s3Target('s3://bucket/a/b', { AWS_REGION: 'eu-west-1', ...keys })).toEqual({
    target: "S3('https://bucket.s3.eu-west-1.amazonaws.com/a/b', 'id', 'se\\'cret')",
    name: 's3://bucket/a/b',
  });
  expect(s3Target('s3://bucket/a', { AWS_ENDPOINT_URL: 'http://minio:9000/' })?.target).toBe(
    "S3('http://minio:9000/bucket/a')",
  );
  // Compose sets what is not there to nothing.
  const empty = { AWS_ENDPOINT_URL_S3: '', AWS_REGION: '', AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' };
  expect(s3Target('s3://bucket/a', { ...empty, AWS_ENDPOINT_URL: 'http://minio:9000' })?.target).toBe(
    "S3('http://minio:9000/bucket/a')",
  );
  expect(s3Target('s3://bucket/a', { ...empty, AWS_DEFAULT_REGION: 'eu-west-1' })?.target).toBe(
    "S3('https://bucket.s3.eu-west-1.amazonaws.com/a')",
  );
  // No certificate of AWS holds for a host with these dots, and China has a domain of its own.
  expect(s3Target('s3://my.bucket/a', { AWS_REGION: 'cn-north-1' })?.target).toBe(
    "S3('https://s3.cn-north-1.amazonaws.com.cn/my.bucket/a')",
  );
  expect(s3Target('2026-11-20.tar.zst', keys)).toBeUndefined();
  expect(() => s3Target('s3://bucket', keys)).toThrow('s3://BUCKET/PATH');
  for (const one of [{ AWS_ACCESS_KEY_ID: 'id' }, { AWS_SECRET_ACCESS_KEY: 'secret' }])
    expect(() => s3Target('s3://bucket/a', one)).toThrow('go together');
  expect(() => s3Target('s3://bucket/a', { ...keys, AWS_SESSION_TOKEN: 't' })).toThrow('AWS_SESSION_TOKEN');
});

test('bytes are told in units that people read', () => {
  expect([0, 999, 1000, 84_123_456, 5e15].map(formatBytes)).toEqual([
    '0 B',
    '999 B',
    '1.0 kB',
    '84.1 MB',
    '5.0 PB',
  ]);
});
