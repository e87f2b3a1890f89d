import { readFile, writeFile } from 'node:fs/promises';
import { parse as parseCsv } from 'csv-parse/sync';
import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { confirmDays } from '../../../ingest/lists/confirmations.ts';
import { faultsOfRows } from '../../../ingest/replay/judge-corrections.ts';
import { event, ndjson } from '../../support/events.ts';
import { useRejectedLoads } from '../../support/rejected-loads.ts';
import { useStore } from '../../support/store.ts';
import { unconfirmedDays } from '../../support/unconfirmed-days.ts';
import { failingAt } from '../../support/unloads.ts';

const db = useStore();
const loads = useRejectedLoads(db);
const { file, run, loadWithRejects, corrected, counted, totals } = loads;

test('rejected rows complete the totals exactly once corrected, unconfirm their day, and replayed twice count once', async () => {
  const { load } = await loadWithRejects(50);
  expect(await counted()).toEqual({ events: 40, ids: 40, impressions: 40 });
  await confirmDays(db.store, loads.own.account, '2026-03-01', '2026-03-01');
  expect(await unconfirmedDays(db.store, loads.own.account)).toBe(0);
  const path = await corrected(load, 'csv', () => 3);
  expect(await run('replay', load, path)).toMatchObject({ code: 0, stderr: '10 rows replayed\n' });
  expect(await unconfirmedDays(db.store, loads.own.account)).toBe(1);
  expect(await counted()).toEqual({ events: 50, ids: 50, impressions: 70 });
  expect(await run('replay', load, path)).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^0 rows replayed, 10 replayed or dismissed before/),
  });
  expect(await totals()).toEqual({ events: 50, ids: 50, impressions: 70 });
  expect((await run('rejects', load, '--json')).stdout).toBe('');
});

test('rejected rows that are still faulty are named and stay rejected: exit code 4', async () => {
  const { load } = await loadWithRejects(50);
  const first = await run('replay', load, await corrected(load, 'csv', (row) => (row < 2 ? 0 : 3)));
  expect(first.code).toBe(4);
  expect(first.stderr).toMatch(
    /line 5: quantity .*\n.*line 10: quantity .*\n8 rows replayed, 2 still faulty/,
  );
  expect(await counted()).toEqual({ events: 48, ids: 48, impressions: 64 });
  expect((await run('replay', load, await corrected(load, 'csv', () => 7))).code).toBe(0);
  expect(await totals()).toEqual({ events: 50, ids: 50, impressions: 78 });
});

test('rejected rows of another load are left alone', async () => {
  const { load } = await loadWithRejects(50);
  const path = await corrected(load, 'csv', () => 3);
  loads.own.account = `${loads.own.account}-other`;
  const other = await loadWithRejects(50);
  const { code, stderr } = await run('replay', other.load, path);
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: `0 rows replayed, 10 replayed or dismissed before, or not from load ${other.load}\n`,
  });
  expect(await totals()).toMatchObject({ events: 40, impressions: 40 });
});

test('corrections are judged though what was held back for that cannot be let go of', async () => {
  const store = failingAt(db.store, /ALTER TABLE incoming_staging/, 'before');
  const faults = await faultsOfRows(store, [{ event_id: 'a', event_type: 'click' }], {
    requireEventId: false,
    roundMoney: false,
  });
  expect([...faults.keys()]).toEqual([0]);
});

test('a correction is judged as the file was: exit code 4, and it stays rejected', async () => {
  const { load } = await loadWithRejects(50);
  const path = await corrected(load, 'ndjson', () => 3);
  const lines = (await readFile(path, 'utf8')).split('\n');
  const early = lines[0]?.replace(/"event_time":"[^"]*"/, '"event_time":"1971-01-01T00:00:00+05:00"') ?? '';
  const changed = await file('early.ndjson', [early, ...lines.slice(1)].join('\n'));
  const { code, stderr } = await run('replay', load, changed);
  expect(code, stderr).toBe(4);
  expect(stderr).toMatch(/event_time must be between 1971 and 2149, not "1971-01-01T00:00:00\+05:00"/);
  expect(stderr).toContain('9 rows replayed, 1 still faulty');
  expect(await totals()).toMatchObject({ events: 49 });
});

test('a corrected row has the time that its load read, whatever the zone and the dates of that load', async () => {
  const times = [
    '2026-11-01 00:30:00',
    '2026-11-01T00:30:00+05:00',
    '2026-11-01',
    '1793406600',
    '46327.25',
    '46327',
  ];
  const row = (time: string, impressions: string) => `${time},${impressions},${loads.own.account},c`;
  const rows = [...times.map((time) => row(time, '1')), ...times.map((time) => row(time, 'x'))];
  const header = 'event_time,impressions,advertiser_id,campaign_id';
  const path = await file('e.csv', `${[header, ...rows, row('soon', 'x')].join('\n')}\n`);
  const flags = ['--timezone', 'Europe/Vienna', '--dates', 'excel', '--json'];
  const loaded = await run('ingest', 'events', ...flags, path);
  const [load = ''] = JSON.parse(loaded.stdout).loads;
  const { stdout } = await run('rejects', load, '--csv');
  const exported: Record<string, string>[] = parseCsv(stdout, { columns: true });
  expect(exported.map(({ event_time }) => event_time)).toEqual([
    '2026-10-31 23:30:00.000Z',
    '2026-10-31 19:30:00.000Z',
    '2026-11-01',
    '2026-10-31 00:30:00.000Z',
    '2026-11-01 05:00:00.000Z',
    '2026-11-01 00:00:00.000Z',
    'soon',
  ]);
  const replayed = await run('replay', load, await file('c.csv', stdout.replaceAll(/"?\bx\b"?(?=,)/g, '1')));
  expect(replayed.stderr).toMatch(/6 rows replayed, 1 still faulty/);
  const stored = await select<{ times: number }>(
    db.store,
    `SELECT toUInt32(count()) AS times FROM events WHERE advertiser_id = {account:String} GROUP BY event_time ORDER BY event_time`,
    { account: loads.own.account },
  );
  // A day and the serial date of that day are the same moment.
  expect(stored.map(({ times }) => times)).toEqual([2, 2, 2, 4, 2]);
});

test('amounts of more than six decimal places are rounded where --round-money says so', async () => {
  const spends = ['1.2345675', '2.3456785'];
  const path = await file(
    'e.ndjson',
    ndjson(spends.map((spend) => event({ advertiser_id: loads.own.account, spend }))),
  );
  const [load = ''] = JSON.parse((await run('ingest', 'events', '--json', path)).stdout).loads;
  const rejected = await file('c.csv', (await run('rejects', load, '--csv')).stdout);
  expect((await run('replay', load, rejected)).stderr).toContain('0 rows replayed, 2 still faulty');
  expect(await run('replay', load, rejected, '--round-money')).toMatchObject({
    code: 0,
    stderr: '2 rows replayed\n',
  });
  const stored = await select(
    db.store,
    'SELECT toString(spend) AS spend FROM events WHERE advertiser_id = {account:String} ORDER BY spend',
    { account: loads.own.account },
  );
  expect(stored).toEqual([{ spend: '1.234568' }, { spend: '2.345679' }]);
});

test('a row that lacks an id for --dedupe alone is loaded as it is without', async () => {
  const { event_id: _, ...anonymous } = event({ advertiser_id: loads.own.account });
  const path = await file('anonymous.ndjson', `${JSON.stringify(anonymous)}\n`);
  const { stdout } = await run('ingest', 'events', '--json', '--dedupe', path);
  const [load = ''] = JSON.parse(stdout).loads;
  const untouched = await file('c.csv', (await run('rejects', load, '--csv')).stdout);
  expect(await run('replay', load, untouched, '--dedupe')).toMatchObject({ code: 4 });
  expect(await run('replay', load, untouched)).toMatchObject({ code: 0, stderr: '1 row replayed\n' });
  expect(await totals()).toMatchObject({ events: 1 });
});

test('a row with two ids that nobody has chosen from stays rejected', async () => {
  const line = JSON.stringify(event({ advertiser_id: loads.own.account })).replace(
    '{',
    '{"event_id":"other",',
  );
  const { stdout } = await run('ingest', 'events', '--json', await file('twice.ndjson', `${line}\n`));
  const [load = ''] = JSON.parse(stdout).loads;
  const untouched = await file('c.csv', (await run('rejects', load, '--csv')).stdout);
  expect(await run('replay', load, untouched)).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(/event_id appears twice; nothing of it was corrected/),
  });
});

test('a row that nobody corrected stays rejected, though its fields do not show why; taken back, its correction is loaded again', async () => {
  const path = await file(
    'e.csv',
    [
      'day,advertiser_id,campaign_id,impressions,referrals,spend',
      `2026-03-01,${loads.own.account},c,1,204,7,5`,
      `2026-03-01,${loads.own.account},c,1`,
      `2026-03-01,${loads.own.account},c,many,7,5`,
    ].join('\n'),
  );
  const mapping = await file(
    'mapping.json',
    JSON.stringify({
      map: { event_time: 'day' },
      expressions: { impressions: 'toUInt64OrNull({impressions})' },
    }),
  );
  const { stdout } = await run('ingest', 'events', '--json', '--mapping', mapping, path);
  const [load = ''] = JSON.parse(stdout).loads;
  const untouched = await file('c.csv', (await run('rejects', load, '--csv')).stdout);
  const { code, stderr } = await run('replay', load, untouched);
  expect(code, stderr).toBe(4);
  expect(stderr).toMatch(/line 2: the record must have as many cells .*; nothing of it was corrected/);
  expect(stderr).toMatch(/line 3: .* cells .*\n.*line 4: impressions cannot be computed/);
  expect(stderr).toContain('0 rows replayed, 3 still faulty');
  const exported = (await run('rejects', load, '--json')).stdout.trimEnd().split('\n');
  const right = exported.map((line) => {
    const row = JSON.parse(line);
    return JSON.stringify({ ...row, event: { ...row.event, impressions: '1204' } });
  });
  const correct = await file('right.ndjson', right.join('\n'));
  expect(await run('replay', load, correct)).toMatchObject({ code: 0, stderr: '3 rows replayed\n' });
  const [taken] = JSON.parse((await run('loads', '--json')).stdout);
  expect(await run('unload', taken.load)).toMatchObject({ code: 0 });
  expect(await run('replay', load, correct)).toMatchObject({ code: 0, stderr: '3 rows replayed\n' });
  expect(await totals()).toMatchObject({ events: 3 });
});

test('numbers of a corrected NDJSON keep all their digits, and what looks like one in a text stays text', async () => {
  const rejected = event({ advertiser_id: loads.own.account, quantity: 0 });
  const path = await file('e.ndjson', ndjson([rejected]));
  const [load = ''] = JSON.parse((await run('ingest', 'events', '--json', path)).stdout).loads;
  const exported = JSON.parse((await run('rejects', load, '--json')).stdout);
  const text = 'a \\"1 2\\" 3';
  const members = `"campaign_id": 23851234567890123.0, "spend":123456789012.123456,"creative_id":"${text}"`;
  const { campaign_id: _, quantity: __, ...others } = exported.event;
  const line = JSON.stringify({ ...exported, event: others }).replace(/\}\}\s*$/, `,${members}}}`);
  const replayed = await run('replay', load, await file('c.ndjson', line));
  expect(replayed).toMatchObject({ code: 0, stderr: '1 row replayed\n' });
  const query = `SELECT campaign_id, toString(spend) AS spend, creative_id FROM events WHERE advertiser_id = {account:String}`;
  expect(await select(db.store, query, { account: loads.own.account })).toEqual([
    { campaign_id: '23851234567890123', spend: '123456789012.123456', creative_id: 'a "1 2" 3' },
  ]);
});

test('what is no corrected export, and two corrections of one row, are refused, and nothing is replayed', async () => {
  const { load } = await loadWithRejects(15);
  const refused = async (path: string) => {
    const { code, stderr } = await run('replay', load, path);
    expect(code, `${path}: ${stderr}`).toBe(1);
    return stderr;
  };
  for (const [name, content] of [
    ['events.csv', 'event_id,quantity\na,1\n'],
    ['events.ndjson', '{"event_id":"a","quantity":1}\n'],
    ['broken.csv', 'chunk,line\n"never closed'],
    ['broken.ndjson', '{"chunk":'],
    ['list.ndjson', '[]'],
    // At once, however many quotes a line has that is cut off.
    ['quotes.ndjson', JSON.stringify({ raw: '"'.repeat(300_000) }).slice(0, -10)],
  ] as const) {
    const path = await file(name, content);
    expect(await refused(path)).toContain(`${path}: is not a corrected export`);
  }
  // Text that is not UTF-8; no option is advised.
  const right = await readFile(await corrected(load, 'csv', () => 3), 'utf8');
  const [header, ...rows] = right.replace(/"campaign"(?=,)/, '"Fr\xfchling"').split('\n');
  for (const bytes of [0, 100_000]) {
    const others = `"${'x'.repeat(bytes)}","other"${',"1"'.repeat((header?.split(',').length ?? 0) - 2)}`;
    const latin = Buffer.from([header, others, ...rows].join('\n'), 'latin1');
    const stderr = await refused(await file('latin.csv', latin));
    expect(stderr).toMatch(/latin\.csv: the (text is not UTF-8|UTF-8 text is damaged)[^(]*save it as UTF-8/);
    expect(stderr).not.toContain('--encoding');
  }
  // A column of another name: each row would count without its spend.
  expect(await refused(await file('renamed.csv', right.replace('"spend"', '"Spend"')))).toContain(
    'renamed.csv: is not a corrected export: it has no column spend;',
  );
  for (const kind of ['csv', 'ndjson'] as const) {
    const path = await corrected(load, kind, (row) => row + 1);
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
    await writeFile(path, [...lines, lines.at(-2)].join('\n'));
    expect(await refused(path)).toContain(
      `${path}: rows 2 and 4 are both corrections of line 10; leave one of them out`,
    );
  }
  expect(await totals()).toMatchObject({ events: 12 });
});

test('what is not UTF-8 keeps no export from being replayed, and stays rejected until somebody says what it means', async () => {
  const columns = 'event_id,event_time,event_type,advertiser_id,campaign_id,quantity';
  const line = (n: number, campaign: string, quantity: number) =>
    `${loads.own.account}-${n},2026-03-01T12:00:00Z,impression,${loads.own.account},${campaign},${quantity}`;
  const text = [columns, line(1, 'a', 1), line(2, 'b', 0), line(3, 'stra\xdfe', 1)].join('\n');
  // One that has this character itself is only corrected elsewhere.
  const itself = `\n${line(4, '\ufffd', 0)}`;
  const latin = await file('latin.csv', Buffer.concat([Buffer.from(text, 'latin1'), Buffer.from(itself)]));
  const { stdout } = await run('ingest', 'events', '--json', '--encoding', 'utf-8', latin);
  const [loadId = ''] = JSON.parse(stdout).loads;
  for (const kind of ['ndjson', 'csv'] as const) {
    const { code, stderr } = await run('replay', loadId, await corrected(loadId, kind, () => 1));
    expect(code, stderr).toBe(4);
    expect(stderr).toContain('line 4: campaign_id has U+FFFD in place of what was not UTF-8');
  }
  const path = await corrected(loadId, 'ndjson', () => 1);
  const said = await file('said.ndjson', (await readFile(path, 'utf8')).replaceAll('\ufffd', 'ss'));
  expect(await run('replay', loadId, said)).toMatchObject({ code: 0 });
  expect(await totals()).toMatchObject({ events: 4 });
});

test('a load that does not exist is named', async () => {
  const { code, stderr } = await run('replay', 'nowhere', await file('e.csv', 'chunk,line\n'));
  expect(code).toBe(1);
  expect(stderr).toMatch(/there is no load nowhere/);
});

test('of many rows that are still faulty the first are shown, and how many there are', async () => {
  const { load } = await loadWithRejects(100);
  const { code, stderr } = await run('replay', load, await corrected(load, 'ndjson', () => 0));
  expect(code).toBe(4);
  expect(stderr.match(/still faulty: /g)).toHaveLength(10);
  expect(stderr).toContain(`… and 10 more that are still faulty; adtally rejects ${load} lists them`);
});
