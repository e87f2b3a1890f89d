import { writeFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { defaultMapping } from '../../../ingest/event/mapping.ts';
import { mappedReading } from '../../../ingest/event/reading.ts';
import { writeRejects } from '../../../ingest/history/load-history.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { replay } from '../../../ingest/replay/replay.ts';
import { useLoadedFiles } from '../../support/loaded-files.ts';
import { useStore } from '../../support/store.ts';

// Each was once read wrongly, refused or lost. Packed files, CR and UTF-16 are in input-loads.test.ts.
const db = useStore();
const files = useLoadedFiles(db);
const { load, events, rejects, loader } = files;

const time = '2026-01-31T12:00:00Z';
const header = 'event_id,event_time,event_type,advertiser_id,campaign_id';
const row = (id: string, more = '') => `${id},${time},impression,X,C${more}`;
const lines = (count: number, from = 0) => Array.from({ length: count }, (_, n) => row(`e${from + n}`));
const counts = { rejectedRows: 0, repeatedRows: 0, openRejects: 0 };

describe('an empty line in the middle of a file is no record', () => {
  const timeFirst = (id: string) => `${time},${id},impression,X,C`;
  const table = (separator: string, lineEnd: string, bad: boolean) =>
    [header, row('b1'), '', row('b2'), '', '', ...(bad ? [row('bad').replace(time, 'never')] : []), row('b3')]
      .map((line) => `${line.replaceAll(',', separator)}${lineEnd}`)
      .join('');

  test.each(['\n', '\r\n'])('CSV that begins with a field other than text, line ends %j', async (lineEnd) => {
    const content = [
      'event_time,event_id,event_type,advertiser_id,campaign_id',
      timeFirst('b1'),
      '',
      timeFirst('b2'),
      timeFirst('b3'),
      '',
    ];
    const loaded = await load('e.csv', content.join(lineEnd));
    expect(loaded).toMatchObject({ ...counts, rows: 3 });
    expect((await events(loaded)).map(({ event_id }) => event_id)).toEqual(['b1', 'b2', 'b3']);
    expect(await load('e.csv')).toMatchObject({ ...counts, rows: 0, repeatedRows: 3 });
  });

  test.each([
    ['csv', ','],
    ['tsv', '\t'],
  ])('%s that begins with text, alone and beside a bad row', async (format, separator) => {
    for (const lineEnd of ['\n', '\r\n']) {
      const clean = await load(`clean.${format}`, table(separator, lineEnd, false));
      expect(clean).toMatchObject({ rows: 3, rejectedRows: 0 });
      const beside = await load(`bad.${format}`, table(separator, lineEnd, true));
      expect(beside).toMatchObject({ rows: 3, rejectedRows: 1 });
      expect(await rejects(beside)).toMatchObject([{ line: 7, fields: ['event_time'] }]);
    }
  });
});

describe('a long cell in quotes ends where its quote ends', () => {
  test('one of 1.2 MB is a bad row and nothing else', async () => {
    const content = [
      header,
      ...lines(2),
      row('long').replace('C', `"${'x'.repeat(1_200_000)}"`),
      ...lines(10_000, 2),
    ];
    const loaded = await load('la.csv', content.join('\n'));
    expect(loaded).toMatchObject({ rows: 10_002, rejectedRows: 1 });
    expect((await rejects(loaded)).map(({ line, raw }) => [line, raw.length < 1_300_000])).toEqual([
      [4, true],
    ]);
  });

  test('two quotes with more than 1 MiB between them spoil the lines that they are in', async () => {
    const content = lines(45_000);
    content[10_000] = row('open').replace('C', '"tv');
    content[35_000] = row('close').replace('C', 'tv"');
    const loaded = await load('lb.csv', [header, ...content].join('\n'));
    expect(loaded.rows + loaded.rejectedRows).toBe(45_000);
    expect((await rejects(loaded)).map(({ line }) => line)).toEqual([10_002]);
  });
});

describe('rejected rows', () => {
  test('of a load with --ignore-unknown can be corrected and replayed as NDJSON', async () => {
    const line = (id: string, type: string) =>
      JSON.stringify({
        event_id: id,
        event_time: time,
        event_type: type,
        advertiser_id: 'X',
        campaign_id: 'C',
        foo: 1,
      });
    const loaded = await load('u.ndjson', [line('a', 'impression'), line('b', 'click')].join('\n'), {
      reading: mappedReading('u.ndjson', { ...defaultMapping, ignoreUnknown: true }),
    });
    expect(loaded).toMatchObject({ rows: 1, rejectedRows: 1 });
    const out = new PassThrough();
    const [exported] = await Promise.all([
      text(out),
      writeRejects(db.store, out, [loaded.loadId ?? ''], 'ndjson').finally(() => out.end()),
    ]);
    const corrected = `${loader.folder}/corrected.ndjson`;
    await writeFile(corrected, exported.replaceAll('"click"', '"referral"'));
    expect(
      await replay(db.store, loaded.loadId ?? '', new LocalFile(corrected), () => new Date()),
    ).toMatchObject({
      replayed: 1,
      faulty: [],
    });
  });

  test('that are open make every run of their file end with 4, also one that has nothing to do', async () => {
    const path = await loader.file(
      'r.ndjson',
      [row('a'), row('b')]
        .map((_, n) =>
          JSON.stringify({
            event_id: `r${n}`,
            event_time: time,
            event_type: 'impression',
            advertiser_id: 'X',
            campaign_id: 'C',
            ...(n && { foo: 1 }),
          }),
        )
        .join('\n'),
    );
    expect((await loader.ingest(path)).code).toBe(4);
    for (const flags of [[], ['--ignore-unknown']]) {
      const again = await loader.ingest(...flags, path);
      expect(again.code).toBe(4);
      expect(again.stderr).toMatch(/1 row rejected before waits.*\nnothing to do/);
    }
  });
});

describe('equal lines are additive', () => {
  test.each([1 << 20, 10])('however the file is cut: %i bytes', async (chunkBytes) => {
    const line = `${time},impression,X,C`;
    const content = [
      `event_time,event_type,advertiser_id,campaign_id,device`,
      ...Array.from({ length: 4 }, () => `${line},${files.account}`),
    ];
    expect(await load('same.csv', content.join('\n'), { chunkBytes })).toMatchObject({ ...counts, rows: 4 });
    expect(await load('again.csv', content.join('\n'), { chunkBytes })).toMatchObject({
      rows: 0,
      repeatedRows: 4,
    });
  });
});

describe('--dedupe', () => {
  const dated = (id: string, day: string) => row(id).replace('2026-01-31', day);

  test('goes by the day of the event, not by the days of its chunk', async () => {
    await load('first.csv', [header, dated('de1', '2026-02-01'), ''].join('\n'));
    const together = [header, dated('de0', '2026-02-01'), dated('de1', '2026-02-03'), ''].join('\n');
    const apart = await load('second.csv', together, { dedupe: true });
    expect(apart).toMatchObject({ rows: 2, duplicateRows: 0 });
  });

  test('a dry run tells what would be left out', async () => {
    await load('dry.csv', `${header}\n${row('dry-1')}\n`);
    const content = `${header}\n${row('dry-2')}\n${row('dry-1')}\n`;
    expect(await load('longer.csv', content, { dedupe: true, dryRun: true })).toMatchObject({
      rows: 1,
      duplicateRows: 1,
    });
    expect(await load('dry.csv', undefined, { dryRun: true })).toMatchObject({ rows: 0, repeatedRows: 1 });
  });
});

test('a blank around an id is part of it, in every format', async () => {
  const cells = ['blank', time, 'impression', 'X', ' camp 1 '];
  const names = header.split(',');
  const wanted = [];
  for (const [name, content] of [
    ['b.csv', [header, cells.join(',')].join('\n')],
    ['quoted.csv', [header, cells.map((cell) => `"${cell}"`).join(',')].join('\n')],
    ['b.tsv', [names.join('\t'), cells.join('\t')].join('\n')],
    ['b.ndjson', JSON.stringify(Object.fromEntries(names.map((each, n) => [each, cells[n]])))],
  ] as const) {
    wanted.push(...(await events(await load(name, content))).map(({ campaign_id }) => campaign_id));
  }
  expect(wanted).toEqual([' camp 1 ', ' camp 1 ', ' camp 1 ', ' camp 1 ']);
});

test('no escape of a dump vanishes or turns into something else', async () => {
  const cells = ['a\\\\b', 'a\\Nb', '"\\N"', '\\x41', '\\N', 'a\\tb'];
  const table = [header, ...cells.map((cell, n) => row(`t${n}`).replace(/C$/, cell))].join('\n');
  const reading = mappedReading('t.tsv', { ...defaultMapping, escapes: true });
  const loaded = await load('t.tsv', table.replaceAll(',', '\t'), { reading });
  const stored = new Map((await events(loaded)).map(({ event_id, campaign_id }) => [event_id, campaign_id]));
  expect(Object.fromEntries(stored)).toEqual({ t0: 'a\\b', t5: 'a\tb' });
  expect((await rejects(loaded)).map(({ line }) => line)).toEqual([3, 4, 5, 6]);
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

test('every column that no event has is named at once', async () => {
  const path = await loader.file('u.csv', `${header},foo,bar\n`);
  const { code, stderr } = await loader.ingest(path);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining(`${path}: columns foo, bar are not`),
  });
});

test('what is not CSV is refused with the name of the file', async () => {
  const path = await loader.file('n.csv', `${JSON.stringify({ event_id: 'a' })}\n`);
  const { code, stderr } = await loader.ingest(path);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(path) });
});
