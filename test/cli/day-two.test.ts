import { expect, test } from 'vitest';
import { type DataStatus, describeStatus, formatBytes } from '../../src/cli/store/describe-status.ts';
import { nextSteps } from '../../src/cli/store/next-steps.ts';
import { months } from '../../src/cli/store/prune.ts';
import { s3Target } from '../../src/cli/store/s3-target.ts';
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
});

const wellStored: DataStatus = {
  timezone: 'UTC',
  today: '2026-11-20',
  events: 10,
  first_day: '2026-11-01',
  last_day: '2026-11-19',
  size: { bytes: 1000, parts: 12, most_parts: 800 },
  disk: { free: 15, total: 100 },
  loads: {
    loads: 1,
    rows: 10,
    bytes: 1000,
    rejected_rows: 0,
    failed: 0,
    failed_file: '',
    running: 0,
    last_ended: '',
  },
  open: { rejectedRows: 0, chunksInDoubt: 0, unconfirmedDays: 3 },
};

test.each<[what: string, change: Partial<DataStatus>, step: RegExp | undefined]>([
  ['all is well', {}, undefined],
  ['the disk is nearly full', { disk: { free: 14, total: 100 } }, /^make room on the disk: adtally prune/],
  [
    'a load was interrupted',
    { open: { ...wellStored.open, chunksInDoubt: 1 } },
    /^load interrupted files again: adtally verify/,
  ],
  [
    'a load failed',
    { loads: { ...wellStored.loads, failed_file: 'a.csv' } },
    /^load a\.csv again: adtally loads/,
  ],
  ['a month has many parts', { size: { ...wellStored.size, most_parts: 801 } }, /too many parts$/],
  ['rows are rejected', { open: { ...wellStored.open, rejectedRows: 2 } }, /adtally rejects lists them$/],
  ['nothing is loaded', { events: 0 }, /^load events: adtally ingest events FILE$/],
])('when %s, status says what to do', (_, change, step) => {
  const steps = nextSteps([], { ...wellStored, ...change });
  expect(steps).toEqual(step ? [expect.stringMatching(step)] : []);
});

test('of several things status says the most urgent first', () => {
  const open = { rejectedRows: 1, chunksInDoubt: 1, unconfirmedDays: 0 };
  const steps = nextSteps([], { ...wellStored, disk: { free: 1, total: 100 }, open });
  expect(steps.map((step) => step.split(' ')[0])).toEqual(['make', 'load', 'correct']);
  expect(nextSteps('newer', undefined)).toEqual([expect.stringContaining('update adtally')]);
  expect(nextSteps(['0017_changes'], undefined)).toEqual([expect.stringContaining('adtally migrate')]);
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
  expect(s3Target('2026-11-20.tar.zst', keys)).toBeUndefined();
  expect(() => s3Target('s3://bucket', keys)).toThrow('s3://BUCKET/PATH');
  expect(() => s3Target('s3://bucket/a', { AWS_ACCESS_KEY_ID: 'id' })).toThrow('AWS_SECRET_ACCESS_KEY');
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
