import { describe, expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { mappingFingerprint } from '../../../ingest/event/mapping.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { readMapping } from '../../../ingest/mapping/read-mapping.ts';
import { useMappedLoads } from '../../support/mapped-loads.ts';

const { db, loadText, inFile, refusal } = useMappedLoads();
const flags = { map: ['event_time=Day'], ignoreUnknown: true };
const sums = 'toUInt32(sum(impressions)), toString(sum(spend))';

describe('records for which a condition is false are left out and counted', () => {
  const totals = { ...flags, where: "{Day} != 'Total'" };
  const rows = [
    ['Day', 'impressions', 'spend', 'Kind'],
    ['2026-03-01', '7', '1.5', 'x'],
    ['Total', '10', '2', 'x'],
    ['2026-03-02', '3', '0.5', 'x'],
  ];
  const table = (separator: string) => rows.map((row) => `${row.join(separator)}\n`).join('');
  const objects = rows.slice(1).map((row) => Object.fromEntries(row.map((cell, n) => [rows[0]?.[n], cell])));
  const ndjson = objects.map((row) => `${JSON.stringify(row)}\n`).join('');

  test.each([
    ['csv', table(',')],
    ['tsv', table('\t')],
    ['ndjson', ndjson],
  ])('in %s', async (ending, text) => {
    expect(await loadText(totals, text, sums, ending)).toEqual({
      events: [[10, '2']],
      rejected: [],
      leftOut: 1,
    });
  });

  test('by numbers; empty cells are no numbers', async () => {
    const where = '{impressions} != 0 OR {spend} != 0';
    const text = [
      'Day,impressions,spend',
      '2026-03-01,0,0',
      '2026-03-01,0.0,-0.00',
      '2026-03-01,0,-1.5',
      '2026-03-01,2,',
      '2026-03-01,,0',
      '2026-03-01,0,n/a',
      '2026-03-01,3,n/a',
      '',
    ];
    const { events, rejected, leftOut } = await loadText({ ...flags, where }, text.join('\n'), sums);
    expect(events).toEqual([[2, '-1.5']]);
    // Nothing is left out where it cannot be told.
    expect(rejected).toEqual([
      '6  where cannot be computed from {impressions}, {spend}',
      '7  where must be computed from numbers, and {impressions} or {spend} is no number',
      '8  where must be computed from numbers, and {impressions} or {spend} is no number',
    ]);
    expect(leftOut).toBe(2);
  });

  test('a record that cannot be read is rejected, though its condition seems false', async () => {
    const where = "{Day} = '2026-03-01'";
    const broken = [
      '{"Day":"2026-03-01","impressions":1}',
      '{"Day":"2026-03-0',
      '{"Day":"x","Day":"2026-03-01"}',
    ];
    const json = await loadText({ ...flags, where }, `${broken.join('\n')}\n`, sums, 'ndjson');
    expect(json).toMatchObject({ events: [[1, '0']], leftOut: 0 });
    expect(json.rejected).toEqual([
      expect.stringMatching(/^2 {2}the record is not JSON that can be read/),
      '3 Day appears twice',
    ]);
    const cells = 'Day,impressions\n2026-03-01,1\n2026-03-02,"1\n2026-03-01\n2026-03-02,5,6\n2026-03-02,5\n';
    const csv = await loadText({ ...flags, where }, cells, sums);
    expect(csv).toMatchObject({ events: [[1, '0']], leftOut: 1 });
    expect(csv.rejected.map((each) => each.slice(0, 1))).toEqual(['3', '4', '5']);
    // Which cell is missing cannot be told, so only the first tells that it is no record.
    const below = `${cells}2026-03-02\n\n© of the platform\n`;
    expect(await loadText({ ...flags, where }, below, sums)).toMatchObject({
      leftOut: 3,
      rejected: csv.rejected,
    });
    const other = await loadText({ ...flags, where: "{impressions} = '1'" }, below, sums);
    expect(other.rejected).toHaveLength(5);
  });

  test('a faulty record that is left out is no rejected row', async () => {
    const text = 'Day,impressions\n2026-03-01,1\nTotal,many\n03/02/2026,1\n';
    const { rejected, leftOut } = await loadText(totals, text, sums);
    expect({ rejected, leftOut }).toEqual({
      rejected: [expect.stringMatching(/^4 event_time must be .*, not "03\/02\/2026"$/)],
      leftOut: 1,
    });
  });
});

test('the balance of a chunk counts them: in the ledger, in the load, and for verify', async () => {
  const text = 'Day,impressions\n2026-03-01,1\nTotal,1\nnever,1\nTotal,2\n';
  await loadText({ ...flags, where: "{Day} != 'Total'" }, text, sums);
  const [chunk] = await select(
    db.store,
    `SELECT toUInt32(max(c.records)) AS records, toUInt32(max(c.rows)) AS rows, toUInt32(max(c.rejected_rows)) AS rejected,
            toUInt32(max(c.left_out_rows)) AS leftOut, (SELECT toUInt32(l.left_out_rows) FROM loads AS l FINAL ORDER BY l.load_id DESC LIMIT 1) AS ofLoad
     FROM load_chunks AS c WHERE load_id = (SELECT max(load_id) FROM loads)`,
  );
  expect(chunk).toEqual({ records: 4, rows: 1, rejected: 1, leftOut: 2, ofLoad: 2 });
  expect((await verifyLedger(db.store)).differences).toEqual([]);
  await db.store.command({
    query: `INSERT INTO load_chunks (head, chunk, load_id, left_out_rows)
            SELECT head, chunk, load_id, 3 FROM load_chunks WHERE load_id = (SELECT max(load_id) FROM loads) LIMIT 1`,
  });
  expect((await verifyLedger(db.store)).differences).toMatchObject([
    { what: 'records', stored: 5, ledger: 4 },
  ]);
});

test.each([
  ['{Day}', '--where: comes to a String, which is not true or false; compare it'],
  ['{a} + 1', '--where: comes to a Decimal(76, 12), which is not true or false; compare it'],
  ['NULL', '--where: is always NULL'],
  ['1 = 1', '--where: is the same for every record; name a column of the file as {column}'],
  ['', '--where: is empty: leave it out'],
  ['{Day} !== 1', '--where: is no SQL expression'],
  ['toInt64({Day}) > 0', '--where: toInt64 fails for text that it cannot read; use toInt64OrNull'],
  ['rand() > {a}', '--where: rand does not give the same result'],
  ['{a} > {b}', '--where: greater compares {a} and {b} as text'],
])('refused before anything is sent: %s', async (where, message) => {
  expect(await refusal({ where })).toContain(message);
});

test('it is checked against the columns of the file, and in the mapping file under its name', async () => {
  const mapping = await inFile({ where: "{Dya} != ''" }, 'ads.json');
  await expect(loadText({ ...flags, ...mapping }, 'Day,impressions\n', sums)).rejects.toThrow(
    /^ads.json: where: there is no column Dya; .* has Day, impressions$/,
  );
  expect(await refusal(await inFile({ where: 5 }, 'ads.json'))).toBe('ads.json: where must be text');
});

test('text and numbers side by side', async () => {
  const where = "{impressions} != 0 OR {Cost} NOT IN ('', '0', 'none')";
  const text = 'Day,impressions,Cost\n2026-03-01,0,none\n2026-03-01,0,"1,5"\n2026-03-01,4,0\n2026-03-01,0,\n';
  expect(await loadText({ ...flags, where }, text, sums)).toEqual({
    events: [[4, '0']],
    rejected: [],
    leftOut: 2,
  });
});

test('a column that only the condition reads need not be a field', async () => {
  const text = 'event_time,impressions,Kind\n2026-03-01,1,total\n2026-03-01,2,row\n';
  expect(await loadText({ where: "{Kind} = 'row'" }, text, sums)).toEqual({
    events: [[2, '0']],
    rejected: [],
    leftOut: 1,
  });
});

test('it is part of the identity of what is loaded', async () => {
  const print = async (where?: string) => mappingFingerprint(await readMapping(where ? { where } : {}));
  expect(new Set([await print(), await print('{a} = 1'), await print('{a} = 2')]).size).toBe(3);
});
