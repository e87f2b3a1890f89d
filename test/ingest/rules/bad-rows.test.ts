import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { type Line, useLines } from '../../support/event-lines.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const lines = useLines(db);
const { counted, file, ingest, line, rejects, writers } = lines;

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

type Limits = { readonly less: readonly string[]; readonly enough: readonly string[] };
/** Of --max-rejects. All text is cut into chunks in one way, and Parquet in another. */
const limits: Partial<Record<keyof typeof writers, Limits>> = {
  ndjson: { less: ['9', '24%'], enough: ['10', '25%'] },
  parquet: { less: ['24%'], enough: ['10'] },
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
    const path = await write(wrongs.map(([wrong]) => line(wrong)));
    const { code, stdout } = await ingest(path);
    expect(code).toBe(4);
    expect(JSON.parse(stdout)).toMatchObject({ rows: 0, rejected_rows: 10 });
    expect(await counted()).toBe(0);
    const good = await file('good.ndjson', await writers.ndjson([line()]));
    for (const files of [[path], [path, good]])
      expect(await ingest(...files)).toMatchObject({
        code: 4,
        stderr: expect.stringMatching(/^10 rows rejected before wait for a correction(?!.*all 0 events)/s),
      });
  });

  test.each(limits[kind]?.less ?? [])(
    '--max-rejects %s loads nothing of a chunk with more',
    async (limit) => {
      const { code, stderr } = await ingest('--max-rejects', limit, await write(mixed()));
      expect(code).toBe(1);
      expect(stderr).toMatch(new RegExp(`more than ${limit} rows are faulty; nothing of the chunk from`));
      expect(await counted()).toBe(0);
    },
  );

  test.each(limits[kind]?.enough ?? [])('--max-rejects %s puts up with as many', async (limit) => {
    expect((await ingest('--max-rejects', limit, await write(mixed()))).code).toBe(4);
    expect(await counted()).toBe(30);
  });
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

test('decimals of Parquet stay exact beside a bad row', async () => {
  const amounts = ['1.1', '-0.1', '0.000007', '123456789012.123457', '999999999999.999999'];
  const { stream } = await db.store.exec({
    query: `SELECT concat({account:String}, amount) AS event_id, '2026-03-01 12:00:00' AS event_time,
                   if(amount = '', 'click', 'impression') AS event_type, {account:String} AS advertiser_id,
                   'campaign' AS campaign_id, toDecimal64OrZero(amount, 6) AS spend, toDecimal128OrZero(amount, 6) AS revenue
            FROM (SELECT arrayJoin(['', ${amounts.map((amount) => `'${amount}'`).join(', ')}]) AS amount) FORMAT Parquet`,
    query_params: { account: lines.account },
  });
  const { code, stderr } = await ingest(await file('e.parquet', await buffer(stream)));
  expect(code, stderr).toBe(4);
  const query =
    'SELECT toString(spend) AS amount FROM events WHERE advertiser_id = {account:String} AND spend = revenue';
  const found = await select<{ amount: string }>(db.store, query, { account: lines.account });
  expect(found.map(({ amount }) => amount).sort()).toEqual(amounts.sort());
});
