import { expect, test } from 'vitest';
import { defaultMapping } from '../../../ingest/event/mapping.ts';
import { mappedReading } from '../../../ingest/event/reading.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { replay } from '../../../ingest/replay/replay.ts';
import { useLoadedFiles } from '../../support/loaded-files.ts';
import { useStore } from '../../support/store.ts';

// Each was once read wrongly, refused or lost. Packed files, CR and UTF-16 are in input-loads.test.ts.
const db = useStore();
const { load, events, rejects, loader } = useLoadedFiles(db);

const time = '2026-01-31T12:00:00Z';
const header = 'event_id,event_time,event_type,advertiser_id,campaign_id';
const row = (id: string, more = '') => `${id},${time},impression,X,C${more}`;

const line = (id: string, more: object) =>
  JSON.stringify({
    ...{ event_id: id, event_time: time, event_type: 'impression', advertiser_id: 'X', campaign_id: 'C' },
    ...more,
  });

test('rejected rows of a load with --ignore-unknown can be corrected and replayed as NDJSON', async () => {
  const lines = [line('a', { foo: 1 }), line('b', { event_type: 'click', foo: 1 })];
  const reading = mappedReading('u.ndjson', { ...defaultMapping, ignoreUnknown: true });
  const loaded = await load('u.ndjson', lines.join('\n'), { reading });
  expect(loaded).toMatchObject({ rows: 1, rejectedRows: 1 });
  const id = loaded.loadId ?? '';
  const { stdout } = await loader.run(['rejects', id, '--json']);
  const corrected = await loader.file('corrected.ndjson', stdout.replaceAll('"click"', '"referral"'));
  const replayed = await replay(db.store, id, new LocalFile(corrected), () => new Date());
  expect(replayed).toMatchObject({ replayed: 1, faulty: [] });
});

test('rejected rows that are open make every run of their file end with 4, also one that has nothing to do', async () => {
  const path = await loader.file('r.ndjson', [line('r0', {}), line('r1', { foo: 1 })].join('\n'));
  expect((await loader.ingest(path)).code).toBe(4);
  for (const flags of [[], ['--ignore-unknown']]) {
    const again = await loader.ingest(...flags, path);
    expect(again.code).toBe(4);
    expect(again.stderr).toMatch(/1 row rejected before waits.*\nnothing to do/);
  }
});

test('a dry run with --dedupe tells what would be left out', async () => {
  await load('dry.csv', `${header}\n${row('dry-1')}\n`);
  const content = `${header}\n${row('dry-2')}\n${row('dry-1')}\n`;
  const options = { dedupe: true, dryRun: true };
  expect(await load('longer.csv', content, options)).toMatchObject({ rows: 1, duplicateRows: 1 });
  expect(await load('dry.csv', undefined, { dryRun: true })).toMatchObject({ rows: 0, repeatedRows: 1 });
});

test('a year of zeros is no year, and not this one', async () => {
  const times = ['0000-01-01 00:00:00', '0000-01-01', '0000-00-00 00:00:00', '0001-01-01T00:00:00Z'];
  const table = [header, ...times.map((at, n) => row(`y${n}`).replace(time, at))].join('\n');
  expect(await load('y.csv', table)).toMatchObject({ rows: 0, rejectedRows: 4 });
});

test('--round-money does not round to an amount that is too large', async () => {
  const amounts = ['0.1234565', '-0.1234565', '999999999999.9999995', '999999999999.9999994'];
  const table = [`${header},spend`, ...amounts.map((amount, n) => row(`m${n}`, `,${amount}`)), ''];
  const loaded = await load('m.csv', table.join('\n'), { roundMoney: true });
  const spent = (await events(loaded)).map(({ spend }) => spend);
  expect(spent).toEqual(['0.123457', '-0.123457', '999999999999.999999']);
  expect(await rejects(loaded)).toMatchObject([{ line: 4, fields: ['spend'] }]);
});
