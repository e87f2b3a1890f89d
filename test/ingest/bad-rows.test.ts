import { buffer } from 'node:stream/consumers';
import { describe, expect, test, vi } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { event } from '../support/events.ts';
import { useLoader } from '../support/loader.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 120_000 });

const db = useStore();
let account: string;
const { counted, file, ingest } = useLoader(db, (own) => {
  ({ account } = own);
});

/** Rejected rows of a load: where, and the fields at fault. */
async function rejects(load: string): Promise<{ line: number; fields: string[] }[]> {
  return select(
    db.store,
    `SELECT toUInt32(line) AS line, arrayMap(f -> f.field, faults) AS fields
     FROM rejected_rows FINAL WHERE load_id = {load:String} ORDER BY line`,
    { load },
  );
}

const columns = [
  'event_id',
  'event_time',
  'event_type',
  'advertiser_id',
  'campaign_id',
  'device',
  'quantity',
  'spend',
  'confirmed',
] as const;
type Line = Partial<Record<(typeof columns)[number], string>>;

const line = (wrong: Line = {}): Line => {
  const { event_id, event_time, event_type, campaign_id = '' } = event();
  const good = { event_id, event_time, event_type, advertiser_id: account, campaign_id, device: 'tv' };
  return { ...good, quantity: '1', spend: '0.5', ...wrong };
};

/** Ten ways to be no event, with the field that is at fault. */
const wrongs: readonly (readonly [Line, string])[] = [
  [{ quantity: '0' }, 'quantity'],
  [{ quantity: 'many' }, 'quantity'],
  [{ event_type: 'click' }, 'event_type'],
  [{ advertiser_id: '' }, 'advertiser_id'],
  [{ event_time: '2026-02-30 10:00:00' }, 'event_time'],
  [{ event_time: '2026-00-10 10:00:00' }, 'event_time'],
  [{ spend: '1.2.3' }, 'spend'],
  [{ campaign_id: '' }, 'campaign_id'],
  [{ device: 'x'.repeat(33) }, 'device'],
  [{ event_id: 'x'.repeat(65), quantity: '-1' }, 'event_id'],
];

/** Three good lines before each wrong one. */
const mixed = () => wrongs.flatMap(([wrong]) => [line(), line(), line(), line(wrong)]);

const writers = {
  ndjson: (lines: readonly Line[]) => lines.map((each) => `${JSON.stringify(each)}\n`).join(''),
  csv: (lines: readonly Line[], separator = ',') =>
    [columns.join(separator), ...lines.map((each) => columns.map((name) => each[name] ?? '').join(separator))]
      .map((row) => `${row}\n`)
      .join(''),
  tsv: (lines: readonly Line[]): string => writers.csv(lines, '\t'),
  parquet: async (lines: readonly Line[]): Promise<Buffer> => {
    const { stream } = await db.store.exec({
      query: `SELECT * FROM format(JSONEachRow, '${columns.map((name) => `${name} ${name === 'confirmed' ? 'Bool' : 'String'}`).join(', ')}', {lines:String}) FORMAT Parquet`,
      query_params: { lines: writers.ndjson(lines) },
    });
    return buffer(stream);
  },
};
const kinds = Object.keys(writers) as (keyof typeof writers)[];

describe.each(kinds)('%s', (kind) => {
  const write = async (lines: readonly Line[]) => file(`e.${kind}`, await writers[kind](lines));

  test('ten kinds of bad rows are kept with their place and field, the others are loaded: exit code 4', async () => {
    const path = await write(mixed());
    const { code, stdout, stderr } = await ingest(path);
    expect(code, stderr).toBe(4);
    const { rows, rejected_rows, loads } = JSON.parse(stdout);
    expect({ rows, rejected_rows }).toEqual({ rows: 30, rejected_rows: 10 });
    const header = kind === 'csv' || kind === 'tsv' ? 1 : 0;
    const found = await rejects(loads[0]);
    expect(found.map(({ line, fields }) => [line, fields[0]])).toEqual(
      wrongs.map(([, field], n) => [4 * (n + 1) + header, field]),
    );
    expect(stderr).toContain(`${path} ${kind === 'parquet' ? 'row' : 'line'} ${4 + header}: quantity `);
    expect(await counted()).toBe(30);
  });

  test('--dry-run tells the same and loads nothing', async () => {
    const { code, stdout, stderr } = await ingest('--dry-run', await write(mixed()));
    expect(code, stderr).toBe(4);
    expect(JSON.parse(stdout)).toMatchObject({ loads: [], rows: 30, rejected_rows: 10 });
    expect(stderr).toMatch(/30 events can be loaded/);
    expect(await counted()).toBe(0);
  });

  test('a file of bad rows only is exit code 4 and loads nothing', async () => {
    const { code, stdout } = await ingest(await write(wrongs.map(([wrong]) => line(wrong))));
    expect(code).toBe(4);
    expect(JSON.parse(stdout)).toMatchObject({ rows: 0, rejected_rows: 10 });
    expect(await counted()).toBe(0);
  });

  test.each([['9'], ['24%']])('--max-rejects %s loads nothing of a chunk with more', async (limit) => {
    const { code, stderr } = await ingest('--max-rejects', limit, await write(mixed()));
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`more than ${limit} rows are faulty; nothing of the chunk from`));
    expect(await counted()).toBe(0);
  });

  test.each([['10'], ['25%']])('--max-rejects %s puts up with as many', async (limit) => {
    expect((await ingest('--max-rejects', limit, await write(mixed()))).code).toBe(4);
    expect(await counted()).toBe(30);
  });
});

test('--max-rejects keeps the chunks before the one that has too many', async () => {
  const good = Array.from({ length: 60 }, () => line());
  const path = await file('e.csv', writers.csv([...good, line({ quantity: '0' })]));
  const { code, stderr } = await ingest('--max-rejects', '0', '--chunk-bytes', '1500', path);
  expect(code).toBe(1);
  expect(stderr).toContain(`${path} line 62: quantity`);
  expect(await counted()).toBeGreaterThan(20);
});

test('CSV fields over several lines do not shift the line number of the bad row after them', async () => {
  const spread = line({ campaign_id: '"spring\n\nsale, ""2"""' });
  const path = await file(
    'e.csv',
    writers.csv([spread, spread, line({ quantity: '0' }), spread, line({ device: 'x'.repeat(33) })]),
  );
  const { code, stdout } = await ingest(path);
  expect(code).toBe(4);
  expect(await rejects(JSON.parse(stdout).loads[0])).toEqual([
    { line: 8, fields: ['quantity'] },
    { line: 12, fields: ['device'] },
  ]);
  expect(await counted()).toBe(3);
});

describe.each(['ndjson', 'csv', 'tsv'] as const)('%s lines that are no text', (kind) => {
  test.each([
    ['invalid UTF-8', 0xff, /line \d: the record is not valid UTF-8/],
    ['a NUL byte', 0, /line \d: the record holds a NUL byte/],
  ])('%s is rejected with its line, the others are loaded', async (_, byte, reason) => {
    const content = Buffer.from(writers[kind]([line(), line({ device: '~' }), line()]));
    content[content.indexOf('~')] = byte;
    const { code, stderr } = await ingest(await file(`e.${kind}`, content));
    expect(code).toBe(4);
    expect(stderr).toMatch(reason);
    expect(await counted()).toBe(2);
  });
});

test('decimals of Parquet stay exact beside a bad row', async () => {
  const amounts = ['1.1', '-0.1', '0.000007', '123456789012.123457', '999999999999.999999'];
  const { stream } = await db.store.exec({
    query: `SELECT concat({account:String}, amount) AS event_id, '2026-03-01 12:00:00' AS event_time,
                   if(amount = '', 'click', 'impression') AS event_type, {account:String} AS advertiser_id,
                   'campaign' AS campaign_id, toDecimal64OrZero(amount, 6) AS spend, toDecimal128OrZero(amount, 6) AS revenue
            FROM (SELECT arrayJoin(['', ${amounts.map((amount) => `'${amount}'`).join(', ')}]) AS amount) FORMAT Parquet`,
    query_params: { account },
  });
  const { code, stderr } = await ingest(await file('e.parquet', await buffer(stream)));
  expect(code, stderr).toBe(4);
  const query =
    'SELECT toString(spend) AS amount FROM events WHERE advertiser_id = {account:String} AND spend = revenue';
  const found = await select<{ amount: string }>(db.store, query, { account });
  expect(found.map(({ amount }) => amount).sort()).toEqual(amounts.sort());
});

test.each<[string, number, string, string]>([
  ['event_type,event_id,event_time,advertiser_id,campaign_id', 0, '', 'in any order'],
  ['event_id,event_time,event_type,more', 1, 'column more is not a field of an event', 'unknown'],
  ['event_id,event_time,event_type,event_id', 1, 'column event_id appears twice', 'repeated'],
  ['event_id,event_type,device', 1, 'column event_time is missing', 'missing'],
])('columns %s: exit code %i %s', async (header, wanted, reason, which) => {
  const cells: Record<string, string | undefined> = { ...line(), more: 'x' };
  const row = () => header.split(',').map((name) => (name === 'event_id' ? line().event_id : cells[name]));
  const path = await file('e.csv', `${header}\n${row()}\n${row()}\n`);
  const { code, stderr } = await ingest(path);
  expect({ code, faults: stderr.match(/column/g)?.length ?? 0 }).toEqual({ code: wanted, faults: wanted });
  expect(stderr).toContain(reason);
  expect(await counted()).toBe(wanted ? 0 : 2);
  if (which === 'unknown') expect((await ingest('--ignore-unknown', '--dry-run', path)).code).toBe(4);
});

/** What is an event does not depend on whether the line beside it is one. */
test.each<[string, keyof typeof writers, (lines: string) => string]>([
  ['CRLF in TSV', 'tsv', (text) => text.replaceAll('\n', '\r\n')],
  ['blanks around CSV cells', 'csv', (text) => text.replaceAll(/\b,(?=\S)(?!.*confirmed)/g, ' , ')],
  ['a comma at the end of CSV lines', 'csv', (text) => text.replaceAll(/(?<!confirmed)\n/g, ',\n')],
  ['TRUE in CSV', 'csv', (text) => text.replaceAll(/,\n/g, ',TRUE\n')],
  ['quoted "true" in CSV', 'csv', (text) => text.replaceAll(/,\n/g, ',"true"\n')],
])('%s is taken the same beside a bad row and alone', async (_, kind, change) => {
  const alone = await ingest(await file(`a.${kind}`, change(String(await writers[kind]([line(), line()])))));
  expect(alone.code, alone.stderr).toBe(0);
  const beside = await ingest(
    await file(`b.${kind}`, change(String(await writers[kind]([line(), line({ quantity: '0' }), line()])))),
  );
  expect(JSON.parse(beside.stdout)).toMatchObject({ rows: 2, rejected_rows: 1 });
  const stored =
    'SELECT DISTINCT campaign_id, device FROM events WHERE trimBoth(advertiser_id) = {account:String}';
  expect(await select(db.store, stored, { account })).toHaveLength(1);
});

test.each<[string, (lines: string) => string]>([
  ['a comma between JSON objects', (text) => text.replaceAll('}', '},')],
  ['an escape that JSON does not have', (text) => text.replaceAll('"tv"', '"t\\x76"')],
  ['form feeds around JSON', (text) => text.replaceAll(',"device"', '\f,\f"device"')],
  ['a tab in JSON text', (text) => text.replaceAll('"tv"', '"t\tv"')],
  ['two objects on a line', (text) => text.replaceAll('}\n', '}')],
])('%s is rejected beside a good row and alone', async (_, change) => {
  const bad = () => `${change(writers.ndjson([line(), line()])).trimEnd()}\n`;
  const rejected = bad().split('\n').length - 1;
  const alone = await ingest(await file('a.ndjson', bad()));
  expect(JSON.parse(alone.stdout)).toMatchObject({ rows: 0, rejected_rows: rejected });
  const beside = await ingest(await file('b.ndjson', `${writers.ndjson([line()])}${bad()}`));
  expect(JSON.parse(beside.stdout)).toMatchObject({ rows: 1, rejected_rows: rejected });
});
